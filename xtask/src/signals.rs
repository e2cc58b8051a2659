//! Ctrl-C and its kin: passed on to the children that are running, then xtask ends once they have.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{PipeWriter, Write};
use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Result;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The first signal that was caught, 0 for none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);

/// The children that signals go to, by numbers. Held while a child is started, so that none falls between.
static CHILDREN: Mutex<BTreeMap<u64, Target>> = Mutex::new(BTreeMap::new());

/// How a signal reaches a child.
pub(crate) enum Target {
    /// In our own process group: a Ctrl-C reaches it anyway.
    Process(Pid),
    /// Leader of a process group of its own.
    Group(Pid),
    /// Root's, behind a holder: it passes on each byte as a signal, and kills when the pipe ends.
    Held(PipeWriter),
}

impl Target {
    fn signal(&mut self, signal: Signal) {
        // A child that is gone already needs no signal.
        match self {
            Self::Process(pid) => drop(kill(*pid, signal)),
            Self::Group(pid) => drop(killpg(*pid, signal)),
            Self::Held(pipe) => drop(pipe.write_all(&[signal as i32 as u8])),
        }
    }
}

/// Waits for signals from now on.
pub(crate) fn install() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for number in signals.forever() {
            deliver(number);
        }
    });
    Ok(())
}

fn deliver(number: i32) {
    let first = CAUGHT.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    let mut children = lock();
    if children.is_empty() {
        exit(128 + number);
    }
    let signal = Signal::try_from(number).unwrap_or(Signal::SIGTERM);
    for child in children.values_mut() {
        child.signal(if first { signal } else { Signal::SIGKILL });
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<u64, Target>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child with `start` and directs signals to it until the guard is dropped. None is started when
/// one has come in.
pub(crate) fn direct<C>(start: impl FnOnce() -> Result<(C, Target)>) -> Result<(C, Directed)> {
    let mut children = lock();
    check()?;
    let (child, target) = start()?;
    let number = children.last_key_value().map_or(0, |(last, _)| last + 1);
    children.insert(number, target);
    Ok((child, Directed(number)))
}

/// Signals go to a child while this lives.
pub(crate) struct Directed(u64);

impl Directed {
    /// Ends the child by force. For root's, the pipe is closed and the holder does it.
    pub(crate) fn kill(&self) {
        let mut children = lock();
        match children.get_mut(&self.0) {
            Some(Target::Held(_)) => drop(children.remove(&self.0)),
            Some(child) => child.signal(Signal::SIGKILL),
            None => {}
        }
    }
}

impl Drop for Directed {
    fn drop(&mut self) {
        lock().remove(&self.0);
    }
}

/// An error if a signal has come in.
pub(crate) fn check() -> Result<(), Interrupted> {
    match CAUGHT.load(Ordering::SeqCst) {
        0 => Ok(()),
        number => Err(Interrupted(number)),
    }
}

/// A signal ended the work.
#[derive(Debug)]
pub(crate) struct Interrupted(i32);

impl Interrupted {
    /// What a shell reports for a program that died of the signal.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(128_u8.saturating_add(self.0 as u8))
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Signal::try_from(self.0).map_or("a signal", Signal::as_str);
        write!(f, "ended by {name}")
    }
}

impl std::error::Error for Interrupted {}
