//! The rows of the database, but for the pieces of configurations.

use std::{collections::BTreeMap, hash::Hasher, time::SystemTime};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh64::Xxh64;

use lb_pieces::Digest;

use super::{Revision, Series, error::Cause, pieces::PieceList};
use lb_model::ids::Ids;

/// Version of the format, little-endian.
pub(super) const FORMAT: &str = "format";
pub(super) const HASH_KEY: &str = "hash_key";
/// Sum of the hashes of the rows that do not prove themselves, little-endian.
pub(super) const CHECKSUM: &str = "checksum";
/// Number of the current generation, little-endian; 0 before the first.
pub(super) const CURRENT: &str = "current";
/// Followed by a number: the hash of the rest, and [`Description`] in JSON.
const GENERATION: &str = "generation/";
/// Followed by a number: the same of a generation of this balancer's own, while it is a member of a fleet. Versions that
/// know of none remove it.
const BEFORE_FLEET: &str = "generation/before/";
/// Followed by a digest: content with this digest.
const PIECE: &str = "piece/";
/// Followed by the number of a part: [`Ids`] of it, in JSON.
const IDS: &str = "ids/";

/// Rows by key. In a change, a row without a value goes.
pub(super) type Rows<V> = BTreeMap<String, V>;

/// A generation without its configuration and the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) number: u64,
    pub(super) applied_at: SystemTime,
    pub(super) schema: Revision,
    /// Empty: unknown.
    pub(super) who: String,
    /// Empty: unknown.
    pub(super) why: String,
    /// Objects that differ from the generation before; `None`: unknown.
    pub(super) changes: Option<u64>,
    /// Versions that know of none take it for the first.
    #[serde(default, skip_serializing_if = "Series::is_default")]
    pub(super) series: Series,
    pub(super) pieces: PieceList,
}

impl Description {
    pub(super) fn row(&self, key: String) -> Result<(String, Vec<u8>), Cause> {
        let text = json(self)?;
        let hash = row_hash(&key, &text).to_le_bytes();
        Ok((key, [&hash, &*text].concat()))
    }

    /// # Errors
    /// What is wrong with the row.
    pub(super) fn read(key: &str, number: u64, row: &[u8]) -> Result<Self, String> {
        let (hash, text) = row.split_first_chunk().ok_or("its description is too short")?;
        if u64::from_le_bytes(*hash) != row_hash(key, text) {
            return Err("the checksum of its description does not match".into());
        }
        let description: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match description.number == number {
            true => Ok(description),
            false => Err(format!("its description is that of generation {}", description.number)),
        }
    }
}

pub(super) fn generation_key(number: u64) -> String {
    format!("{GENERATION}{number}")
}

pub(super) fn before_fleet_key(number: u64) -> String {
    format!("{BEFORE_FLEET}{number}")
}

pub(super) fn piece_key(digest: &Digest) -> String {
    format!("{PIECE}{digest}")
}

/// What a key names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key {
    Generation(u64),
    BeforeFleet(u64),
    Piece(Digest),
    /// A row that the checksum contains.
    Summed,
    /// A row that no version writes.
    Unknown,
}

impl Key {
    pub(super) fn parse(key: &str) -> Self {
        if let Some(digest) = key.strip_prefix(PIECE) {
            return Digest::parse(digest).map_or(Self::Unknown, Self::Piece);
        }
        if let Some(number) = key.strip_prefix(BEFORE_FLEET) {
            return match number.parse() {
                Ok(parsed) if before_fleet_key(parsed) == key => Self::BeforeFleet(parsed),
                _ => Self::Unknown,
            };
        }
        match key.strip_prefix(GENERATION) {
            Some(number) => match number.parse() {
                Ok(parsed) if generation_key(parsed) == key => Self::Generation(parsed),
                _ => Self::Unknown,
            },
            None => Self::Summed,
        }
    }
}

/// The parts of numbers that differ from those that are stored.
pub(super) fn changed_ids(stored: &Ids, ids: &Ids) -> Result<Rows<Option<Vec<u8>>>, Cause> {
    let parts = ids.changed_parts(stored).into_iter();
    let parts = parts.map(|(part, ids)| {
        let value = if ids == Ids::default() { None } else { Some(json(&ids)?) };
        Ok((format!("{IDS}{part}"), value))
    });
    parts.collect()
}

/// The numbers in rows.
pub(super) fn ids(rows: &Rows<Vec<u8>>) -> Result<Ids, Cause> {
    let parts = rows.iter().filter(|(key, _)| key.starts_with(IDS));
    let parts = parts.map(|(_, text)| serde_json::from_slice(text));
    let parts: Result<Vec<Ids>, _> = parts.collect();
    Ok(Ids::join(parts.map_err(|error| Cause::Damaged(error.to_string()))?))
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

/// The checksum of rows.
pub(super) fn sum(rows: &Rows<Vec<u8>>) -> u64 {
    let rows = rows.iter().filter(|(key, _)| is_summed(key));
    rows.map(|(key, value)| row_hash(key, value)).fold(0, u64::wrapping_add)
}

pub(super) fn is_summed(key: &str) -> bool {
    key != CHECKSUM && Key::parse(key) == Key::Summed
}

pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Cause> {
    serde_json::to_vec(value).map_err(|error| Cause::write(redb::StorageError::Io(error.into())))
}
