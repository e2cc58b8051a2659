use std::{fs, net::IpAddr, path::PathBuf};

use lb_daemon::{
    causes,
    dataplane::{Linked, PinnedMaps, Pins, ReceiverMaps, Role, links},
};

use super::{Holder, Places};

/// A role with pins of this version.
#[derive(Clone, Debug)]
pub(in super::super) struct Installed {
    pub(in super::super) role: Role,
    /// Its interfaces.
    pub(in super::super) links: Vec<Linked>,
    /// Its daemon; `None`: none runs.
    pub(in super::super) holder: Option<Holder>,
    /// Why its maps cannot be read; `None`: they can.
    pub(in super::super) broken: Option<String>,
}

/// What a receiver lets through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Receiver {
    /// Prefixes that tunnels may come from, as `10.0.0.2/32`.
    pub(in super::super) sources: Vec<String>,
    /// VIPs that this host serves.
    pub(in super::super) vips: Vec<IpAddr>,
}

impl Installed {
    /// The pins of a role, where it has any.
    pub(super) fn read(places: &Places, role: Role) -> Option<Self> {
        let pins = Pins::new(&places.bpffs, role);
        pins.root().is_dir().then(|| Self {
            role,
            links: links(&pins).unwrap_or_default(),
            holder: Holder::of(pins.root()),
            broken: match role {
                Role::Balancer => PinnedMaps::open(&places.bpffs).map(drop),
                Role::Receiver => ReceiverMaps::open(&places.bpffs).map(drop),
            }
            .err()
            .map(|error| causes::of(&error)),
        })
    }

    /// Names of its interfaces.
    pub(in super::super) fn names(&self) -> Vec<String> {
        self.links.iter().map(|link| link.name.clone()).collect()
    }
}

impl Receiver {
    pub(super) fn read(places: &Places) -> Option<Self> {
        let allowed = ReceiverMaps::open(&places.bpffs).ok()?.allowed().ok()?;
        Some(Self {
            sources: allowed.sources.iter().map(ToString::to_string).collect(),
            vips: allowed.vips.into_iter().collect(),
        })
    }
}

/// Directories of pins under the BPF file system that this version does not know.
pub(super) fn others(places: &Places) -> Vec<PathBuf> {
    let own: Vec<_> = Role::ALL.map(|role| Pins::new(&places.bpffs, role).root().to_owned()).into();
    let Ok(there) = fs::read_dir(places.bpffs.join("spillway")) else { return Vec::new() };
    let mut others: Vec<_> = there
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !own.contains(path))
        .collect();
    others.sort();
    others
}
