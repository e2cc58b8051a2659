//! A pool with its groups, members and tables.

use std::net::IpAddr;

use anyhow::Result;
use lb_common::abi::{
    arrays::Array,
    backend::{Backend, BackendStateWord},
    member::{Accepts, FULL_RAMP, MemberWord},
    pool::{Descriptor, Group, GroupHead, PoolLine, PoolWord},
    service::address_words,
    zone::ZoneRange,
};
use lb_maps::{Arrays, MappingMut};

use super::table::Chunks;

/// A pool to publish.
pub(super) struct PoolPlan {
    /// Index of its line; its descriptor has the next one, because descriptor 0 is never published.
    pub(super) pool: u32,
    /// Its groups, nearest region first.
    pub(super) groups: Vec<GroupPlan>,
    /// Those of the version by which new connections are placed, during a remap; its descriptor follows the other one, so
    /// that no other pool has it. Groups have tables of their own in it.
    pub(super) next: Vec<GroupPlan>,
    /// Flags of the descriptors.
    pub(super) flags: u32,
    /// What every member accepts.
    pub(super) accepts: Accepts,
    /// Its zones.
    pub(super) zones: ZoneRange,
    /// Not 0: some connection may be displaced.
    pub(super) last_displaced: u64,
}

/// A group of it.
pub(super) struct GroupPlan {
    /// Its index.
    pub(super) group: u32,
    /// Number of its table. Groups of one pool may share it: that of the first is made.
    pub(super) table: u32,
    /// Its limiter; 0: none.
    pub(super) limiter: u32,
    /// Index of its first member.
    pub(super) members: u32,
    /// Number of its first backend.
    pub(super) backends: u32,
    /// Addresses of its backends.
    pub(super) addresses: Vec<IpAddr>,
}

/// Writes all that packets of the pool read, its line last.
pub(super) fn publish(
    arrays: &Arrays<MappingMut>,
    chunks: &mut Chunks,
    plan: &PoolPlan,
) -> Result<()> {
    let now = plan.pool + 1;
    version(arrays, chunks, plan, &plan.groups, now)?;
    let next = if plan.next.is_empty() { 0 } else { now + 1 };
    if next != 0 {
        version(arrays, chunks, plan, &plan.next, next)?;
    }
    let word = PoolWord::new(now, next).0;
    let (cleared, last_displaced) = (0, plan.last_displaced);
    let line = PoolLine { word, cleared, last_displaced, zones: plan.zones.0 };
    arrays.view(Array::Pools).set(plan.pool, &line);
    Ok(())
}

/// Writes a version of a pool.
fn version(
    arrays: &Arrays<MappingMut>,
    chunks: &mut Chunks,
    plan: &PoolPlan,
    plans: &[GroupPlan],
    index: u32,
) -> Result<()> {
    let mut heads: Vec<(u32, GroupHead)> = Vec::new();
    for group in plans {
        let made = heads.iter().find(|(table, _)| *table == group.table).map(|(_, head)| *head);
        let (table, slots) = match made {
            Some(GroupHead { table, slots, .. }) => (table, slots),
            None => chunks.make(&group.addresses)?,
        };
        let member_count = group.addresses.len() as u32;
        let head = GroupHead { table, slots, members: group.members, member_count };
        let region = heads.len() as u32;
        let value = Group { head, region, limiter: group.limiter, reserved: [0; 2] };
        arrays.view(Array::Groups).set(group.group, &value);
        members(arrays, group, plan);
        heads.push((group.table, head));
    }
    let mut groups = [0; 8];
    for (place, group) in groups.iter_mut().zip(plans) {
        *place = group.group;
    }
    let descriptor = Descriptor {
        hash_key: [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210],
        home: heads[0].1,
        source_v4: 0,
        source_hosts_v4: 0,
        flags: plan.flags,
        home_limiter: plans[0].limiter,
        groups,
        group_count: plans.len() as u32,
        spare: [0; 11],
    };
    arrays.view(Array::Descriptors).set(index, &descriptor);
    Ok(())
}

/// The members of a group, and their backends.
fn members(arrays: &Arrays<MappingMut>, group: &GroupPlan, plan: &PoolPlan) {
    for (n, address) in (0..).zip(&group.addresses) {
        let backend = group.backends + n;
        let value = Backend {
            address: address_words(*address),
            version: if address.is_ipv6() { 6 } else { 4 },
            incarnation: 0,
            mtu: 1500,
            on_link: 1,
            reserved: [0; 5],
        };
        arrays.view(Array::Backends).set(backend, &value);
        let word =
            MemberWord::new(backend, 0, plan.accepts, FULL_RAMP, 1).with_pool_accepts(plan.accepts);
        arrays.view(Array::Members).set(group.members + n, &word.0);
        let state = BackendStateWord::new(0, plan.accepts, 1, plan.pool);
        arrays.view(Array::BackendStates).set(backend, &state.0);
    }
}
