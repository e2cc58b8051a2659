//! Room on the stack that is filled only where it is needed.

use core::mem::MaybeUninit;

/// Room for a value that a function may leave to its caller. To be empty costs one store.
pub struct Slot<T> {
    is_filled: u64,
    value: MaybeUninit<T>,
}

impl<T: Copy> Slot<T> {
    /// Nothing.
    #[inline(always)]
    pub const fn empty() -> Self {
        Self { is_filled: 0, value: MaybeUninit::uninit() }
    }

    /// Puts a value there.
    #[inline(always)]
    pub const fn fill(&mut self, value: &T) {
        self.value = MaybeUninit::new(*value);
        self.is_filled = 1;
    }

    /// What was put there.
    #[inline(always)]
    pub const fn get(&self) -> Option<&T> {
        if self.is_filled == 0 {
            return None;
        }
        // SAFETY: only `fill` sets this, after it stored a value.
        Some(unsafe { self.value.assume_init_ref() })
    }
}
