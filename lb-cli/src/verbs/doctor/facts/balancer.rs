use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_common::abi::{
    form::Form,
    service::{IPV4, IPV6, address_of},
    verdict::Verdict,
};
use lb_daemon::{
    dataplane::{MapsError, PinnedMaps},
    directory::Directory,
};

use super::{Broken, Places};

/// What a balancer's pinned maps say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Balancer {
    /// The daemon's own region, by the directory of names.
    pub(in super::super) region: Option<String>,
    /// Addresses of its services.
    pub(in super::super) vips: BTreeSet<IpAddr>,
    /// Its backends, by address.
    pub(in super::super) backends: Vec<Backend>,
    /// Source addresses of its tunnels.
    pub(in super::super) sources: BTreeSet<IpAddr>,
    /// Packets that were dropped because they did not fit.
    pub(in super::super) too_large: u64,
}

/// A backend as the packet program has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Backend {
    pub(in super::super) address: IpAddr,
    /// Largest outer packet towards it, bytes.
    pub(in super::super) mtu: u32,
    /// Bytes that a packet grows by on its way there, at most.
    pub(in super::super) overhead: u32,
    /// Whether packets go to it without a tunnel.
    pub(in super::super) direct: bool,
    /// Its next hop's MAC and interface; `None`: unresolved.
    pub(in super::super) hop: Option<([u8; 6], u32)>,
}

impl Balancer {
    /// # Errors
    /// The maps cannot be read.
    pub(super) fn read(places: &Places) -> Result<Self, Broken> {
        let names = Directory::read(&places.state_directory).unwrap_or_default();
        let read = || Self::of(&PinnedMaps::open(&places.bpffs)?, names.own_region);
        read().map_err(|error| Broken::from(&error))
    }

    fn of(maps: &PinnedMaps, region: Option<String>) -> Result<Self, MapsError> {
        let vips = maps.services()?.iter().map(|service| service.key.ip()).collect();
        let (mut backends, mut sources) = (BTreeMap::new(), BTreeSet::new());
        for pool in 0..maps.pool_count() {
            let word = maps.pool(pool);
            if word.current() == 0 {
                continue;
            }
            let descriptor = maps.descriptor(word.current());
            let form = descriptor.map_or(Form::IP_IN_IP, |descriptor| descriptor.form());
            if let Some(descriptor) = descriptor {
                let v4 = [0, 0, lb_common::abi::service::V4_MAPPED, descriptor.source_v4];
                let given = [
                    (v4, IPV4, descriptor.source_v4 != 0),
                    (descriptor.source_v6, IPV6, descriptor.source_v6 != [0; 4]),
                ];
                sources.extend(
                    given.iter().filter(|s| s.2).map(|(words, v, _)| address_of(words, *v)),
                );
            }
            for (_, group) in maps.pool_members(pool)?.unwrap_or_default().groups {
                for rank in 0..group.head.member_count {
                    let member = maps.member(group.head.members.saturating_add(rank));
                    let Some(member) = member else { continue };
                    let Some(backend) = maps.backend(member.backend()) else { continue };
                    let address = address_of(&backend.address, backend.version);
                    let hop = maps.next_hop(member.next_hop().into());
                    let hop = hop.is_resolved().then(|| (hop.mac(), hop.interface().into()));
                    let mtu = backend.mtu.into();
                    let overhead = form.overhead(address.is_ipv4()).into();
                    let there = backends.entry(address);
                    let direct = form.is_direct();
                    let there = there.or_insert(Backend { address, mtu, overhead, direct, hop });
                    there.overhead = there.overhead.max(overhead);
                }
            }
        }
        let verdicts = maps.verdicts()?;
        let too_large = verdicts.iter().find(|(verdict, _)| *verdict == Verdict::TooLarge);
        Ok(Self {
            region,
            vips,
            backends: backends.into_values().collect(),
            sources,
            too_large: too_large.map_or(0, |(_, counter)| counter.packets),
        })
    }
}
