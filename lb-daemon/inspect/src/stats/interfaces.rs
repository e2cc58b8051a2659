use std::{borrow::Cow, collections::BTreeSet, path::Path};

use lb_common::abi::tracepoint::Tracepoint;
use lb_maps::{
    Component, InterfaceStatistics, LinkStatistics, MapsError, PinnedMaps, Pins, TracedDrops,
    interface_statistics, links,
};
use serde::Serialize;

use super::driver;
use crate::names::Names;

/// What kernel and driver counted of an interface that the balancer uses, since the interface exists. All of its
/// packets are counted, not only those of services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterfaceStats {
    /// Name.
    pub interface: String,
    /// Name of the driver, or the kind of a virtual device; empty: not known.
    pub driver: String,
    /// Whether the packet program is attached to it, or to the bond that it is a port of.
    pub attached: bool,
    /// Whether redirected frames may leave by it.
    pub redirect_target: bool,
    /// The kernel's statistics of the link.
    pub link: LinkStatistics,
    /// The driver's own counters of drops at XDP, by name.
    pub driver_drops: Vec<DriverDrops>,
    /// What the kernel's tracepoints reported; empty: the kernel has none, or the daemon could not attach to them.
    pub traced_drops: Vec<TracepointDrops>,
}

/// A counter of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriverDrops {
    /// Its name as `ethtool -S` prints it, with N for the number of a queue.
    pub counter: String,
    /// Which frames it counts: a word of [`driver::DropStage`].
    pub stage: Cow<'static, str>,
    /// Whether the program had counted all of them as on their way to a backend.
    pub after_program: bool,
    /// Frames, over all queues.
    pub frames: u64,
}

/// What a tracepoint of the kernel reported of an interface, since the balancer's pins exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TracepointDrops {
    /// The kernel's name of the tracepoint.
    pub tracepoint: Cow<'static, str>,
    /// Whether the program had counted all of them as on their way to a backend.
    pub after_program: bool,
    /// Frames that were dropped.
    pub frames: u64,
}

impl InterfaceStats {
    /// Frames that the program had counted as on their way to a backend, and that were dropped then: by the driver's
    /// counters or by the tracepoints, whichever has more, because most frames are in both. `None`: neither counts them.
    pub fn dropped_after_program(&self) -> Option<u64> {
        let by_driver = self.driver_drops.iter().filter(|drops| drops.after_program);
        let by_driver = by_driver.map(|drops| drops.frames).reduce(u64::saturating_add);
        let traced = self.traced_drops.iter().filter(|drops| drops.after_program);
        by_driver.max(traced.map(|drops| drops.frames).reduce(u64::saturating_add))
    }

    fn new(
        read: InterfaceStatistics,
        attached: bool,
        redirect_target: bool,
        traced: impl Iterator<Item = (Tracepoint, u64)>,
    ) -> Self {
        let InterfaceStatistics { name, link, driver } = read;
        let driver = driver.unwrap_or_default();
        Self {
            interface: name,
            attached,
            redirect_target,
            link,
            driver_drops: driver::drops(&driver),
            traced_drops: traced
                .map(|(tracepoint, frames)| TracepointDrops {
                    tracepoint: tracepoint.name().into(),
                    // Another program may be on an interface that only sends; what it fails at is none of ours.
                    after_program: attached || tracepoint == Tracepoint::XdpDevmapXmit,
                    frames,
                })
                .collect(),
            driver: driver.driver,
        }
    }
}

/// Reads the counters of the interfaces that the program is attached to or sends out of, and of the ports of those that
/// are bonds, by name. Those that cannot be read are missing; all are, if the daemon runs in another network namespace.
///
/// # Errors
/// What the kernel answers.
pub fn interfaces(
    bpffs: &Path,
    maps: &PinnedMaps,
    names: &Names,
) -> Result<Vec<InterfaceStats>, MapsError> {
    if names.is_of_another_namespace() {
        return Ok(Vec::new());
    }
    let links = links(&Pins::new(bpffs, Component::Balancer)).unwrap_or_default();
    let linked = links.into_iter().filter(|link| link.mode.is_some());
    let mut attached: BTreeSet<_> = linked.filter_map(|link| link.index).collect();
    let mut sending = maps.sending_devices()?;
    for (port, bond) in maps.bond_ports() {
        attached.extend(attached.contains(&bond).then_some(port));
        sending.extend(sending.contains(&bond).then_some(port));
    }
    let traced = TracedDrops::read(bpffs);
    let read = |&index: &u32| {
        let read = interface_statistics(index).ok()?;
        let (is_attached, sends) = (attached.contains(&index), sending.contains(&index));
        Some(InterfaceStats::new(read, is_attached, sends, traced.of(index)))
    };
    let mut interfaces: Vec<_> = attached.union(&sending).filter_map(read).collect();
    interfaces.sort_by(|a, b| a.interface.cmp(&b.interface));
    Ok(interfaces)
}
