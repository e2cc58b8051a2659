//! For tests: a store as another version would have written it.

use std::path::Path;

use prost::Message as _;
use redb::{Database, ReadableDatabase};
use serde_json::Value;
use spillway_proto::v1;

use super::{FILE, TABLE, record};

/// The message of a configuration.
pub(crate) type Message = v1::Configuration;

/// The stored bytes of the configuration.
pub(crate) fn configuration(state_directory: &Path) -> Vec<u8> {
    let database = Database::open(state_directory.join(FILE)).unwrap();
    let table = database.begin_read().unwrap().open_table(TABLE).unwrap();
    table.get("configuration").unwrap().unwrap().value().to_vec()
}

/// Changes the description of the stored generation and its configuration; what is put into the bytes stands after
/// the configuration. The checksum is made anew.
pub(crate) fn rewrite(
    state_directory: &Path,
    change: impl FnOnce(&mut Value, &mut Message, &mut Vec<u8>),
) {
    let database = Database::open(state_directory.join(FILE)).unwrap();
    let mut values = record::VALUES.map(|name| {
        let table = database.begin_read().unwrap().open_table(TABLE).unwrap();
        table.get(name).unwrap().unwrap().value().to_vec()
    });
    let [_, _, description, configuration] = &mut values;
    let mut described = serde_json::from_slice(description).unwrap();
    let mut message = Message::decode(&**configuration).unwrap();
    let mut more = Vec::new();
    change(&mut described, &mut message, &mut more);
    *description = serde_json::to_vec(&described).unwrap();
    *configuration = [message.encode_to_vec(), more].concat();
    let checksum = record::checksum(&values.each_ref().map(|value| &**value));
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(TABLE).unwrap();
        for (name, value) in record::VALUES.iter().zip(&values) {
            table.insert(*name, &**value).unwrap();
        }
        table.insert("checksum", &*checksum.to_vec()).unwrap();
    }
    transaction.commit().unwrap();
}
