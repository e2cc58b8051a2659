//! Edits the store of a stopped daemon, as another version would have written it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use prost::Message as _;
use redb::{Database, ReadableDatabase as _, TableDefinition};
use serde_json::Value;
use spillway_proto::v1::Configuration;
use xxhash_rust::xxh64::Xxh64;

const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("spillway");

/// The checksum covers these, in this order.
const VALUES: [&str; 4] = ["format", "hash_key", "generation", "configuration"];

/// Changes the stored description of the generation, the configuration, and the bytes after the
/// configuration's known fields, and renews the checksum.
///
/// # Errors
/// There is no generation, or the file cannot be changed.
pub fn rewrite(
    state_directory: &Path,
    change: impl FnOnce(&mut Value, &mut Configuration, &mut Vec<u8>),
) -> Result<()> {
    let database = Database::open(state_directory.join("spillway.redb")).context("the store")?;
    let mut values = VALUES.map(|_| Vec::new());
    {
        let transaction = database.begin_read()?;
        let table = transaction.open_table(TABLE)?;
        for (name, value) in VALUES.iter().zip(&mut values) {
            *value = table.get(name)?.with_context(|| (*name).to_owned())?.value().to_vec();
        }
    }
    let [_, _, description, configuration] = &mut values;
    ensure!(!description.is_empty(), "the store has no generation");
    let mut described = serde_json::from_slice(description)?;
    let (mut message, mut more) = (Configuration::decode(&configuration[..])?, Vec::new());
    change(&mut described, &mut message, &mut more);
    *description = serde_json::to_vec(&described)?;
    *configuration = message.encode_to_vec();
    configuration.append(&mut more);

    let mut checksum = Xxh64::new(0);
    for value in &values {
        checksum.update(&(value.len() as u64).to_le_bytes());
        checksum.update(value);
    }
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for (name, value) in VALUES.iter().zip(&values) {
            table.insert(*name, &value[..])?;
        }
        table.insert("checksum", &checksum.digest().to_le_bytes()[..])?;
    }
    transaction.commit()?;
    Ok(())
}

/// The stored bytes of the configuration.
///
/// # Errors
/// There is none, or the file cannot be read.
pub fn configuration(state_directory: &Path) -> Result<Vec<u8>> {
    let database = Database::open(state_directory.join("spillway.redb")).context("the store")?;
    let table = database.begin_read()?.open_table(TABLE)?;
    Ok(table.get("configuration")?.context("configuration")?.value().to_vec())
}
