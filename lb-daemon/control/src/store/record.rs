//! The content of the database, protected against damage and against other formats.

use std::{hash::Hasher, sync::Arc, time::SystemTime};

use redb::{Database, ReadableDatabase, ReadableTable, Table, TableError};
use serde::Deserialize;
use xxhash_rust::xxh64::Xxh64;

use super::{
    Generation, Revision, TABLE, begin_write,
    error::Cause,
    rows::{self, CONFIGURATION, Description, GENERATION, Rows, row_hash},
};
use lb_config::StoredMessage;
use lb_model::ids::Ids;

/// Version of this format, little-endian.
const FORMAT: &str = "format";
const HASH_KEY: &str = "hash_key";
/// Sum of the hashes of all other rows, little-endian.
const CHECKSUM: &str = "checksum";

const CURRENT_FORMAT: u32 = 2;
/// The format in which one row has the whole configuration. It is read, and the next commit replaces it.
const ONE_ROW: u32 = 1;

pub(super) struct Record {
    pub(super) hash_key: [u64; 2],
    pub(super) stored: Option<Result<Generation, Box<Unusable>>>,
    /// Whether the rows are in the current format.
    pub(super) is_current: bool,
}

/// Reads a store; `None` if nothing was ever written.
pub(super) fn read(database: &Database) -> Result<Option<Record>, Cause> {
    let transaction = database.begin_read().map_err(Cause::read)?;
    let table = match transaction.open_table(TABLE) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => {
            return match transaction.list_tables().map_err(Cause::read)?.next() {
                None => Ok(None),
                Some(_) => Err(Cause::Foreign("it is the database of another program".into())),
            };
        }
        Err(error) => return Err(Cause::read(error)),
    };
    let mut rows: Rows<Vec<u8>> = Rows::new();
    for row in table.iter().map_err(Cause::read)? {
        let (key, value) = row.map_err(Cause::read)?;
        rows.insert(key.value().into(), value.value().to_vec());
    }
    let value =
        |name: &str| rows.get(name).ok_or_else(|| Cause::Damaged(format!("{name} is missing")));
    let damaged = |what: &str| Cause::Damaged(what.into());
    let format = fixed(value(FORMAT)?).map(u32::from_le_bytes);
    let expected = match format {
        Some(CURRENT_FORMAT) => sum(&rows),
        Some(ONE_ROW) => {
            let values = [FORMAT, HASH_KEY, GENERATION, CONFIGURATION].map(value);
            let [format, hash_key, description, configuration] = values;
            one_row_checksum([format?, hash_key?, description?, configuration?])
        }
        Some(newer) if newer > CURRENT_FORMAT => return Err(Cause::Newer(newer)),
        _ => return Err(damaged("its format number is unknown")),
    };
    if fixed(value(CHECKSUM)?).map(u64::from_le_bytes) != Some(expected) {
        return Err(damaged("its checksum does not match"));
    }
    let hash_key = fixed(value(HASH_KEY)?).map(u128::from_le_bytes);
    let hash_key = hash_key.ok_or_else(|| damaged("its hash_key has the wrong length"))?;
    let is_current = format == Some(CURRENT_FORMAT);
    let description = value(GENERATION)?;
    let stored = match description.is_empty() {
        true => None,
        false => {
            let ids = if is_current { rows::ids(&rows)? } else { one_row_ids(description)? };
            let description: Description = serde_json::from_slice(description)
                .map_err(|error| Cause::Damaged(error.to_string()))?;
            Some(generation(description, ids, &rows::configuration(&rows)))
        }
    };
    let hash_key = [hash_key as u64, (hash_key >> 64) as u64];
    Ok(Some(Record { hash_key, stored, is_current }))
}

/// Decodes the generation, if this version can use it.
fn generation(
    description: Description,
    ids: Ids,
    bytes: &[u8],
) -> Result<Generation, Box<Unusable>> {
    let Description { number, applied_at, schema } = description;
    let message = StoredMessage::read(bytes);
    let used = match &message {
        Err(error) => Err(format!("it cannot be read: {error}")),
        Ok(_) if schema > Revision::CURRENT => Err(format!(
            "it has schema revision {schema}, and this version supports {}",
            Revision::CURRENT
        )),
        Ok(message) => {
            message.configuration().map_err(|invalid| format!("this version refuses it: {invalid}"))
        }
    };
    match used {
        Ok(configuration) => {
            let (configuration, ids) = (Arc::new(configuration), Arc::new(ids));
            Ok(Generation { number, applied_at, configuration, ids, schema })
        }
        Err(cause) => {
            let message = message.ok();
            Err(Box::new(Unusable { number, applied_at, ids, schema, cause, message }))
        }
    }
}

