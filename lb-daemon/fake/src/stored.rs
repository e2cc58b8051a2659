//! Edits the store of a stopped daemon, as another version would have written it.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use prost::Message as _;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use serde_json::Value;
use spillway_proto::v1::Configuration;
use xxhash_rust::xxh64::Xxh64;

const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("spillway");

type Rows = BTreeMap<String, Vec<u8>>;

/// Changes the stored description of the generation, the configuration, and the bytes after the
/// configuration's known fields, and renews the checksum.
///
/// # Errors
/// There is no generation, or the file cannot be changed.
pub fn rewrite(
    state_directory: &Path,
    change: impl FnOnce(&mut Value, &mut Configuration, &mut Vec<u8>),
) -> Result<()> {
    let database = open(state_directory)?;
    let mut rows = read(&database)?;
    let described = rows.get("generation").context("no generation row")?;
    ensure!(!described.is_empty(), "the store has no generation");
    let mut described = serde_json::from_slice(described)?;
    let (mut message, mut more) = (Configuration::decode(&*joined(&rows))?, Vec::new());
    change(&mut described, &mut message, &mut more);
    rows.insert("generation".into(), serde_json::to_vec(&described)?);
    // One row may have the pools as well.
    rows.retain(|key, _| !key.starts_with("pool/"));
    rows.insert("configuration".into(), [message.encode_to_vec(), more].concat());

    let mut checksum = 0u64;
    for (key, value) in rows.iter().filter(|(key, _)| *key != "checksum") {
        let mut hash = Xxh64::new(0);
        for part in [key.as_bytes(), value] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        checksum = checksum.wrapping_add(hash.digest());
    }
    rows.insert("checksum".into(), checksum.to_le_bytes().into());
    let transaction = database.begin_write()?;
    transaction.delete_table(TABLE)?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in &rows {
            table.insert(&**key, &**value)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// The stored bytes of the configuration.
///
/// # Errors
/// The file cannot be read.
pub fn configuration(state_directory: &Path) -> Result<Vec<u8>> {
    Ok(joined(&read(&open(state_directory)?)?))
}

fn open(state_directory: &Path) -> Result<Database> {
    Database::open(state_directory.join("spillway.redb")).context("the store")
}

fn read(database: &Database) -> Result<Rows> {
    let table = database.begin_read()?.open_table(TABLE)?;
    let rows = table.iter()?.map(|row| {
        let (key, value) = row?;
        Ok((key.value().to_owned(), value.value().to_vec()))
    });
    rows.collect()
}

fn joined(rows: &Rows) -> Vec<u8> {
    let settings = rows.get("configuration").into_iter();
    let pools = rows.iter().filter(|(key, _)| key.starts_with("pool/")).map(|(_, pool)| pool);
    settings.chain(pools).flatten().copied().collect()
}
