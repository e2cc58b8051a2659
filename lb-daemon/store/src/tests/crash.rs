//! A write that fails, or a daemon that is killed, at any point of a commit.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use redb::StorageBackend;

use super::*;
use crate::record::{self, Disk};

/// A disk that takes a number of operations and then fails for good, as it stays after a crash.
#[derive(Clone, Debug)]
struct FailingDisk(Arc<Mutex<(Vec<u8>, usize)>>);

impl FailingDisk {
    fn new(content: Vec<u8>, operations: usize) -> Self {
        Self(Arc::new(Mutex::new((content, operations))))
    }

    fn content(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        disk.1 =
            disk.1.checked_sub(1).ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
        change(&mut disk.0);
        Ok(())
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.content().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = usize::try_from(offset).unwrap();
        out.copy_from_slice(disk.0.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|content| content.resize(usize::try_from(len).unwrap(), 0))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|_| ())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        self.change(|content| content[at..at + data.len()].copy_from_slice(data))
    }
}

fn open(disk: &FailingDisk) -> Database {
    Database::builder().create_with_backend(disk.clone()).unwrap()
}

/// The current generation, and the configurations of all before it.
fn content(database: Database) -> (Generation, History) {
    let record = record::read(&database).unwrap().unwrap();
    let reader = GenerationReader::new("store".into());
    reader.set(Some(Arc::new(database)));
    let history = record.disk.history();
    let read = |it: &HistoryEntry| (!it.is_before_fleet).then(|| reader.read(it.number).unwrap());
    let history = history.iter().map(|it| (it.clone(), read(it)));
    (record.stored.unwrap().unwrap(), history.collect())
}

#[test]
fn the_last_committed_generation_is_there_with_its_history_wherever_a_write_ends() {
    let name = |number: u64| lb_model::Name::new(&format!("pool-{number}")).unwrap();
    // Each generation has one more pool, so the last commit removes a description and adds a piece.
    let mut configuration = Configuration::default();
    let mut generations = Vec::new();
    let mut ids = Arc::default();
    for number in 1..=HISTORY as u64 + 1 {
        configuration.pools.insert(name(number), Arc::new(lb_model::Pool::default()));
        configuration.pools.remove(&name(number.saturating_sub(3)));
        let next = generation(number, configuration.clone(), &ids);
        ids = Arc::clone(&next.ids);
        generations.push(Arc::new(next));
    }
    let last = generations.pop().unwrap();
    let written = wherever_a_write_ends(&generations, &last, HISTORY);
    assert_eq!(written.0, written.1[1..], "the first is too old");
}

/// A balancer joins a fleet, whose number may be any, and leaves it. Either all of its own history is in force, or all of it is
/// from before the fleet.
#[test]
fn a_history_is_whole_wherever_the_write_of_another_one_ends() {
    let own = |number: u64| {
        let mut configuration = Configuration::default();
        let name = lb_model::Name::new(&format!("pool-{number}")).unwrap();
        configuration.pools.insert(name, Arc::new(lb_model::Pool::default()));
        Arc::new(generation(number, configuration, &Ids::default()))
    };
    let generations: Vec<_> = (1..=4).map(own).collect();
    for number in [1, 3, 4, 9] {
        let series = Series::default().next(4, number, true);
        let shared = Generation { series, ..(*own(number + 10)).clone() };
        let shared = Arc::new(Generation { number, ..shared });
        let (joined, before) = wherever_a_write_ends(&generations, &shared, 5);
        assert_eq!((joined.len(), before.len()), (4, 4), "{number}");
        assert!(joined.iter().all(|it| it.0.is_before_fleet), "{number}");

        let last = Generation { series: series.next(number, 5, false), ..(*own(5)).clone() };
        let both = [generations.clone(), vec![shared]].concat();
        let (left, _) = wherever_a_write_ends(&both, &Arc::new(last), 5);
        assert_eq!(left, before, "{number}");
    }
}

/// Configurations of those that can be read.
type History = Vec<(HistoryEntry, Option<Configuration>)>;

/// Commits `last` after the others, and ends that at each operation of the disk: then the file has it with a history of
/// `length`, or all of what was before. Returns what of the history is older than the last generation, after and before.
fn wherever_a_write_ends(
    generations: &[Arc<Generation>],
    last: &Arc<Generation>,
    length: usize,
) -> (History, History) {
    let disk = FailingDisk::new(Vec::new(), usize::MAX);
    let database = open(&disk);
    let key = record::create(&database).unwrap().hash_key;
    let mut known = Disk::default();
    for generation in generations {
        known = record::write(&database, &key, known, generation).unwrap();
    }
    drop(database);
    let good = disk.content();
    let before = content(open(&FailingDisk::new(good.clone(), usize::MAX)));
    assert_eq!((&before.0, before.1.len()), (&**generations.last().unwrap(), generations.len()));

    let (mut olds, mut news) = (0, 0);
    let mut after = Vec::new();
    for operations in 0.. {
        let disk = FailingDisk::new(good.clone(), usize::MAX);
        let database = open(&disk);
        disk.0.lock().unwrap().1 = operations;
        let written = record::write(&database, &key, known.clone(), last);
        // What a killed daemon leaves: closing it would write too.
        let left = disk.content();
        drop(database);
        let found = content(open(&FailingDisk::new(left, usize::MAX)));
        if written.is_ok() || found.0 == **last {
            news += 1;
            assert_eq!((&found.0, found.1.len()), (&**last, length), "{operations}");
            after = found.1;
            assert_eq!(after.pop().unwrap().0, last.entry());
        } else {
            olds += 1;
            assert_eq!(found, before, "{operations}");
        }
        if written.is_ok() {
            break;
        }
    }
    assert!(olds > 3 && news > 0, "{olds} before, {news} after");
    (after, before.1)
}

/// After a failure it is not known what is on disk, so it is read again.
#[test]
fn a_commit_after_a_failed_one_has_the_history() {
    let state = directory();
    let mut store = Store::open(state.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let next = |number| generation(number, Configuration::default(), &Ids::default());
    commit(&mut store, next(1));
    commit(&mut store, next(2));
    let disk = test_disk::TestDisk::default();
    store.inject(Arc::new(disk.clone()));
    disk.set(test_disk::Answer::IsFull);
    runtime.block_on(store.commit(next(3))).unwrap_err();
    assert!(store.has_failed());
    assert_eq!(store.history().len(), 2);
    assert_eq!(store.reader().read(1).unwrap(), Configuration::default());
    disk.set(test_disk::Answer::Writes);
    commit(&mut store, next(3));
    assert!(!store.has_failed());
    for _ in 0..2 {
        let numbers: Vec<_> = store.history().iter().map(|it| it.number).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(store.reader().read(1).unwrap(), Configuration::default());
        drop(store);
        store = Store::open(state.path()).unwrap();
    }
}
