//! What the pinned maps of balancer and receiver hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use lb_base::error_chain;
use lb_common::abi::{
    form::Form,
    next_hop::NextHopWord,
    pool::Descriptor,
    service::address_of,
    verdict::{Action, Verdict},
};
use lb_inspect::{
    names::Names,
    stats::{InterfaceStats, interfaces},
};
use lb_maps::{MapsError, PinnedMaps, ReceiverMaps, directory::Directory};
use lb_model::Ipv4Prefix;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BalancerFacts {
    /// The daemon's own region, from the directory of names.
    pub(crate) region: Option<String>,
    /// Addresses of the services.
    pub(crate) vips: BTreeSet<IpAddr>,
    /// Those of which packets that no service takes are left to the host.
    pub(crate) passing_vips: BTreeSet<IpAddr>,
    /// Backends in order of address.
    pub(crate) backends: Vec<PinnedBackend>,
    /// The prefix that flows have their own source of IPv4 tunnels from.
    pub(crate) source_prefix: Option<Ipv4Prefix>,
    /// Packets dropped because they did not fit the MTU.
    pub(crate) too_large: u64,
    /// Packets that the program counted as transmitted or redirected.
    pub(crate) sent: u64,
    /// Interfaces that the program is attached to or sends out of.
    pub(crate) interfaces: Vec<SendingInterface>,
}

/// An interface with what kernel and driver count of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SendingInterface {
    pub(crate) stats: InterfaceStats,
    /// Whether what it drops after the program grew while it was watched.
    pub(crate) is_growing: bool,
}

/// A backend in the pinned maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PinnedBackend {
    pub(crate) address: IpAddr,
    /// Largest outer packet to it, bytes.
    pub(crate) mtu: u32,
    /// Most bytes that encapsulation adds.
    pub(crate) overhead: u32,
    /// Whether packets are sent without a tunnel.
    pub(crate) direct: bool,
    /// MAC address and interface of the next hop; `None`: unresolved.
    pub(crate) hop: Option<([u8; 6], u32)>,
    /// Source of its tunnels, of a prefix the first address; `None`: it has none.
    pub(crate) source: Option<IpAddr>,
}

impl BalancerFacts {
    /// Whether tunnels may come from an address.
    pub(crate) fn has_source(&self, address: IpAddr) -> bool {
        self.backends.iter().any(|backend| backend.source == Some(address))
            || self.source_prefix.is_some_and(|prefix| prefix.contains(address))
    }

    /// What receivers must allow for tunnels to a backend; `None`: it has none.
    pub(crate) fn allowed_source(&self, backend: IpAddr) -> Option<String> {
        let prefix = self.source_prefix.filter(|_| backend.is_ipv4());
        let source = || self.backends.iter().find(|it| it.address == backend)?.source;
        prefix.map(|prefix| prefix.to_string()).or_else(|| Some(source()?.to_string()))
    }

    /// # Errors
    /// The maps cannot be read.
    pub(super) fn read(bpffs: &Path, state_directory: &Path) -> Result<Self, MapsProblem> {
        let names = Names(Directory::read(state_directory).unwrap_or_default());
        let read = || Self::from_maps(bpffs, &PinnedMaps::open(bpffs)?, &names);
        read().map_err(|error| MapsProblem::from(&error))
    }

    fn from_maps(bpffs: &Path, maps: &PinnedMaps, names: &Names) -> Result<Self, MapsError> {
        let vips = maps.services()?.iter().map(|service| service.key.ip()).collect();
        let passing_vips = maps.vips()?.into_iter().filter(|(_, word)| !word.drops_unserved());
        let passing_vips =
            passing_vips.map(|(vip, _)| address_of(&vip.address, vip.version as u8)).collect();
        let (mut backends, mut source_prefix) = (BTreeMap::new(), None);
        for pool in 0..maps.pool_count() {
            let word = maps.pool(pool);
            if word.now() == 0 {
                continue;
            }
            let descriptor = maps.descriptor(word.now());
            let form = descriptor.map_or(Form::IP_IN_IP, |descriptor| descriptor.form());
            if let Some(descriptor) = descriptor {
                source_prefix = source_prefix.or_else(|| prefix(&descriptor));
            }
            for (_, group) in maps.pool_members(pool)?.unwrap_or_default().groups {
                for rank in 0..group.head.member_count {
                    let member = maps.member(group.head.members.saturating_add(rank));
                    let Some(member) = member else { continue };
                    let Some(backend) = maps.backend(member.backend()) else { continue };
                    let address = address_of(&backend.address, backend.version);
                    let entry = maps.next_hop_entry(member.next_hop().into());
                    let hop = NextHopWord(entry.word);
                    let hop = hop.is_resolved().then(|| (hop.mac(), hop.interface().into()));
                    let source = (entry.source != [0; 4] && !form.is_direct())
                        .then(|| address_of(&entry.source, backend.version));
                    let mtu = backend.mtu.into();
                    let overhead = form.overhead(address.is_ipv4()).into();
                    let there = backends.entry(address);
                    let direct = form.is_direct();
                    let there = there.or_insert(PinnedBackend {
                        address,
                        mtu,
                        overhead,
                        direct,
                        hop,
                        source,
                    });
                    there.overhead = there.overhead.max(overhead);
                }
            }
        }
        let verdicts = maps.verdicts()?;
        let too_large = verdicts.iter().find(|(verdict, _)| *verdict == Verdict::TooLarge);
        let sent = verdicts
            .iter()
            .filter(|(verdict, _)| matches!(verdict.action(), Action::Transmit | Action::Redirect));
        Ok(Self {
            sent: sent.map(|(_, counter)| counter.packets).sum(),
            interfaces: watch_drops(|| interfaces(bpffs, maps, names))?,
            region: names.0.own_region.clone(),
            vips,
            passing_vips,
            backends: backends.into_values().collect(),
            source_prefix,
            too_large: too_large.map_or(0, |(_, counter)| counter.packets),
        })
    }
}

