//! Edits the store of a stopped daemon, as another version would have written it.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use prost::Message as _;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
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
    let (key, mut described) = description(&rows)?;
    let (mut message, mut more) = (Configuration::decode(&*joined(&rows)?)?, Vec::new());
    // Pieces have the pools by groups.
    message.pools.sort_by(|one, other| one.name.cmp(&other.name));
    change(&mut described, &mut message, &mut more);
    let bytes = [message.encode_to_vec(), more].concat();
    let digest = hex(digest(&SHA256, &bytes).as_ref());
    described["pieces"] = json!({"settings": [digest], "pools": {}});
    rows.insert(format!("piece/{digest}"), bytes);
    let text = serde_json::to_vec(&described)?;
    let row = [&row_hash(&key, &text).to_le_bytes(), &*text].concat();
    rows.insert(key, row);

    let mut checksum = 0u64;
    let proves_itself = |key: &str| key.starts_with("piece/") || key.starts_with("generation/");
    for (key, value) in rows.iter().filter(|(key, _)| *key != "checksum" && !proves_itself(key)) {
        checksum = checksum.wrapping_add(row_hash(key, value));
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
    joined(&read(&open(state_directory)?)?)
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

/// The key of the current generation's description, and the description.
fn description(rows: &Rows) -> Result<(String, Value)> {
    let current = rows.get("current").context("no current row")?;
    let number = u64::from_le_bytes(current[..].try_into()?);
    ensure!(number > 0, "the store has no generation");
    let key = format!("generation/{number}");
    let row = rows.get(&key).context("no description")?;
    let text = row.get(8..).context("a short description")?;
    Ok((key, serde_json::from_slice(text)?))
}

fn joined(rows: &Rows) -> Result<Vec<u8>> {
    let (_, description) = description(rows)?;
    let pieces = &description["pieces"];
    let mut buckets: Vec<(u8, &Value)> = Vec::new();
    for (bucket, list) in pieces["pools"].as_object().into_iter().flatten() {
        buckets.push((bucket.parse()?, list));
    }
    buckets.sort_by_key(|(bucket, _)| *bucket);
    let lists = [&pieces["settings"]].into_iter().chain(buckets.into_iter().map(|(_, list)| list));
    let mut bytes = Vec::new();
    for digest in lists.filter_map(Value::as_array).flatten() {
        let digest = digest.as_str().context("a digest")?;
        bytes.extend(rows.get(&format!("piece/{digest}")).context("a piece is missing")?);
    }
    Ok(bytes)
}

fn row_hash(key: &str, value: &[u8]) -> u64 {
    let mut hash = Xxh64::new(0);
    for part in [key.as_bytes(), value] {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.digest()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
