//! What stands in the balancer's maps where a scene is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::{
    ANOTHER_POOL, DEAD, DESCRIPTOR, ECHOES, ERRORS, FIRST_MEMBER, FORMER, Form, GROUPS, HASH_KEY,
    INGRESS, MEMBER_INCARNATION, METER, Member, OUT, Owners, POOL, Remembered, Room, Scene,
    Service, Table, UP,
};
use crate::packets::layout;

impl Scene {
    /// Keys and values of the service map.
    pub fn service_entries(&self) -> Vec<([u8; 20], [u8; 32])> {
        let entries = |service: &Service| {
            let &Service { vip, port, protocol, index, flags } = service;
            let fragments = (flags & 16 != 0).then(|| layout::fragments_key(vip, protocol));
            let keys = [Some(layout::service_key(vip, port, protocol)), fragments];
            keys.into_iter()
                .flatten()
                .map(move |key| (key, layout::service(&key, index, POOL, flags)))
        };
        self.services.iter().flat_map(entries).collect()
    }

    /// Words of the addresses that have a service of any port.
    fn any_ports(&self) -> BTreeMap<u32, u64> {
        let mut words = BTreeMap::new();
        for service in self.services.iter().filter(|service| service.port == 0) {
            let (word, bit) = layout::any_port(service.vip);
            *words.entry(word).or_default() |= 1_u64 << bit;
        }
        words
    }

    /// Keys of the set of addresses.
    pub fn address_entries(&self) -> BTreeSet<[u8; 20]> {
        self.services.iter().map(|service| layout::vip_key(service.vip)).collect()
    }