/// Initializes a store with a random hash key.
pub(super) fn create(database: &Database) -> Result<Record, Cause> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| Cause::Inaccessible(error.into()))?;
    let key = u128::from_le_bytes(key);
    let hash_key = [key as u64, (key >> 64) as u64];
    let nothing = Rows::from([
        (GENERATION.to_owned(), Some(Vec::new())),
        (CONFIGURATION.to_owned(), Some(Vec::new())),
    ]);
    replace(database, &hash_key, nothing)?;
    Ok(Record { hash_key, stored: None, is_current: true })
}

/// Writes a generation in one transaction: all of it, or what differs from the one that is stored.
pub(super) fn write(
    database: &Database,
    hash_key: &[u64; 2],
    stored: Option<&Generation>,
    generation: &Generation,
) -> Result<(), Cause> {
    let changed = rows::changed(stored, generation)?;
    match stored {
        Some(_) => change(database, changed),
        None => replace(database, hash_key, changed),
    }
}

/// Replaces all rows.
fn replace(
    database: &Database,
    hash_key: &[u64; 2],
    mut rows: Rows<Option<Vec<u8>>>,
) -> Result<(), Cause> {
    let hash_key = u128::from(hash_key[0]) | u128::from(hash_key[1]) << 64;
    rows.insert(FORMAT.into(), Some(CURRENT_FORMAT.to_le_bytes().to_vec()));
    rows.insert(HASH_KEY.into(), Some(hash_key.to_le_bytes().to_vec()));
    let transaction = begin_write(database)?;
    transaction.delete_table(TABLE).map_err(Cause::write)?;
    {
        let mut table = transaction.open_table(TABLE).map_err(Cause::write)?;
        let sum = put(&mut table, 0, rows)?;
        table.insert(CHECKSUM, &sum.to_le_bytes()[..]).map_err(Cause::write)?;
    }
    transaction.commit().map_err(Cause::write)
}

/// Changes some rows.
fn change(database: &Database, rows: Rows<Option<Vec<u8>>>) -> Result<(), Cause> {
    let transaction = begin_write(database)?;
    {
        let mut table = transaction.open_table(TABLE).map_err(Cause::write)?;
        let sum = table.get(CHECKSUM).map_err(Cause::write)?;
        let sum = sum.and_then(|sum| fixed(sum.value())).map(u64::from_le_bytes);
        let sum = sum.ok_or_else(|| Cause::Damaged(format!("{CHECKSUM} is missing")))?;
        let sum = put(&mut table, sum, rows)?;
        table.insert(CHECKSUM, &sum.to_le_bytes()[..]).map_err(Cause::write)?;
    }
    transaction.commit().map_err(Cause::write)
}

/// Writes and removes rows. Returns the sum of all rows' hashes, which was `sum`.
fn put(
    table: &mut Table<'_, &'static str, &'static [u8]>,
    mut sum: u64,
    rows: Rows<Option<Vec<u8>>>,
) -> Result<u64, Cause> {
    for (key, value) in rows {
        let former = match &value {
            Some(value) => table.insert(&*key, &value[..]),
            None => table.remove(&*key),
        };
        let former = former.map_err(Cause::write)?;
        sum = sum.wrapping_sub(former.map_or(0, |former| row_hash(&key, former.value())));
        sum = sum.wrapping_add(value.map_or(0, |value| row_hash(&key, &value)));
    }
    Ok(sum)
}

fn sum(rows: &Rows<Vec<u8>>) -> u64 {
    let rows = rows.iter().filter(|(key, _)| *key != CHECKSUM);
    rows.map(|(key, value)| row_hash(key, value)).fold(0, u64::wrapping_add)
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn one_row_checksum(values: [&Vec<u8>; 4]) -> u64 {
    let mut state = Xxh64::new(0);
    for value in values {
        state.write(&(value.len() as u64).to_le_bytes());
        state.write(value);
    }
    state.finish()
}

fn one_row_ids(description: &[u8]) -> Result<Ids, Cause> {
    #[derive(Deserialize)]
    struct Numbers {
        ids: Ids,
    }
    let numbers: Numbers =
        serde_json::from_slice(description).map_err(|error| Cause::Damaged(error.to_string()))?;
    Ok(numbers.ids)
}

/// A stored generation that this version cannot use. The packet path may still be at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusable {
    pub number: u64,
    pub applied_at: SystemTime,
    /// The numbers of its objects in the maps.
    pub ids: Ids,
    /// Schema revision of the daemon that wrote it.
    pub schema: Revision,
    /// Why it cannot be used.
    pub cause: String,
    /// The fields that this version knows; `None` if it cannot be read at all.
    pub message: Option<StoredMessage>,
}

impl Unusable {
    pub(super) fn from_generation(generation: &Generation, cause: String) -> Self {
        let Generation { number, applied_at, configuration, ids, schema } = generation;
        let message = Some(StoredMessage::from(&**configuration));
        let (number, applied_at, ids, schema) = (*number, *applied_at, (**ids).clone(), *schema);
        Self { number, applied_at, ids, schema, cause, message }
    }

    /// Whether `message` contains everything that is stored.
    pub fn is_whole(&self) -> bool {
        self.message.is_some() && self.schema <= Revision::CURRENT
    }
}
