//! The content of the database, protected against damage and against other formats.

use std::{hash::Hasher, sync::Arc, time::SystemTime};

use redb::{Database, ReadableDatabase, TableError};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh64::Xxh64;

use super::{Generation, Revision, TABLE, begin_write, error::Cause};
use lb_config::StoredMessage;
use lb_model::ids::Ids;

/// Version of this format, little-endian.
const FORMAT: &str = "format";
const HASH_KEY: &str = "hash_key";
const GENERATION: &str = "generation";
const CONFIGURATION: &str = "configuration";
/// XXH64 over the other values in this order, each preceded by its length, little-endian.
const CHECKSUM: &str = "checksum";

const CURRENT_FORMAT: u32 = 1;

pub(super) struct Record {
    pub(super) hash_key: [u64; 2],
    pub(super) stored: Option<Result<Generation, Box<Unusable>>>,
}

/// A generation without its configuration.
#[derive(Serialize, Deserialize)]
struct Description {
    number: u64,
    applied_at: SystemTime,
    ids: Ids,
    /// Stores from before schema revisions have none.
    #[serde(default = "first")]
    schema: Revision,
}

fn first() -> Revision {
    Revision::FIRST
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
    let value = |name: &str| -> Result<Vec<u8>, Cause> {
        let value = table.get(name).map_err(Cause::read)?;
        let missing = || Cause::Damaged(format!("{name} is missing"));
        Ok(value.ok_or_else(missing)?.value().to_vec())
    };
    let format = value(FORMAT)?;
    match fixed(&format).map(u32::from_le_bytes) {
        Some(CURRENT_FORMAT) => {}
        Some(newer) if newer > CURRENT_FORMAT => return Err(Cause::Newer(newer)),
        _ => return Err(Cause::Damaged("its format number is unknown".into())),
    }
    let (hash_key, description) = (value(HASH_KEY)?, value(GENERATION)?);
    let configuration = value(CONFIGURATION)?;
    let expected = checksum(&[&format, &hash_key, &description, &configuration]);
    let damaged = |what: &str| Cause::Damaged(what.into());
    if fixed(&value(CHECKSUM)?) != Some(expected) {
        return Err(damaged("its checksum does not match"));
    }
    let hash_key = fixed(&hash_key).map(u128::from_le_bytes);
    let hash_key = hash_key.ok_or_else(|| damaged("its hash_key has the wrong length"))?;
    let stored = match &*description {
        [] => None,
        text => {
            let description: Description =
                serde_json::from_slice(text).map_err(|error| Cause::Damaged(error.to_string()))?;
            Some(generation(description, &configuration))
        }
    };
    Ok(Some(Record { hash_key: [hash_key as u64, (hash_key >> 64) as u64], stored }))
}

/// Decodes the generation, if this version can use it.
fn generation(description: Description, bytes: &[u8]) -> Result<Generation, Box<Unusable>> {
    let Description { number, applied_at, ids, schema } = description;
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
    write(database, &hash_key, None)?;
    Ok(Record { hash_key, stored: None })
}

/// Replaces the whole content in one transaction.
pub(super) fn write(
    database: &Database,
    hash_key: &[u64; 2],
    generation: Option<&Generation>,
) -> Result<(), Cause> {
    let (description, configuration) = match generation {
        None => (Vec::new(), Vec::new()),
        Some(Generation { number, applied_at, configuration, ids, schema }) => {
            let (number, applied_at, ids) = (*number, *applied_at, (**ids).clone());
            let description = Description { number, applied_at, ids, schema: *schema };
            let text = serde_json::to_vec(&description)
                .map_err(|error| Cause::write(redb::StorageError::Io(error.into())))?;
            (text, lb_config::encode(configuration))
        }
    };
    let format = CURRENT_FORMAT.to_le_bytes();
    let hash_key = (u128::from(hash_key[0]) | u128::from(hash_key[1]) << 64).to_le_bytes();
    let checksum = checksum(&[&format, &hash_key, &description, &configuration]);
    let transaction = begin_write(database)?;
    {
        let mut table = transaction.open_table(TABLE).map_err(Cause::write)?;
        let values: [(&str, &[u8]); 5] = [
            (FORMAT, &format),
            (HASH_KEY, &hash_key),
            (GENERATION, &description),
            (CONFIGURATION, &configuration),
            (CHECKSUM, &checksum),
        ];
        for (name, value) in values {
            table.insert(name, value).map_err(Cause::write)?;
        }
    }
    transaction.commit().map_err(Cause::write)
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

pub(super) fn checksum(values: &[&[u8]]) -> [u8; 8] {
    let mut state = Xxh64::new(0);
    for value in values {
        state.write(&(value.len() as u64).to_le_bytes());
        state.write(value);
    }
    state.finish().to_le_bytes()
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
