//! Stores of formats 1 and 2 are read, and the next commit replaces them.

use super::*;
use crate::{
    pieces::{Contents, PieceList},
    rows::{row_hash, sum},
};

type Values = Vec<(String, Vec<u8>)>;

/// Replaces all rows of a store.
fn replace(state: &TempDir, values: &Values, checksum: u64) {
    let database = Database::open(state.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.delete_table(TABLE).unwrap();
    {
        let mut table = transaction.open_table(TABLE).unwrap();
        for (name, value) in values {
            table.insert(&**name, &**value).unwrap();
        }
        table.insert("checksum", &checksum.to_le_bytes()[..]).unwrap();
    }
    transaction.commit().unwrap();
}

/// A store of a format with a generation, as the versions of that time wrote it.
fn earlier(format: u32, number: u64) -> (TempDir, Generation) {
    let state = directory();
    written(&state);
    let name = |text: &str| lb_model::Name::new(text).unwrap();
    let mut configuration =
        (*Store::open(state.path()).unwrap().generation().unwrap().configuration).clone();
    for pool in ["a", "b", "c"] {
        configuration.pools.insert(name(pool), Arc::new(lb_model::Pool::default()));
    }
    let expected = generation(number, configuration, &Ids::default());
    let (who, why, schema) = (String::new(), String::new(), Revision::FIRST);
    let expected = Generation { who, why, changes: None, schema, ..expected };
    let mut description = serde_json::json!({"number": number, "applied_at": expected.applied_at, "schema": expected.schema});
    let mut values: Values =
        vec![("format".into(), format.to_le_bytes().into()), ("hash_key".into(), [7; 16].into())];
    if format == 1 {
        // Stores from before schema revisions have none.
        description.as_object_mut().unwrap().remove("schema").unwrap();
        description["ids"] = serde_json::to_value(&*expected.ids).unwrap();
        values.push(("generation".into(), description.to_string().into()));
        values.push(("configuration".into(), lb_config::encode(&expected.configuration)));
        let sized = values.iter().flat_map(|(_, value)| {
            let size = (value.len() as u64).to_le_bytes();
            size.into_iter().chain(value.iter().copied())
        });
        let checksum = xxhash_rust::xxh64::xxh64(&sized.collect::<Vec<_>>(), 0);
        replace(&state, &values, checksum);
    } else {
        values.push(("generation".into(), description.to_string().into()));
        values.push((
            "configuration".into(),
            lb_config::encode_without_pools(&expected.configuration),
        ));
        for (name, pool) in &expected.configuration.pools {
            values.push((format!("pool/{name}"), lb_config::encode_pool(name, pool)));
        }
        for (part, ids) in expected.ids.parts() {
            values.push((format!("ids/{part}"), serde_json::to_vec(&ids).unwrap()));
        }
        let hashes = values.iter().map(|(key, value)| row_hash(key, value));
        let checksum = hashes.fold(0, u64::wrapping_add);
        replace(&state, &values, checksum);
    }
    (state, expected)
}

#[test]
fn an_earlier_store_is_read_and_replaced_and_its_generation_stays_in_the_history() {
    for format in [1, 2] {
        let (state, expected) = earlier(format, 4);
        let before = rows_on_disk(&state);
        let mut store = Store::open(state.path()).unwrap();
        assert_eq!(store.generation(), Some(&expected));
        assert_eq!(store.generation().unwrap().schema, Revision::FIRST);
        let key = store.hash_key();
        assert_eq!(key, [u64::from_le_bytes([7; 8]); 2]);
        assert_eq!(**store.history(), [expected.entry()]);
        drop(store);
        assert_eq!(rows_on_disk(&state), before, "reading changes nothing");
        store = Store::open(state.path()).unwrap();

        let mut configuration = (*expected.configuration).clone();
        configuration.pools.pop_first().unwrap();
        let next = generation(5, configuration, &expected.ids);
        commit(&mut store, next.clone());
        for _ in 0..2 {
            assert_eq!((store.generation(), store.hash_key()), (Some(&next), key));
            assert_eq!(**store.history(), [expected.entry(), next.entry()]);
            assert_eq!(store.reader().read(4).unwrap(), *expected.configuration);
            drop(store);
            store = Store::open(state.path()).unwrap();
        }
        drop(store);
        let rows = rows_on_disk(&state);
        assert_eq!(rows["format"], 3u32.to_le_bytes());
        assert!(!rows.keys().any(|key| key.starts_with("pool/") || key == "configuration"));
        assert_eq!(u64::from_le_bytes(rows["checksum"][..].try_into().unwrap()), sum(&rows));
    }
}

/// The packet path still serves it, and a newer version may use it.
#[test]
fn an_unusable_generation_of_an_earlier_store_is_kept_with_unknown_fields() {
    let (state, expected) = earlier(2, 4);
    let mut rows = rows_on_disk(&state);
    rows.remove("checksum");
    // Field 1000 with the number 7.
    rows.get_mut("configuration").unwrap().extend([0xc0, 0x3e, 7]);
    let description =
        serde_json::json!({"number": 4, "applied_at": expected.applied_at, "schema": 99});
    rows.insert("generation".into(), description.to_string().into());
    let checksum = rows.iter().map(|(key, row)| row_hash(key, row)).fold(0, u64::wrapping_add);
    replace(&state, &rows.clone().into_iter().collect(), checksum);
    let mut store = Store::open_any_schema(state.path()).unwrap();
    assert_eq!((store.generation(), store.number()), (None, 4));
    let cause = "it has schema revision 99, and this version supports 2";
    assert_eq!(store.history()[0].unusable.as_deref(), Some(cause));
    commit(&mut store, generation(5, Configuration::default(), &expected.ids));
    assert_eq!(store.history()[0].unusable.as_deref(), Some(cause));
    let refused = store.reader().read(4).unwrap_err();
    assert!(matches!(refused, ReadError::Unusable(text) if text == cause));
    drop(store);
    let bytes =
        ["configuration", "pool/a", "pool/b", "pool/c"].map(|key| rows[key].clone()).concat();
    let mut contents = Contents::new();
    PieceList::from_bytes(&bytes, &mut contents);
    let on_disk = rows_on_disk(&state);
    for (digest, content) in contents {
        assert_eq!(on_disk[&format!("piece/{digest}")], content);
    }
}
