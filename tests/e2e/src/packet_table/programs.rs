//! The loaded programs, one of each for all rows.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::packet_table::row::Row;
use anyhow::{Result, anyhow};
use lb_tests::packets::{
    balancer::{Balancer, Ran},
    counters::Counters,
    fixture::MapFixture,
    receiver::Receiver,
};

/// Rows use indices below this; the whole maps are looked at once, in [`super::invariants`].
const WATCHED: u32 = 320;

type Loaded<T> = LazyLock<Result<Mutex<Subject<T>>, String>>;

static BALANCER: Loaded<Balancer> = LazyLock::new(|| load(Balancer::load, Balancer::counters));
static RECEIVER: Loaded<Receiver> = LazyLock::new(|| load(Receiver::load, Receiver::counters));
static RECEIVER_AT_TC: Loaded<Receiver> =
    LazyLock::new(|| load(Receiver::load_for_tc, Receiver::counters));

/// A loaded program and its counters after the last row: only rows move them. To read them takes longer than all
/// else of a row.
pub(crate) struct Subject<T> {
    program: T,
    counters: Counters,
}

fn load<T>(
    load: impl FnOnce() -> Result<T>,
    read: impl FnOnce(&T, u32) -> Result<Counters>,
) -> Result<Mutex<Subject<T>>, String> {
    let loaded = load().and_then(|program| {
        let counters = read(&program, WATCHED)?;
        Ok(Mutex::new(Subject { program, counters }))
    });
    loaded.map_err(|error| format!("{error:#}"))
}

fn lock<T>(loaded: &'static Loaded<T>) -> Result<MutexGuard<'static, Subject<T>>> {
    let subject = loaded.as_ref().map_err(|error| anyhow!("{error}"))?;
    Ok(subject.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The loaded balancer.
pub(crate) fn balancer() -> Result<MutexGuard<'static, Subject<Balancer>>> {
    lock(&BALANCER)
}

/// The loaded receiver.
pub(crate) fn receiver() -> Result<MutexGuard<'static, Subject<Receiver>>> {
    lock(&RECEIVER)
}

/// The loaded receiver for tc.
pub(crate) fn receiver_at_tc() -> Result<MutexGuard<'static, Subject<Receiver>>> {
    lock(&RECEIVER_AT_TC)
}

impl Subject<Balancer> {
    /// Runs a row and checks what came of it.
    pub(crate) fn check(&mut self, row: &Row<MapFixture>) -> Result<()> {
        self.program.show(&row.fixture)?;
        let ran = self.program.run(&row.frame)?;
        self.judge(row, &ran, self.program.counters(WATCHED)?)
    }

    /// The same with no more than so many bytes of room in front of the frame.
    pub(crate) fn check_in(&mut self, row: &Row<MapFixture>, room: usize) -> Result<()> {
        self.program.show(&row.fixture)?;
        let ran = self.program.run_in(&row.frame, room)?;
        self.judge(row, &ran, self.program.counters(WATCHED)?)
    }
}

impl Subject<Receiver> {
    /// Runs a row and checks what came of it.
    pub(crate) fn check(&mut self, row: &Row<()>) -> Result<()> {
        let ran = self.program.run(&row.frame)?;
        self.judge(row, &ran, self.program.counters(WATCHED)?)
    }
}

impl<T> Subject<T> {
    fn judge<S>(&mut self, row: &Row<S>, ran: &Ran, now: Counters) -> Result<()> {
        let moved = now.since(&self.counters);
        self.counters = now;
        row.expected.check(row.frame.len(), ran, &moved)
    }
}
