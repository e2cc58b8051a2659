//! 64-bit words with several writers.

use core::cell::Cell;

/// A word in a map: the kernel's memory in a packet program, a plain cell in a test.
pub trait Word: Copy {
    /// Its value.
    fn load(self) -> u64;
    /// Stores `to` if the value is `from`.
    ///
    /// # Errors
    /// The value that it has instead; nothing changed.
    fn exchange(self, from: u64, to: u64) -> Result<(), u64>;
    /// Adds to it, wrapping around, and returns the value before.
    fn add(self, value: u64) -> u64;
}

impl Word for &Cell<u64> {
    #[inline(always)]
    fn load(self) -> u64 {
        self.get()
    }

    #[inline(always)]
    fn exchange(self, from: u64, to: u64) -> Result<(), u64> {
        let found = self.get();
        if found != from {
            return Err(found);
        }
        self.set(to);
        Ok(())
    }

    #[inline(always)]
    fn add(self, value: u64) -> u64 {
        self.replace(self.get().wrapping_add(value))
    }
}

/// A copy of a word: reads give the copied value, writes are lost.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot(pub u64);

impl Word for Snapshot {
    fn load(self) -> u64 {
        self.0
    }

    fn exchange(self, from: u64, _: u64) -> Result<(), u64> {
        if self.0 == from { Ok(()) } else { Err(self.0) }
    }

    fn add(self, _: u64) -> u64 {
        self.0
    }
}
