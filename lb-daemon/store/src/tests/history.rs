//! The last generations.

use std::collections::BTreeSet;

use super::*;
use crate::pieces::{Contents, PieceList};
use lb_pieces::{Digest, MAX_PIECE};

fn name(text: &str) -> lb_model::Name {
    lb_model::Name::new(text).unwrap()
}

fn with_pools(pools: &[(&str, u64)]) -> Configuration {
    let mut configuration = Configuration::default();
    for (pool, seconds) in pools {
        let settle_time = Duration::from_secs(*seconds);
        let pool_of = lb_model::Pool { settle_time, ..lb_model::Pool::default() };
        configuration.pools.insert(name(pool), Arc::new(pool_of));
    }
    configuration
}

fn numbers(store: &Store) -> Vec<u64> {
    store.history().iter().map(|entry| entry.number).collect()
}

/// Pieces of which a store's file has rows.
fn pieces_on_disk(state: &TempDir) -> BTreeSet<String> {
    let rows = rows_on_disk(state).into_keys();
    rows.filter_map(|key| key.strip_prefix("piece/").map(str::to_owned)).collect()
}

pub(super) fn change_row(
    state: &TempDir,
    key: &str,
    change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>,
) {
    let database = Database::open(state.path().join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(TABLE).unwrap();
        let row = table.remove(key).unwrap().unwrap().value().to_vec();
        if let Some(row) = change(row) {
            table.insert(key, &*row).unwrap();
        }
    }
    transaction.commit().unwrap();
}

pub(super) fn flipped(mut row: Vec<u8>) -> Option<Vec<u8>> {
    *row.last_mut().unwrap() ^= 1;
    Some(row)
}

#[test]
fn the_last_twenty_generations_are_kept_with_who_and_why() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    assert_eq!(store.history().len(), 0);
    let all: Vec<_> = (1..=25)
        .map(|number| generation(number, with_pools(&[("a", number)]), &Ids::default()))
        .collect();
    for generation in &all {
        commit(&mut store, generation.clone());
    }
    for _ in 0..2 {
        let expected: Vec<_> = all[5..].iter().map(|it| it.entry()).collect();
        assert_eq!(**store.history(), expected);
        assert_eq!((&*expected[0].who, &*expected[0].why), ("uid 6", "reason 6"));
        assert!(matches!(store.reader().read(5), Err(ReadError::NotKept)));
        for generation in &all[5..] {
            let read = store.reader().read(generation.number).unwrap();
            assert_eq!(read, *generation.configuration);
        }
        drop(store);
        store = Store::open(state.path()).unwrap();
    }
    drop(store);
    // One for what is no pool, and one of each generation.
    assert_eq!(pieces_on_disk(&state).len(), 21);
}

#[test]
fn a_damaged_old_generation_does_not_stop_a_start_and_the_history_says_so() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    for number in 1..=3 {
        commit(&mut store, generation(number, with_pools(&[("a", number)]), &Ids::default()));
    }
    drop(store);
    let mut contents = Contents::new();
    let first = PieceList::new(None, &with_pools(&[("a", 1)]), &mut contents);
    let piece = *first.digests().last().unwrap();
    change_row(&state, &format!("piece/{piece}"), flipped);
    change_row(&state, "generation/2", flipped);
    let mut store = Store::open(state.path()).unwrap();
    assert_eq!((store.number(), numbers(&store)), (3, vec![1, 2, 3]));
    let unusable = |store: &Store| -> Vec<_> {
        store.history().iter().map(|it| it.unusable.clone()).collect()
    };
    let damaged = Some(format!("piece {piece} is damaged"));
    let second = Some("the checksum of its description does not match".to_owned());
    assert_eq!(unusable(&store), [damaged.clone(), second.clone(), None]);
    assert_eq!(store.history()[1].applied_at, None);
    for (number, cause) in [(1, damaged), (2, second.clone())] {
        let refused = store.reader().read(number).unwrap_err();
        assert!(
            matches!(&refused, ReadError::Unusable(text) if *text == cause.unwrap()),
            "{refused}"
        );
    }
    // A generation with the same content mends it. That of the damaged description is forgotten.
    commit(&mut store, generation(4, with_pools(&[("a", 1)]), &Ids::default()));
    assert_eq!(unusable(&store), [None, second, None, None]);
    assert_eq!(store.reader().read(1).unwrap(), with_pools(&[("a", 1)]));
    drop(store);
    assert_eq!(pieces_on_disk(&state).len(), 3);
    // A missing piece.
    change_row(&state, &format!("piece/{piece}"), |_| None);
    let cause = refusal(&state).0;
    assert_eq!(cause, format!("is damaged: generation 4: piece {piece} is missing"));
}

#[test]
fn a_damaged_current_generation_is_refused() {
    let state = directory();
    let path = written(&state);
    let good = fs::read(&path).unwrap();
    let keys: Vec<_> = rows_on_disk(&state).into_keys().collect();
    let mut refused = 0;
    for key in keys {
        for change in [flipped as fn(_) -> _, |_| None] {
            fs::write(&path, &good).unwrap();
            change_row(&state, &key, change);
            let (cause, _) = refusal(&state);
            assert!(
                cause.starts_with("is damaged: ") || cause.starts_with("was written by a newer"),
                "{key}: {cause}"
            );
            refused += 1;
        }
    }
    assert!(refused >= 14, "{refused}");
}