/// The prefix of a descriptor's IPv4 sources; `None`: they are one address.
fn prefix(descriptor: &Descriptor) -> Option<Ipv4Prefix> {
    let first = Ipv4Addr::from(descriptor.source_v4.to_ne_bytes());
    let hosts = u32::from_be_bytes(descriptor.source_hosts_v4.to_ne_bytes());
    let bits = hosts.leading_zeros() as u8;
    Ipv4Prefix::new(first, bits).filter(Ipv4Prefix::is_many)
}

/// Reads the interfaces, and watches for a while those that have drops: an old count says nothing about now.
fn watch_drops(
    read: impl Fn() -> Result<Vec<InterfaceStats>, MapsError>,
) -> Result<Vec<SendingInterface>, MapsError> {
    let lost = |stats: &InterfaceStats| {
        (stats.dropped_after_program().unwrap_or(0), stats.link.tx_dropped)
    };
    let first = read()?;
    let is_growing = |now: &InterfaceStats| {
        let was = first.iter().find(|it| it.interface == now.interface);
        was.is_some_and(|was| lost(now) > lost(was))
    };
    let now = watch(&read, |now| now.iter().all(|it| lost(it) == (0, 0) || is_growing(it)))?;
    let sending =
        now.into_iter().map(|stats| SendingInterface { is_growing: is_growing(&stats), stats });
    Ok(sending.collect())
}

/// Why maps cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapsProblem {
    pub(crate) kind: MapsProblemKind,
    pub(crate) why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapsProblemKind {
    /// This program lacks the permission.
    Denied,
    /// A map is missing.
    Incomplete,
    /// The maps changed during each reading.
    Changing,
    /// The maps are from another build, or the kernel refuses.
    Unreadable,
}

impl From<&MapsError> for MapsProblem {
    fn from(error: &MapsError) -> Self {
        let kind = match error {
            MapsError::Permission { .. } => MapsProblemKind::Denied,
            MapsError::Missing { .. } => MapsProblemKind::Incomplete,
            MapsError::Changing { .. } => MapsProblemKind::Changing,
            _ => MapsProblemKind::Unreadable,
        };
        Self { kind, why: error_chain::message(error) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiverFacts {
    /// Prefixes from which tunnels are allowed, such as `10.0.0.2/32`.
    pub(crate) sources: Vec<String>,
    /// VIPs that are allowed.
    pub(crate) vips: Vec<IpAddr>,
    /// Addresses at which tunnels end.
    pub(crate) endpoints: BTreeSet<IpAddr>,
    /// Packets so far in tunnels to other addresses; `None`: their number does not grow.
    pub(crate) not_local: Option<u64>,
    /// Packets so far in tunnels from sources that are not allowed; `None`: their number does not grow.
    pub(crate) not_allowed: Option<u64>,
}

/// How long to watch whether a counter grows.
const WATCH_TIME: Duration = Duration::from_secs(2);

const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl ReceiverFacts {
    /// # Errors
    /// The maps cannot be read.
    pub(super) fn read(bpffs: &Path) -> Result<Self, MapsProblem> {
        let maps = ReceiverMaps::open(bpffs).map_err(|error| MapsProblem::from(&error))?;
        let allowed = maps.allowed().map_err(|error| MapsProblem::from(&error))?;
        let growing = growing(&maps).map_err(|error| MapsProblem::from(&error))?;
        let [not_local, not_allowed] = growing;
        Ok(Self {
            sources: allowed.sources.iter().map(ToString::to_string).collect(),
            vips: allowed.vips.into_iter().collect(),
            endpoints: allowed.endpoints,
            not_local,
            not_allowed,
        })
    }
}

/// The verdicts on tunnels that end here for no reason of the packets' own.
const WATCHED: [Verdict; 2] = [Verdict::TunnelNotLocal, Verdict::SourceNotAllowed];

/// Watches counters for a while, because an old count says nothing about now: those that grow.
fn growing(maps: &ReceiverMaps) -> Result<[Option<u64>; 2], MapsError> {
    let count = || -> Result<[u64; 2], MapsError> {
        let verdicts = maps.verdicts()?;
        let packets = |watched| {
            let own = verdicts.iter().filter(|(verdict, _)| *verdict == watched);
            own.map(|(_, counter)| counter.packets).sum()
        };
        Ok(WATCHED.map(packets))
    };
    let first = count()?;
    let grown =
        |now: &[u64; 2]| [0, 1].map(|at| (first[at] > 0 && now[at] > first[at]).then_some(now[at]));
    let is_over = |now: &[u64; 2]| {
        grown(now).iter().zip(first).all(|(grown, first)| grown.is_some() || first == 0)
    };
    Ok(grown(&watch(count, is_over)?))
}

/// Reads until it is over, but only for a while, and returns what it read last.
fn watch<T>(
    read: impl Fn() -> Result<T, MapsError>,
    is_over: impl Fn(&T) -> bool,
) -> Result<T, MapsError> {
    let begun = Instant::now();
    loop {
        let now = read()?;
        if is_over(&now) || begun.elapsed() >= WATCH_TIME {
            return Ok(now);
        }
        thread::park_timeout(POLL_INTERVAL);
    }
}
