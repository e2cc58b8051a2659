//! What the balancers of a fleet share, and generations with a fleet's numbers.

use super::*;
use prost::Message as _;
use spillway_proto::v1;

/// Bytes with the fields of a shared configuration.
fn bytes(schema: i32, configuration: &[u8]) -> Vec<u8> {
    #[derive(Clone, PartialEq, prost::Message)]
    struct Fields {
        #[prost(int32, tag = "1")]
        schema: i32,
        #[prost(bytes = "vec", tag = "2")]
        configuration: Vec<u8>,
    }
    Fields { schema, configuration: configuration.to_vec() }.encode_to_vec()
}

/// A configuration that a fleet can share, as a message.
fn message() -> v1::Configuration {
    let pool = v1::Pool { name: "web".into(), slots: Some(31), ..v1::Pool::default() };
    let hash_key = "000102030405060708090a0b0c0d0e0f".into();
    v1::Configuration { pools: vec![pool], hash_key, balancers: 1, ..v1::Configuration::default() }
}

fn refused(schema: i32, message: &v1::Configuration) -> String {
    decode_shared(&bytes(schema, &message.encode_to_vec())).unwrap_err().to_string()
}

#[test]
fn the_format_of_shared_configurations_stays() {
    let configuration = decode_shared(&bytes(1, &message().encode_to_vec())).unwrap();
    let shared = encode_shared(&configuration).unwrap().parts;
    // What every program knows says so, whichever wrote it.
    let (name, pool) = configuration.pools.iter().next().unwrap();
    let settings = bytes(1, &lb_config::encode_without_pools(&configuration));
    assert_eq!(shared, [settings, bytes(0, &lb_config::encode_pool(name, pool))]);
    assert_eq!(shared[0][..2], [8, 1]);
    assert_eq!(decode_shared(&shared.concat()).unwrap(), configuration);
}

/// A configuration with whatever revision 1 has needs no later one, also if a newer program fills in what is left out.
#[test]
fn what_a_later_revision_added_is_not_needed_unless_it_is_used() {
    let need = encode_shared(&decode_shared(&bytes(1, &message().encode_to_vec())).unwrap());
    assert_eq!(need.unwrap().need, SchemaNeed { revision: Revision::FIRST, of: None });
}

/// A newer balancer that says too early a revision is found out.
#[test]
fn fields_that_are_not_known_are_not_dropped() {
    let mut configuration = message().encode_to_vec();
    configuration.extend([0xf8, 0x7f, 0x01]);
    let error = decode_shared(&bytes(1, &configuration)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the configuration of the fleet has something that this version does not know: field 2047 of Configuration"
    );
    assert!(error.is_newer());
    let mut value = message();
    value.pools[0].backends = vec![v1::Backend {
        admin_state: 77,
        address: "192.0.2.1".into(),
        ..v1::Backend::default()
    }];
    assert!(decode_shared(&bytes(1, &value.encode_to_vec())).unwrap_err().is_newer());
}

#[test]
fn what_balancers_would_not_understand_alike_is_not_shared() {
    let current = Revision::CURRENT.number();
    // A newer balancer may have fields that would be lost; they need not even be readable.
    let newer = decode_shared(&bytes(current + 1, &[0xff])).unwrap_err();
    assert!(matches!(newer, SharedError::Schema(SchemaMismatch::NewerFleet { .. })), "{newer}");
    assert!(newer.is_newer());
    let sentence = format!(
        "this balancer is older than the configuration of the fleet (schema revision {current}, the fleet has {}), and \
         fields that it does not know would be left out",
        current + 1
    );
    assert_eq!(newer.to_string(), sentence);

    let without_key = v1::Configuration { hash_key: String::new(), ..message() };
    let sentence = refused(current, &without_key);
    assert!(sentence.starts_with("the configuration of the fleet names no hash_key"), "{sentence}");
    for slots in [None, Some(0)] {
        let mut open = message();
        open.pools[0].slots = slots;
        let sentence = refused(current, &open);
        assert!(sentence.contains("leaves the slots of pool web open"), "{sentence}");
    }
    let mut wrong = message();
    wrong.pools[0].slots = Some(32);
    assert_eq!(
        refused(current, &wrong),
        "this version refuses the configuration of the fleet: pools[0] \"web\": slots: 32 is not a prime: 2 divides it"
    );
    for broken in [&[0xff][..], &bytes(current, &[0xff])] {
        let error = decode_shared(broken).unwrap_err();
        assert!(matches!(error, SharedError::Malformed(_)), "{error}");
    }
    let mut configuration = decode_shared(&bytes(current, &message().encode_to_vec())).unwrap();
    configuration.hash_key = None;
    assert!(matches!(encode_shared(&configuration), Err(SharedError::NoHashKey)));
}