/// Pools that share a piece with the one that changes, comes or goes.
#[test]
fn pools_of_one_piece_change_by_themselves() {
    let names: Vec<_> = (0..600).map(|number| format!("pool-{number}")).collect();
    let all = names.iter().map(|name| (&**name, 1)).collect::<Vec<_>>();
    let before = with_pools(&all);
    let mut contents = Contents::new();
    let list = PieceList::new(None, &before, &mut contents);
    // Fewer pieces than pools: most pools share one.
    assert!((200..=257).contains(&contents.len()), "{}", contents.len());
    for one in &names[..20] {
        let changed: Vec<_> =
            all.iter().map(|(name, seconds)| (*name, seconds + u64::from(name == one))).collect();
        let less: Vec<_> = all.iter().filter(|(name, _)| name != one).copied().collect();
        let more = [&all[..], &[("another", 1)]].concat();
        for (pools, pieces) in [(&changed, 1..=1), (&less, 0..=1), (&more, 1..=1)] {
            let after = with_pools(pools);
            let mut new = Contents::new();
            let next = PieceList::new(Some((&before, &list)), &after, &mut new);
            new.retain(|digest, _| !contents.contains_key(digest));
            assert!(pieces.contains(&new.len()), "{one}: {}", new.len());
            assert_eq!(next, PieceList::new(None, &after, &mut Contents::new()), "{one}");
            new.extend(contents.clone());
            let bytes: Vec<u8> = next.digests().flat_map(|digest| new[digest].clone()).collect();
            assert_eq!(record::decode(&bytes), Ok(after));
        }
    }
}

#[test]
fn a_large_piece_is_split() {
    let mut configuration = Configuration::default();
    configuration.regions.insert(name("eu"), lb_model::Region::default());
    let backend = lb_model::Backend {
        region: name("eu"),
        weight: 1,
        admin_state: lb_model::AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    };
    let address = |n: u32| std::net::Ipv4Addr::from(0x0a00_0000 + n).into();
    let backends = (0..30_000).map(|n| (address(n), backend.clone())).collect();
    let pool = lb_model::Pool { backends, slots: 65537, ..lb_model::Pool::default() };
    configuration.pools.insert(name("large"), Arc::new(pool));
    let mut contents = Contents::new();
    let list = PieceList::new(None, &configuration, &mut contents);
    assert!(contents.len() > 2, "{}", contents.len());
    assert!(
        contents.iter().all(|(digest, it)| it.len() <= MAX_PIECE && Digest::new(it) == *digest)
    );
    let bytes: Vec<u8> = list.digests().flat_map(|digest| contents[digest].clone()).collect();
    let read = lb_config::StoredMessage::read(&bytes).unwrap();
    assert_eq!(read, lb_config::StoredMessage::from(&configuration));
}

#[test]
fn a_digest_is_read_as_it_is_written() {
    let digest = Digest::new(b"abc");
    let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(digest.to_string(), text);
    assert_eq!(Digest::parse(text), Some(digest));
    for wrong in
        ["", &text[1..], &text.to_uppercase(), &text.replace('b', "+"), &format!("{text}0")]
    {
        assert_eq!(Digest::parse(wrong), None, "{wrong}");
    }
}

/// A step of a history: one of few configurations, so that pieces come back, with one pool of its own or none.
#[derive(Clone, Debug)]
struct Step {
    configuration: usize,
    own: Option<u8>,
    reopen: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (0..4usize, any::<Option<u8>>(), any::<bool>()).prop_map(|(configuration, own, reopen)| Step {
        configuration,
        own,
        reopen,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// What is kept is what a list of the last twenty generations has, and no other piece is on disk.
    #[test]
    fn the_history_is_that_of_a_naive_model(
        configurations in vec(arbitrary::configuration(), 4),
        steps in vec(step(), 1..30),
    ) {
        let state = directory();
        let mut store = Store::open(state.path()).unwrap();
        let mut model: Vec<Generation> = Vec::new();
        let mut ids = Arc::default();
        for (number, Step { configuration, own, reopen }) in (1..).zip(steps) {
            let mut configuration = configurations[configuration].clone();
            if let Some(own) = own {
                let pool = lb_model::Pool { settle_time: Duration::from_secs(u64::from(own) + 1), ..lb_model::Pool::default() };
                configuration.pools.insert(name("own"), Arc::new(pool));
            }
            let next = generation(number, configuration, &ids);
            ids = Arc::clone(&next.ids);
            commit(&mut store, next.clone());
            model.push(next);
            if model.len() > 20 {
                model.remove(0);
            }
            if reopen {
                drop(store);
                store = Store::open(state.path()).unwrap();
            }
            let expected: Vec<_> = model.iter().map(|it| it.entry()).collect();
            prop_assert_eq!(&**store.history(), expected);
        }
        for generation in &model {
            prop_assert_eq!(&store.reader().read(generation.number).unwrap(), &*generation.configuration);
        }
        drop(store);
        let mut contents = Contents::new();
        for generation in &model {
            PieceList::new(None, &generation.configuration, &mut contents);
        }
        let expected: BTreeSet<_> = contents.keys().map(ToString::to_string).collect();
        prop_assert_eq!(pieces_on_disk(&state), expected);
    }
}