    /// Elements of the arrays: map, index, value.
    pub fn elements(&self) -> Vec<(&'static str, u32, Vec<u8>)> {
        let mut elements: Vec<(&'static str, u32, Vec<u8>)> = Vec::new();
        let mut add = |map, index, value: &[u8]| elements.push((map, index, value.to_vec()));
        let (current, former) = self.pool_word;
        add("POOLS", POOL, &layout::pool(current, former, self.gate_is_open));
        for (index, word) in self.any_ports() {
            add("ANY_PORTS", index, &word.to_le_bytes());
        }
        add("METERS", ERRORS, &self.errors.meter());
        add("METERS", ECHOES, &self.echoes.meter());
        let mut heads = Vec::new();
        for (number, region) in self.regions.iter().enumerate() {
            let first = FIRST_MEMBER + 100 * number as u32;
            let (table, count) = (region.table, region.members.len() as u32);
            let head = layout::group_head(table.reference, table.slots, first, count);
            heads.push(head);
            let meter = METER + number as u32;
            add("GROUPS", GROUPS[number], &layout::group(&head, number as u32, meter));
            add("METERS", meter, &region.room.meter());
            for (place, standby) in (8 * GROUPS[number]..).zip(region.standbys) {
                add("STANDBYS", place, &layout::standby(standby));
            }
            for (index, member) in (first..).zip(&region.members) {
                let Member {
                    backend,
                    address,
                    state,
                    ramp,
                    next_hop,
                    mtu,
                    link,
                    on_link,
                    incarnation,
                } = *member;
                let word = layout::member(backend, MEMBER_INCARNATION, state, ramp, next_hop);
                add("MEMBERS", index, &word);
                add(
                    "BACKENDS",
                    backend,
                    &layout::backend(address, incarnation, mtu, link, on_link),
                );
            }
        }
        // Only theirs: what SYNs of former rows left is of hosts that are gone.
        for Remembered { member: (region, rank), .. } in &self.remembered {
            let host = &self.regions[*region].members[usize::from(*rank)];
            // To be out of home is a matter of versions.
            let (state, pool) = match self.owners {
                Owners::This => (host.state & !OUT, POOL),
                Owners::Another => (host.state & !OUT, ANOTHER_POOL),
                Owners::Several(_) => (DEAD, u32::MAX),
            };
            let word = layout::host(MEMBER_INCARNATION, state, host.next_hop, pool);
            add("HOSTS", host.backend, &word);
        }
        let (v4, v6) = (self.sources.0.octets(), self.sources.1.octets());
        let limited = self.regions.iter().any(|region| region.room != Room::Unlimited);
        let mut order: Vec<usize> = (0..heads.len()).collect();
        for index in [DESCRIPTOR, FORMER] {
            let first = order.first().copied().unwrap_or(0);
            let home = heads.get(first).copied().unwrap_or([0; 16]);
            let form = match self.form {
                Form::IpInIp => 0,
                Form::Gue(port) => 8 | u32::from(port) << 16,
                Form::Direct => 16,
            };
            let limits = (u32::from(limited) | form, METER + first as u32);
            let groups: Vec<u32> = order.iter().map(|&region| GROUPS[region]).collect();
            let descriptor = layout::descriptor(HASH_KEY, &home, v6, v4, limits, &groups);
            add("DESCRIPTORS", index, &descriptor);
            order.reverse();
        }
        for (&index, &(mac, interface)) in &self.next_hops {
            add("NEXT_HOPS", index.into(), &layout::next_hop(mac, interface));
        }
        for (&index, &mac) in &self.interfaces {
            let vlan = self.vlans.get(&index).copied().unwrap_or(0);
            add("INTERFACES", index.into(), &layout::interface(mac, vlan));
        }
        add("BONDS", INGRESS.into(), &u64::from(self.bond.unwrap_or(0)).to_le_bytes());
        elements
    }

    /// Elements of the map of backends that several pools have.
    pub fn shared_entries(&self) -> BTreeMap<[u8; 8], [u8; 8]> {
        let Owners::Several(state) = self.owners else { return BTreeMap::new() };
        let states = [(POOL, state), (ANOTHER_POOL, UP)];
        let states = states.into_iter().filter(|(_, state)| *state != DEAD);
        let entries =
            self.remembered.iter().flat_map(|Remembered { member: (region, rank), .. }| {
                let backend = self.regions[*region].members[usize::from(*rank)].backend;
                states
                    .clone()
                    .map(move |(pool, state)| layout::shared_backend(pool, backend, state))
            });
        entries.collect()
    }

    /// What is remembered: key and value, seen two seconds ago, for the packet path's clock is a little behind.
    pub fn remembered_entries(&self) -> Vec<(Vec<u8>, [u8; 8])> {
        let entry = |remembered: &Remembered| {
            let &Remembered { flow, protocol, member: (region, rank), incarnation } = remembered;
            let backend = self.regions[region].members[usize::from(rank)].backend;
            let value = layout::exception(backend, incarnation, (now() >> 30) - 2);
            (layout::flow_key(flow.client, flow.vip, protocol), value)
        };
        self.remembered.iter().map(entry).collect()
    }

    /// Slots that hold something else than strangers: table, slot, value.
    pub fn slots(&self) -> impl Iterator<Item = (Table, u32, [u8; 8])> + '_ {
        self.regions.iter().flat_map(|region| {
            let lists = region.lists.iter();
            lists.map(|(&slot, &list)| (region.table, slot, layout::slot(list)))
        })
    }
}

impl Room {
    /// The meter of such a region: of one connection a minute, the last of which came half a minute
    /// too early.
    fn meter(self) -> [u8; 64] {
        const SECOND: u64 = 16_000_000_000;
        let now = now() * 16;
        match self {
            Self::Unlimited => layout::meter(0, 0, 0),
            Self::Full => layout::meter(60 * SECOND, 16, now + 30 * SECOND),
            Self::Closed => layout::meter(u64::MAX >> 24, u32::MAX >> 8, 0),
        }
    }
}

/// Now, in nanoseconds of the monotonic clock.
fn now() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    now.as_nanos() as u64
}
