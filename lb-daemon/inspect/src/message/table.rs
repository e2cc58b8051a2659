//! Who owns the slots of tables, as messages and back.

use spillway_proto::v1;

use crate::pool_tables::{GroupTable, MemberSlots, PoolTable};

/// Tables with the generation that their names are of.
pub fn tables(pools: Vec<PoolTable>, generation: u64) -> v1::TableResponse {
    v1::TableResponse { generation, pools: pools.into_iter().map(Into::into).collect() }
}

/// The tables that a daemon answered with.
pub fn pool_tables(answer: v1::TableResponse) -> Vec<PoolTable> {
    answer.pools.into_iter().map(Into::into).collect()
}

impl From<PoolTable> for v1::PoolTable {
    fn from(PoolTable { pool, regions }: PoolTable) -> Self {
        Self { pool, groups: regions.into_iter().map(Into::into).collect() }
    }
}

impl From<v1::PoolTable> for PoolTable {
    fn from(v1::PoolTable { pool, groups }: v1::PoolTable) -> Self {
        Self { pool, regions: groups.into_iter().map(Into::into).collect() }
    }
}

impl From<GroupTable> for v1::GroupTable {
    fn from(group: GroupTable) -> Self {
        let GroupTable { region, slots, checksum, slots_unserved_now, members } = group;
        let backends = members.into_iter().map(Into::into).collect();
        Self { region, slots, checksum, slots_unserved_now, backends }
    }
}

impl From<v1::GroupTable> for GroupTable {
    fn from(group: v1::GroupTable) -> Self {
        let v1::GroupTable { region, slots, checksum, slots_unserved_now, backends } = group;
        let members = backends.into_iter().map(Into::into).collect();
        Self { region, slots, checksum, slots_unserved_now, members }
    }
}

impl From<MemberSlots> for v1::BackendSlots {
    fn from(MemberSlots { backend, slots, slots_now, accepts, next_hop }: MemberSlots) -> Self {
        let (accepts, next_hop) = (accepts.into_owned(), next_hop.unwrap_or_default());
        Self { address: backend, slots, slots_now, accepts, next_hop }
    }
}

impl From<v1::BackendSlots> for MemberSlots {
    fn from(backend: v1::BackendSlots) -> Self {
        let v1::BackendSlots { address, slots, slots_now, accepts, next_hop } = backend;
        let next_hop = Some(next_hop).filter(|next_hop| !next_hop.is_empty());
        Self { backend: address, slots, slots_now, accepts: accepts.into(), next_hop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_back_as_they_were_sent() {
        let member = |address: &str, next_hop: Option<&str>| MemberSlots {
            backend: address.into(),
            slots: 32_768,
            slots_now: 65_537,
            accepts: "up".into(),
            next_hop: next_hop.map(Into::into),
        };
        let group = GroupTable {
            region: "eu".into(),
            slots: 65_537,
            checksum: "0123456789abcdef".into(),
            slots_unserved_now: 7,
            members: vec![
                member("10.0.0.1", Some("02:00:00:00:00:01 on eth0")),
                member("2001:db8::1", None),
            ],
        };
        let pools = vec![
            PoolTable { pool: "empty".into(), regions: Vec::new() },
            PoolTable { pool: "web".into(), regions: vec![group] },
        ];
        let sent = tables(pools.clone(), 3);
        assert_eq!(sent.generation, 3);
        assert_eq!(pool_tables(sent), pools);
    }
}
