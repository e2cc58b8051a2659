//! Work that one caller at a time may do, such as a capture.

use std::sync::{Arc, Mutex, PoisonError};

/// Stores the current caller, of type `T`. Clones share it.
#[derive(Clone, Debug)]
pub struct Exclusive<T>(Arc<Mutex<Option<T>>>);

/// Dropping it lets the next caller begin.
#[derive(Debug)]
pub struct ExclusiveGuard<T>(Arc<Mutex<Option<T>>>);

impl<T> Default for Exclusive<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Exclusive<T> {
    /// Begins the work for `caller`.
    ///
    /// # Errors
    /// The current caller.
    pub fn begin(&self, caller: &T) -> Result<ExclusiveGuard<T>, T> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = &*current {
            return Err(current.clone());
        }
        *current = Some(caller.clone());
        Ok(ExclusiveGuard(Arc::clone(&self.0)))
    }
}

impl<T> Drop for ExclusiveGuard<T> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_at_a_time() {
        let work = Exclusive::default();
        let guard = work.clone().begin(&7).unwrap();
        assert_eq!(work.begin(&8).err(), Some(7));
        drop(guard);
        assert!(work.begin(&8).is_ok());
    }
}
