//! A configuration in pieces that are named by a digest of their content: generations share the pieces that are equal, and
//! a commit writes only new ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh64::xxh64;

use lb_model::{Configuration, Name, Pool};
use lb_pieces::{Digest, MAX_PIECE};

/// Groups of pools. Each group is a piece, so a change of a pool writes its group anew.
const BUCKETS: u64 = 256;

/// Content of pieces.
pub(super) type Contents = BTreeMap<Digest, Vec<u8>>;

/// Which pieces a configuration consists of. One after the other they are its message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PieceList {
    /// The configuration without its pools.
    settings: Vec<Digest>,
    /// Pools, by the group that a hash of their name chooses.
    pools: BTreeMap<u8, Vec<Digest>>,
}

impl PieceList {
    /// The pieces of a configuration. Adds the content of those that may not be among `before`, the pieces of another
    /// configuration: groups in which no pool differs are not encoded.
    pub(super) fn new(
        before: Option<(&Configuration, &Self)>,
        configuration: &Configuration,
        contents: &mut Contents,
    ) -> Self {
        let settings = split(&lb_config::encode_without_pools(configuration), contents);
        let mut changed: BTreeMap<u8, bool> = BTreeMap::new();
        for (name, pool) in &configuration.pools {
            let bucket = bucket(name);
            let former = before.and_then(|(before, _)| before.pools.get(name));
            *changed.entry(bucket).or_default() |= former != Some(pool);
        }
        let gone = before.into_iter().flat_map(|(before, _)| before.pools.keys());
        for name in gone.filter(|name| !configuration.pools.contains_key(*name)) {
            changed.insert(bucket(name), true);
        }
        let pools = pool_groups(configuration).into_iter().map(|(bucket, pools)| {
            let same = before.and_then(|(_, list)| list.pools.get(&bucket));
            let same = same.filter(|_| changed.get(&bucket) == Some(&false));
            let pieces = match same {
                Some(same) => same.clone(),
                None => split(&encode_pools(&pools), contents),
            };
            (bucket, pieces)
        });
        Self { pools: pools.collect(), settings }
    }

    /// The pieces of a configuration whose bytes are kept as they are.
    pub(super) fn from_bytes(bytes: &[u8], contents: &mut Contents) -> Self {
        Self { settings: split(bytes, contents), pools: BTreeMap::new() }
    }

    /// In the order of the message. A digest may occur twice.
    pub(super) fn digests(&self) -> impl Iterator<Item = &Digest> {
        self.settings.iter().chain(self.pools.values().flatten())
    }
}

/// Pools that are written together.
pub(super) type PoolGroup<'c> = Vec<(&'c Name, &'c Pool)>;

/// The pools of a configuration in groups, so that a change of a pool concerns no other group.
pub(super) fn pool_groups(configuration: &Configuration) -> BTreeMap<u8, PoolGroup<'_>> {
    let mut groups: BTreeMap<u8, PoolGroup<'_>> = BTreeMap::new();
    for (name, pool) in &configuration.pools {
        groups.entry(bucket(name)).or_default().push((name, pool));
    }
    groups
}

/// The bytes of a configuration with these pools and nothing else.
pub(super) fn encode_pools(pools: &PoolGroup<'_>) -> Vec<u8> {
    let encoded = pools.iter().map(|(name, pool)| lb_config::encode_pool(name, pool));
    encoded.collect::<Vec<_>>().concat()
}

fn bucket(name: &Name) -> u8 {
    u8::try_from(xxh64(name.as_str().as_bytes(), 0) % BUCKETS).unwrap_or_default()
}

fn split(bytes: &[u8], contents: &mut Contents) -> Vec<Digest> {
    let pieces = bytes.chunks(MAX_PIECE).map(|piece| {
        let digest = Digest::new(piece);
        contents.entry(digest).or_insert_with(|| piece.to_vec());
        digest
    });
    pieces.collect()
}