proptest! {
    /// Equal configurations have equal bytes, however they came about.
    #[test]
    fn a_shared_configuration_is_read_as_it_was_written(
        mut configuration in arbitrary::configuration(),
        key in any::<[u64; 2]>(),
    ) {
        configuration.hash_key = Some(key);
        let shared = encode_shared(&configuration).unwrap().parts;
        let read = decode_shared(&shared.concat()).unwrap();
        prop_assert_eq!(&read, &configuration);
        prop_assert_eq!(encode_shared(&read).unwrap().parts, shared);
    }

    #[test]
    fn no_bytes_make_it_panic(any in vec(any::<u8>(), 0..100), at: prop::sample::Index, by: u8) {
        let _ = decode_shared(&any);
        let mut shared = bytes(1, &message().encode_to_vec());
        let at = at.index(shared.len());
        shared[at] = by;
        let _ = decode_shared(&shared);
    }
}

/// Of the generations in the history, without those from before the fleet.
fn numbers(store: &Store) -> Vec<u64> {
    store.history().iter().filter(|it| !it.is_before_fleet).map(|it| it.number).collect()
}

/// Of those from before the fleet, which come first.
fn before_fleet(store: &Store) -> Vec<u64> {
    store.history().iter().take_while(|it| it.is_before_fleet).map(|it| it.number).collect()
}

/// The next generation of a store. A shared one has the number, and another one the next, after a fleet the next of its own.
fn next(store: &Store, shared: Option<u64>) -> Generation {
    let last = store.number();
    let own = store.last_before_fleet().filter(|_| shared.is_none());
    let number = shared.unwrap_or(own.unwrap_or(last) + 1);
    let series = store.series().next(last, number, shared.is_some());
    let mut configuration = Configuration::default();
    let pool = lb_model::Name::new(&format!("pool-{last}-{number}")).unwrap();
    configuration.pools.insert(pool, Arc::new(lb_model::Pool::default()));
    Generation { series, ..generation(number, configuration, &Ids::default()) }
}

#[test]
fn a_fleets_history_takes_the_place_of_the_own_one_until_it_is_left() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    let mut own = BTreeMap::new();
    for (shared, before, expected) in [
        (None, &[][..], &[1][..]),
        (None, &[], &[1, 2]),
        (None, &[], &[1, 2, 3]),
        // It joins a fleet: lower, equal, higher.
        (Some(2), &[1, 2, 3], &[2]),
        (Some(3), &[1, 2, 3], &[2, 3]),
        (Some(9), &[1, 2, 3], &[2, 3, 9]),
        // It leaves, and then joins again.
        (None, &[], &[1, 2, 3, 4]),
        (None, &[], &[1, 2, 3, 4, 5]),
        (Some(2), &[1, 2, 3, 4, 5], &[2]),
        (None, &[], &[1, 2, 3, 4, 5, 6]),
        (Some(12), &[1, 2, 3, 4, 5, 6], &[12]),
        // The fleet was founded anew.
        (Some(12), &[1, 2, 3, 4, 5, 6], &[12]),
        (Some(1), &[1, 2, 3, 4, 5, 6], &[1]),
        (Some(2), &[1, 2, 3, 4, 5, 6], &[1, 2]),
    ] {
        let generation = next(&store, shared);
        commit(&mut store, generation.clone());
        if shared.is_none() {
            own.insert(generation.number, Arc::clone(&generation.configuration));
        }
        for _ in 0..2 {
            assert_eq!((&*before_fleet(&store), &*numbers(&store)), (before, expected));
            assert_eq!(store.generation(), Some(&generation));
            for number in expected {
                let read = store.reader().read(*number).unwrap();
                assert!(shared.is_some() || read == *own[number], "{number} is the fleet's");
            }
            for number in before.iter().filter(|it| !expected.contains(it)) {
                assert!(matches!(store.reader().read(*number), Err(ReadError::NotKept)));
            }
            assert!(matches!(store.reader().read(8), Err(ReadError::NotKept)));
            drop(store);
            store = Store::open(state.path()).unwrap();
        }
    }
    drop(store);
    // A piece for what is no pool, and one for each pool, of which generation 2 has the same in both: nothing is left of
    // other histories.
    let pieces = rows_on_disk(&state).into_keys().filter(|key| key.starts_with("piece/"));
    assert_eq!(pieces.count(), 1 + 6 + 1);
}

