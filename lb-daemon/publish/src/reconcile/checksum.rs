//! One digest over everything that the packet path decides by.

use std::collections::{BTreeMap, HashMap, HashSet};

use lb_common::abi::{pod::bytes_of, slot::TableRef};
use xxhash_rust::xxh64::Xxh64;

use lb_maps::{Access, Maps, MapsError, PoolView, SlotTable, TableName};
use lb_model::maglev;

/// Checksums of tables by place and name. What a table is follows from its name.
#[derive(Clone, Debug, Default)]
pub struct TableChecksums(HashMap<(TableRef, Option<TableName>), u64>);

impl TableChecksums {
    pub fn get(&mut self, table: &SlotTable) -> u64 {
        *self.0.entry(key(table)).or_insert_with(|| {
            let words: Vec<u64> = table.slots().map(|slot| slot.0).collect();
            maglev::checksum(&words)
        })
    }

    /// Forgets tables that are gone.
    fn retain<'a>(&mut self, pools: impl Iterator<Item = &'a PoolView>) {
        let there: HashSet<_> = pools.flat_map(|pool| pool.tables.values()).map(key).collect();
        self.0.retain(|key, _| key.1.is_some() && there.contains(key));
    }
}

fn key(table: &SlotTable) -> (TableRef, Option<TableName>) {
    (table.at(), table.name())
}

/// Digest over the services and pools in the maps: keys and modes of services; hash key, order of regions, members,
/// tables and flags of pools.
///
/// It does not contain indices, so it depends only on the configuration and not on earlier ones, and is equal on all
/// balancers with the same configuration, own region and hash key. It leaves out what differs between balancers (source
/// addresses, next hops, MTU, what of VIPs is left to the host) and what changes without an apply (health, and the limits that follow it). But a region
/// that is marked out comes last in the order.
pub fn checksum<M: Access>(maps: &Maps<M>, tables: &mut TableChecksums) -> Result<u64, MapsError> {
    let pools = pool_checksums(maps, tables)?;
    let mut hash = Xxh64::new(0);
    for service in maps.services()? {
        hash.update(bytes_of(&service.key));
        hash.update(&service.flags.to_le_bytes());
        hash.update(&pools.get(&service.pool).unwrap_or(&0).to_le_bytes());
    }
    let mut digests: Vec<u64> = pools.into_values().collect();
    digests.sort_unstable();
    for digest in digests {
        hash.update(&digest.to_le_bytes());
    }
    Ok(hash.digest())
}

/// The same of each pool, by its index.
pub fn pool_checksums<M: Access>(
    maps: &Maps<M>,
    tables: &mut TableChecksums,
) -> Result<BTreeMap<u32, u64>, MapsError> {
    let mut views = BTreeMap::new();
    for index in 0..maps.pool_count() {
        views.extend(maps.pool_view(index)?.map(|pool| (index, pool)));
    }
    tables.retain(views.values());
    Ok(views.iter().map(|(index, pool)| (*index, pool_checksum(maps, pool, tables))).collect())
}

fn pool_checksum<M: Access>(maps: &Maps<M>, pool: &PoolView, tables: &mut TableChecksums) -> u64 {
    let mut hash = Xxh64::new(1);
    for key in pool.descriptor.hash_key {
        hash.update(&key.to_le_bytes());
    }
    hash.update(&pool.descriptor.flags.to_le_bytes());
    for (_, group) in &pool.groups {
        hash.update(&group.head.member_count.to_le_bytes());
        for rank in 0..group.head.member_count {
            let member = maps.member(group.head.members.saturating_add(rank));
            let backend = member.and_then(|member| pool.backends.get(&member.backend()));
            if let Some(backend) = backend {
                backend.address.iter().for_each(|word| hash.update(bytes_of(word)));
                hash.update(&[backend.version]);
            }
        }
        let table = pool.tables.get(&TableRef(group.head.table));
        hash.update(&table.map_or(0, |table| tables.get(table)).to_le_bytes());
    }
    hash.digest()
}
