//! Formats 1 and 2, which keep the current generation alone. They are read, and the next commit replaces them.

use std::{hash::Hasher, time::SystemTime};

use serde::Deserialize;
use xxhash_rust::xxh64::Xxh64;

use super::{
    Revision, Series,
    error::Cause,
    pieces::{Contents, PieceList},
    rows::{self, CHECKSUM, Description, FORMAT, HASH_KEY, Rows, row_hash},
};
use lb_model::ids::Ids;

/// The format in which one row has the whole configuration.
pub(super) const ONE_ROW: u32 = 1;
/// The format in which each pool has a row.
pub(super) const ROW_EACH: u32 = 2;

/// [`EarlierDescription`] in JSON; empty before the first generation.
const GENERATION: &str = "generation";
/// The configuration; in format 2 without its pools.
const CONFIGURATION: &str = "configuration";
/// Followed by the name of a pool: the pool, in a form that can follow [`CONFIGURATION`].
const POOL: &str = "pool/";

#[derive(Deserialize)]
struct EarlierDescription {
    number: u64,
    applied_at: SystemTime,
    /// Stores from before schema revisions have none.
    #[serde(default = "first")]
    schema: Revision,
    /// Only in format 1.
    ids: Option<Ids>,
}

fn first() -> Revision {
    Revision::FIRST
}

/// A generation of an earlier format, with the pieces that the current format has of it.
pub(super) struct Earlier {
    pub(super) description: Description,
    pub(super) ids: Ids,
    pub(super) contents: Contents,
}

/// What the checksum must be.
pub(super) fn checksum(format: u32, rows: &Rows<Vec<u8>>) -> Result<u64, Cause> {
    if format == ROW_EACH {
        let rows = rows.iter().filter(|(key, _)| *key != CHECKSUM);
        return Ok(rows.map(|(key, value)| row_hash(key, value)).fold(0, u64::wrapping_add));
    }
    let mut state = Xxh64::new(0);
    for name in [FORMAT, HASH_KEY, GENERATION, CONFIGURATION] {
        let value = value(rows, name)?;
        state.write(&(value.len() as u64).to_le_bytes());
        state.write(value);
    }
    Ok(state.finish())
}

/// The generation; `None` before the first.
pub(super) fn read(rows: &Rows<Vec<u8>>) -> Result<Option<Earlier>, Cause> {
    let description = value(rows, GENERATION)?;
    if description.is_empty() {
        return Ok(None);
    }
    let EarlierDescription { number, applied_at, schema, ids } =
        serde_json::from_slice(description).map_err(|error| Cause::Damaged(error.to_string()))?;
    let ids = match ids {
        Some(ids) => ids,
        None => rows::ids(rows)?,
    };
    let settings = rows.get(CONFIGURATION).into_iter();
    let pools = rows.iter().filter(|(key, _)| key.starts_with(POOL)).map(|(_, pool)| pool);
    let bytes: Vec<u8> = settings.chain(pools).flatten().copied().collect();
    let mut contents = Contents::new();
    let pieces = PieceList::from_bytes(&bytes, &mut contents);
    let (who, why, changes, series) = (String::new(), String::new(), None, Series::default());
    let description = Description { number, applied_at, schema, who, why, changes, series, pieces };
    Ok(Some(Earlier { description, ids, contents }))
}

fn value<'a>(rows: &'a Rows<Vec<u8>>, name: &str) -> Result<&'a Vec<u8>, Cause> {
    rows.get(name).ok_or_else(|| Cause::Damaged(format!("{name} is missing")))
}