/// Who had nothing of its own before the fleet goes on with the fleet's numbers.
#[test]
fn a_balancer_without_a_history_of_its_own_keeps_that_of_the_fleet() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    for (shared, before, expected) in [
        (Some(7), &[][..], &[7][..]),
        (Some(8), &[], &[7, 8]),
        (None, &[], &[7, 8, 9]),
        (Some(9), &[7, 8, 9], &[9]),
        (None, &[], &[7, 8, 9, 10]),
    ] {
        let generation = next(&store, shared);
        commit(&mut store, generation);
        assert_eq!((&*before_fleet(&store), &*numbers(&store)), (before, expected));
    }
}

/// The last twenty come back, and the twenty-first goes.
#[test]
fn a_full_history_is_kept_over_a_fleet() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    let commit_next = |store: &mut Store, shared| {
        let generation = next(store, shared);
        commit(store, generation);
    };
    (0..25).for_each(|_| commit_next(&mut store, None));
    (1..=30).for_each(|number| commit_next(&mut store, Some(number)));
    drop(store);
    let mut store = Store::open(state.path()).unwrap();
    assert_eq!(before_fleet(&store), (6..=25).collect::<Vec<_>>());
    assert_eq!(numbers(&store), (11..=30).collect::<Vec<_>>());
    commit_next(&mut store, None);
    assert_eq!(numbers(&store), (7..=26).collect::<Vec<_>>());
    assert_eq!(before_fleet(&store), [0; 0]);
    drop(store);
    let pieces = rows_on_disk(&state).into_keys().filter(|key| key.starts_with("piece/"));
    assert_eq!(pieces.count(), 1 + HISTORY);
}

/// The file has the generation of the fleet, and the daemon does not know it. Then it stores again what it has in force.
#[test]
fn histories_are_not_mixed_after_a_write_that_failed_late() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    for _ in 0..3 {
        let generation = next(&store, None);
        commit(&mut store, generation);
    }
    let (in_force, series) = (store.generation().unwrap().clone(), store.series());
    let shared = next(&store, Some(2));
    commit(&mut store, shared.clone());
    assert_ne!(store.series(), series);
    commit(&mut store, in_force.clone());
    assert_eq!((numbers(&store), store.series()), (vec![1, 2, 3], series));
    commit(&mut store, shared);
    assert_eq!(numbers(&store), [2]);
    // The same generation once more is no other history.
    for number in [3, 3] {
        let again = Generation { series: store.series(), ..next(&store, Some(number)) };
        commit(&mut store, again);
        assert_eq!(numbers(&store), [2, 3]);
    }
}

/// A damaged description does not say of which history it is.
#[test]
fn damaged_generations_go_with_their_history() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    for _ in 0..3 {
        let generation = next(&store, None);
        commit(&mut store, generation);
    }
    drop(store);
    history::change_row(&state, "generation/1", history::flipped);
    let mut store = Store::open(state.path()).unwrap();
    let generation = next(&store, None);
    commit(&mut store, generation);
    assert_eq!(numbers(&store), [1, 2, 3, 4]);
    let generation = next(&store, Some(9));
    commit(&mut store, generation);
    for _ in 0..2 {
        assert_eq!((before_fleet(&store), numbers(&store)), (vec![2, 3, 4], vec![9]));
        drop(store);
        store = Store::open(state.path()).unwrap();
    }
}
