//! A disk for unit tests, which lets the store's writes pass, refuses them, or does not answer.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, PoisonError},
};

use lb_store::InjectedFault;

/// Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct TestDisk(Arc<(Mutex<Answer>, Condvar)>);

/// What the disk does with a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    #[default]
    Writes,
    IsFull,
    /// Until it is told otherwise.
    Nothing,
}

impl TestDisk {
    pub fn set(&self, answer: Answer) {
        let (state, changed) = &*self.0;
        *state.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        changed.notify_all();
    }
}

impl InjectedFault for TestDisk {
    fn before_write(&self) -> io::Result<()> {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_while(state, |answer| *answer == Answer::Nothing);
        match *waited.unwrap_or_else(PoisonError::into_inner) {
            Answer::IsFull => Err(io::ErrorKind::StorageFull.into()),
            Answer::Writes | Answer::Nothing => Ok(()),
        }
    }
}
