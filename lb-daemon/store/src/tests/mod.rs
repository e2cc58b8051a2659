mod crash;
mod earlier;
mod history;
mod shared;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::{Instant, UNIX_EPOCH},
};

use lb_common::abi::sizes::MapSizes;
use proptest::{collection::vec, prelude::*};
use redb::{ReadableDatabase, ReadableTable as _};
use tempfile::TempDir;

use super::*;
use lb_fake::arbitrary;
use lb_model::ids::Quarantine;

impl Generation {
    /// As the history lists it.
    fn entry(&self) -> HistoryEntry {
        HistoryEntry {
            number: self.number,
            applied_at: Some(self.applied_at),
            who: self.who.clone(),
            why: self.why.clone(),
            changes: self.changes,
            unusable: None,
            is_before_fleet: false,
        }
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn generation(number: u64, configuration: Configuration, ids: &Ids) -> Generation {
    let ids = ids
        .next(None, &configuration, &MapSizes::DEFAULT, &Quarantine::default(), Instant::now())
        .unwrap();
    let applied_at = UNIX_EPOCH + Duration::new(1_700_000_000 + number, 123_456_789);
    let (configuration, ids) = (Arc::new(configuration), Arc::new(ids));
    Generation {
        number,
        applied_at,
        configuration,
        ids,
        schema: Revision::CURRENT,
        who: format!("uid {number}"),
        why: format!("reason {number}"),
        changes: Some(number),
        series: Series::default(),
    }
}

fn commit(store: &mut Store, generation: Generation) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.commit(generation)).unwrap();
}

/// Path of a store with one generation, which has one region.
fn written(state: &TempDir) -> PathBuf {
    let mut configuration = Configuration::default();
    let eu = lb_model::Name::new("eu").unwrap();
    configuration.regions.insert(eu, lb_model::Region::default());
    let mut store = Store::open(state.path()).unwrap();
    commit(&mut store, generation(1, configuration, &Ids::default()));
    state.path().join(FILE)
}

fn refusal(state: &TempDir) -> (String, String) {
    let error = Store::open(state.path()).unwrap_err();
    let path = format!("{}: ", state.path().join(FILE).display());
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    (text.strip_prefix(&path).unwrap().to_owned(), error.hint())
}

