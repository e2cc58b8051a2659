//! A generation as rows of the database, so that a commit writes those that a change concerns, and no others.

use std::{collections::BTreeMap, hash::Hasher, time::SystemTime};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh64::Xxh64;

use super::{Generation, Revision, error::Cause};
use lb_model::ids::Ids;

/// [`Description`] in JSON; empty before the first generation.
pub(super) const GENERATION: &str = "generation";
/// The configuration without its pools.
pub(super) const CONFIGURATION: &str = "configuration";
/// Followed by the name of a pool: the pool, in a form that can follow [`CONFIGURATION`].
const POOL: &str = "pool/";
/// Followed by the number of a part: [`Ids`] of it, in JSON.
const IDS: &str = "ids/";

/// Rows by key. In a change, a row without a value goes.
pub(super) type Rows<V> = BTreeMap<String, V>;

/// A generation without its configuration and the numbers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) number: u64,
    pub(super) applied_at: SystemTime,
    /// Stores from before schema revisions have none.
    #[serde(default = "first")]
    pub(super) schema: Revision,
}

fn first() -> Revision {
    Revision::FIRST
}

/// All rows of a generation, or those that differ from the generation that is stored.
pub(super) fn changed(
    before: Option<&Generation>,
    after: &Generation,
) -> Result<Rows<Option<Vec<u8>>>, Cause> {
    let Generation { number, applied_at, configuration, ids, schema } = after;
    let description = Description { number: *number, applied_at: *applied_at, schema: *schema };
    let mut rows = Rows::new();
    rows.insert(GENERATION.into(), Some(json(&description)?));
    rows.insert(CONFIGURATION.into(), Some(lb_config::encode_without_pools(configuration)));
    let former = before.map(|before| &before.configuration.pools);
    for (name, pool) in &configuration.pools {
        if former.and_then(|pools| pools.get(name)) != Some(pool) {
            rows.insert(format!("{POOL}{name}"), Some(lb_config::encode_pool(name, pool)));
        }
    }
    let gone = former.into_iter().flat_map(BTreeMap::keys);
    let gone = gone.filter(|name| !configuration.pools.contains_key(*name));
    rows.extend(gone.map(|name| (format!("{POOL}{name}"), None)));
    let parts = match before {
        Some(before) => ids.changed_parts(&before.ids),
        None => ids.parts(),
    };
    for (part, ids) in parts {
        let value = if ids == Ids::default() { None } else { Some(json(&ids)?) };
        rows.insert(format!("{IDS}{part}"), value);
    }
    Ok(rows)
}

/// The numbers in rows.
pub(super) fn ids(rows: &Rows<Vec<u8>>) -> Result<Ids, Cause> {
    let parts = rows.iter().filter(|(key, _)| key.starts_with(IDS));
    let parts = parts.map(|(_, text)| serde_json::from_slice(text));
    let parts: Result<Vec<Ids>, _> = parts.collect();
    Ok(Ids::join(parts.map_err(|error| Cause::Damaged(error.to_string()))?))
}

/// The configuration in rows, as bytes of one message.
pub(super) fn configuration(rows: &Rows<Vec<u8>>) -> Vec<u8> {
    let settings = rows.get(CONFIGURATION).into_iter();
    let pools = rows.iter().filter(|(key, _)| key.starts_with(POOL)).map(|(_, pool)| pool);
    settings.chain(pools).flatten().copied().collect()
}

/// What a row adds to the checksum: a sum, so that a change of one row reads no other.
pub(super) fn row_hash(key: &str, value: &[u8]) -> u64 {
    let mut state = Xxh64::new(0);
    for part in [key.as_bytes(), value] {
        state.write(&(part.len() as u64).to_le_bytes());
        state.write(part);
    }
    state.finish()
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Cause> {
    serde_json::to_vec(value).map_err(|error| Cause::write(redb::StorageError::Io(error.into())))
}