#[test]
fn a_new_store_has_a_key_of_its_own_and_nothing_else() {
    let (one, other) = (directory(), directory());
    let store = Store::open(&one.path().join("a/b")).unwrap();
    assert_eq!(store.generation(), None);
    let key = store.hash_key();
    assert_ne!(key, Store::open(other.path()).unwrap().hash_key());
    drop(store);
    let store = Store::open(&one.path().join("a/b")).unwrap();
    assert_eq!(store.hash_key(), key);
    assert_eq!(store.generation(), None);
    let mode = fs::metadata(one.path().join("a/b").join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_store_that_is_in_use_is_not_opened_twice() {
    let state = directory();
    let _open = Store::open(state.path()).unwrap();
    let own = std::process::id();
    let expected =
        format!("stop the other daemon (process {own}), or give each its own --state-dir");
    assert_eq!(refusal(&state), ("in use by another spillwayd".into(), expected));
}

#[test]
fn a_file_that_is_no_store_is_refused_and_kept() {
    let state = directory();
    let path = state.path().join(FILE);
    for content in ["x", "{}\n", &"not a database\n".repeat(1000)] {
        fs::write(&path, content).unwrap();
        let (cause, hint) = refusal(&state);
        assert!(cause.starts_with("is not a store of spillwayd: "), "{cause}");
        assert!(hint.starts_with("restore a good copy"), "{hint}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn the_database_of_another_program_is_refused() {
    let state = directory();
    let path = state.path().join(FILE);
    let other: TableDefinition<u64, u64> = TableDefinition::new("other");
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(other).unwrap().insert(1, 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let expected = "is not a store of spillwayd: it is the database of another program";
    assert_eq!(refusal(&state).0, expected);
    let database = Database::open(&path).unwrap();
    let table = database.begin_read().unwrap().open_table(other).unwrap();
    assert_eq!(table.get(1).unwrap().unwrap().value(), 2);
}

#[test]
fn a_newer_format_and_a_changed_value_are_distinguished() {
    let state = directory();
    let path = written(&state);
    let set = |name: &str, value: &[u8]| {
        let database = Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TABLE).unwrap().insert(name, value).unwrap();
        transaction.commit().unwrap();
    };
    set("hash_key", &[7; 16]);
    assert_eq!(refusal(&state).0, "is damaged: its checksum does not match");
    set("format", &4u32.to_le_bytes());
    let newer = "was written by a newer spillwayd, in format 4";
    assert_eq!(refusal(&state).0, newer);
    set("format", b"x");
    assert_eq!(refusal(&state).0, "is damaged: its format number is unknown");
}

/// Everything that belongs to it is kept too.
#[test]
fn an_invalid_configuration_is_kept_until_the_next_commit() {
    let state = directory();
    let path = written(&state);
    let ids = Store::open(state.path()).unwrap().ids().unwrap().clone();
    lb_fake::stored::rewrite(state.path(), |_, configuration, _| {
        configuration.regions[0].overflow_to.push("nowhere".into());
    })
    .unwrap();
    let before = fs::read(&path).unwrap();
    let mut store = Store::open(state.path()).unwrap();
    assert_eq!((store.generation(), store.number(), store.ids()), (None, 1, Some(&ids)));
    let unusable = store.unusable().unwrap();
    let cause = "this version refuses it: regions[0] \"eu\": overflow_to: ";
    assert!(unusable.cause.starts_with(cause), "{}", unusable.cause);
    assert!(unusable.is_whole());
    assert_eq!(Some(unusable.applied_at), store.applied_at());

    let next = generation(2, Configuration::default(), &ids);
    commit(&mut store, next.clone());
    assert_eq!((store.generation(), store.unusable()), (Some(&next), None));
    drop(store);
    assert_ne!(fs::read(&path).unwrap(), before);
    assert_eq!(Store::open(state.path()).unwrap().generation(), Some(&next));
}

#[test]
fn an_unreadable_configuration_is_kept() {
    let state = directory();
    written(&state);
    // A field of a wire type that does not exist.
    lb_fake::stored::rewrite(state.path(), |_, _, more| more.push(0x0f)).unwrap();
    let store = Store::open(state.path()).unwrap();
    let unusable = store.unusable().unwrap();
    assert!(unusable.cause.starts_with("it cannot be read: "), "{}", unusable.cause);
    assert_eq!((&unusable.message, unusable.is_whole(), unusable.number), (&None, false, 1));
}

/// The next apply would lose its unknown fields.
#[test]
fn a_newer_schema_is_refused_unless_requested() {
    let state = directory();
    written(&state);
    lb_fake::stored::rewrite(state.path(), |description, _, more| {
        description["schema"] = (Revision::CURRENT.number() + 1).into();
        // Field 1000 with the number 7.
        more.extend([0xc0, 0x3e, 7]);
    })
    .unwrap();
    let before = lb_fake::stored::configuration(state.path()).unwrap();
    assert!(before.ends_with(&[0xc0, 0x3e, 7]));
    let (cause, hint) = refusal(&state);
    let expected = "holds a configuration with schema revision 3 of a newer spillwayd, and this one supports 2";
    assert_eq!(cause, expected);
    assert!(hint.contains("--any-schema"), "{hint}");
    let store = Store::open_any_schema(state.path()).unwrap();
    let unusable = store.unusable().unwrap();
    assert_eq!(unusable.cause, "it has schema revision 3, and this version supports 2");
    assert!(unusable.message.is_some() && !unusable.is_whole());
    drop(store);
    assert_eq!(lb_fake::stored::configuration(state.path()).unwrap(), before);
    assert_eq!(refusal(&state).0, expected, "the store still has all of it");
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    let state = directory();
    fs::write(state.path().join("file"), "").unwrap();
    let error = Store::open(&state.path().join("file")).unwrap_err();
    assert!(error.to_string().contains("cannot be opened: "), "{error}");
}

/// As on a read-only disk, also after a crash: the database library mends such a file before it reads it.
#[test]
fn a_file_is_read_without_being_written_even_if_its_daemon_was_killed() {
    let (state, killed) = (directory(), directory());
    let path = written(&state);
    let expected = Store::open(state.path()).unwrap().generation().cloned();
    assert!(expected.is_some());
    let open = Store::open(state.path()).unwrap();
    fs::copy(&path, killed.path().join(FILE)).unwrap();
    drop(open);
    let (clean, unclean) = (fs::read(&path).unwrap(), fs::read(killed.path().join(FILE)).unwrap());
    assert_ne!(clean, unclean);
    for (directory, content) in [(&state, clean), (&killed, unclean)] {
        let (_, record) = StoreFile::new(directory.path()).read_only().unwrap().unwrap();
        assert_eq!(record.stored.map(Result::unwrap), expected);
        assert_eq!(fs::read(directory.path().join(FILE)).unwrap(), content);
    }
    fs::write(&path, "").unwrap();
    assert!(matches!(StoreFile::new(state.path()).read_only(), Ok(None)));
}

#[test]
fn a_disk_that_takes_no_writes_is_told_from_a_wrong_path() {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let refused = |kind: io::ErrorKind| Cause::Inaccessible(kind.into());
    let kinds = [
        (ReadOnlyFilesystem, true),
        (StorageFull, true),
        (QuotaExceeded, true),
        (PermissionDenied, false),
    ];
    for (kind, expected) in kinds {
        assert_eq!(refused(kind).is_unwritable_disk(), expected, "{kind}");
        assert_eq!(refused(kind).reopened().is_unwritable_disk(), expected, "{kind}");
    }
    let hint = |cause| StoreFile::new(Path::new("/d")).error(cause).hint();
    assert!(hint(refused(ReadOnlyFilesystem)).contains("`ReadWritePaths=`"));
    let hint = hint(refused(ReadOnlyFilesystem).reopened());
    assert!(hint.contains("mount it writable") && !hint.contains("ReadWritePaths"), "{hint}");
}

/// Damage anywhere in the file is noticed or harmless; wrong content is never read. The database notices some
/// of it by a panic, which `spillwayd` turns into a refusal.
#[test]
fn damage_is_noticed_or_harmless() {
    let state = directory();
    let path = written(&state);
    let good = fs::read(&path).unwrap();
    let expected = Store::open(state.path()).unwrap().generation().cloned();
    let used = good.iter().rposition(|byte| *byte != 0).unwrap();
    let (mut noticed, mut passed) = (0, 0);
    // Only some bytes, to save time; 67 has no common factor with the sizes of the file's parts.
    for at in (0..=used).filter(|at| good[*at] != 0).step_by(67) {
        let mut bad = good.clone();
        bad[at] ^= 0xff;
        fs::write(&path, &bad).unwrap();
        let mut read = None;
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let store = Store::open(state.path())?;
            read = Some(store.generation().cloned());
            Ok::<_, StoreError>(())
        }));
        match read {
            Some(read) => assert_eq!(read, expected, "byte {at}"),
            None => assert!(!matches!(ended, Ok(Ok(()))), "byte {at}"),
        }
        *(if matches!(ended, Ok(Ok(()))) { &mut passed } else { &mut noticed }) += 1;
    }
    assert!(noticed > 0 && passed > 0, "{noticed} noticed, {passed} harmless");
}

/// All rows of a store that is closed.
fn rows_on_disk(state: &TempDir) -> BTreeMap<String, Vec<u8>> {
    let database = Database::open(state.path().join(FILE)).unwrap();
    let table = database.begin_read().unwrap().open_table(TABLE).unwrap();
    let rows = table.iter().unwrap().map(|row| {
        let (key, value) = row.unwrap();
        (key.value().to_owned(), value.value().to_vec())
    });
    rows.collect()
}

/// What a commit writes besides what is small: numbers by key, and how many pieces. No piece goes.
fn written_rows(
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) -> (Vec<String>, usize) {
    assert!(before.keys().all(|key| after.contains_key(key)));
    let changed = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
    let (pieces, others): (Vec<_>, Vec<_>) =
        changed.map(|(key, _)| key.clone()).partition(|key| key.starts_with("piece/"));
    let is_small = |key: &String| ["checksum", "current"].contains(&&**key);
    let others = others.into_iter().filter(|key| !is_small(key)).collect();
    (others, pieces.len())
}

#[test]
fn a_commit_writes_what_changed() {
    let name = |text: &str| lb_model::Name::new(text).unwrap();
    let mut configuration = Configuration::default();
    configuration.regions.insert(name("eu"), lb_model::Region::default());
    let pool = |low: u8| {
        let backend = lb_model::Backend {
            region: name("eu"),
            weight: 1,
            admin_state: lb_model::AdminState::Active,
            mtu: None,
            max_connection_rate: None,
        };
        // More numbers than one part has.
        let backends = (0..200).map(|n| ([10, 0, low, n].into(), backend.clone())).collect();
        Arc::new(lb_model::Pool { backends, ..lb_model::Pool::default() })
    };
    for (low, text) in (0..).zip(["a", "b", "c"]) {
        configuration.pools.insert(name(text), pool(low));
    }
    let first = generation(1, configuration.clone(), &Ids::default());
    let mut generations = vec![first];
    let next = |configuration: &Configuration, before: &Generation| {
        generation(before.number + 1, configuration.clone(), &before.ids)
    };
    let weight = |configuration: &mut Configuration, weight| {
        let backends = &mut configuration.pool_mut(&name("b")).unwrap().backends;
        backends.get_mut(&[10, 0, 1, 7].into()).unwrap().weight = weight;
    };
    weight(&mut configuration, 5);
    generations.push(next(&configuration, &generations[0]));
    // Its number, 601, is in the third part.
    let backends = &mut configuration.pool_mut(&name("a")).unwrap().backends;
    let more = backends.values().next().unwrap().clone();
    backends.insert([10, 0, 9, 9].into(), more);
    generations.push(next(&configuration, &generations[1]));
    weight(&mut configuration, 1);
    generations.push(next(&configuration, &generations[2]));
    // 401 to 600; the pool's own number is 3.
    configuration.pools.remove(&name("c"));
    generations.push(next(&configuration, &generations[3]));

    let expected: [(&[&str], usize); 5] = [
        (&["generation/1", "ids/0", "ids/1", "ids/2"], 4),
        (&["generation/2"], 1),
        (&["generation/3", "ids/2"], 1),
        // The piece of the first generation.
        (&["generation/4"], 0),
        (&["generation/5", "ids/0", "ids/1", "ids/2"], 0),
    ];
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    for (generation, (keys, pieces)) in generations.iter().zip(expected) {
        drop(store);
        let before = rows_on_disk(&state);
        store = Store::open(state.path()).unwrap();
        commit(&mut store, generation.clone());
        drop(store);
        let keys = keys.iter().map(ToString::to_string).collect();
        let number = generation.number;
        assert_eq!(written_rows(&before, &rows_on_disk(&state)), (keys, pieces), "{number}");
        store = Store::open(state.path()).unwrap();
        assert_eq!(store.generation(), Some(generation));
    }
    // Nothing is read again for the second of two commits of one process.
    let sixth = generation(6, configuration, &generations[4].ids);
    commit(&mut store, Generation { number: 6, ..sixth.clone() });
    commit(&mut store, Generation { number: 7, ..sixth });
    assert_eq!(store.history().len(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Every generation is read back by the next open, with its numbers.
    #[test]
    fn a_committed_generation_is_read_back(
        steps in vec((arbitrary::configuration(), any::<bool>(), any::<Option<u16>>()), 1..8),
    ) {
        let state = directory();
        let mut store = Store::open(state.path()).unwrap();
        let key = store.hash_key();
        let mut expected: Option<Generation> = None;
        for (number, (mut configuration, reopen, settle)) in (1..).zip(steps) {
            if let (Some(former), Some(seconds)) = (&expected, settle) {
                // All stays but one pool.
                configuration = (*former.configuration).clone();
                let name = configuration.pools.keys().next().cloned();
                if let Some(pool) = name.and_then(|name| configuration.pool_mut(&name)) {
                    pool.settle_time = Duration::from_secs(u64::from(seconds) + 1);
                }
            }
            let ids = expected.as_ref().map(|generation| Arc::clone(&generation.ids)).unwrap_or_default();
            let next = generation(number, configuration, &ids);
            commit(&mut store, next.clone());
            if reopen {
                drop(store);
                store = Store::open(state.path()).unwrap();
            }
            expected = Some(next);
            prop_assert_eq!(store.generation(), expected.as_ref());
            prop_assert_eq!(store.hash_key(), key);
        }
    }
}
