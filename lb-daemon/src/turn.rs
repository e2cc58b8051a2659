//! What one may have at a time.

use std::sync::{Arc, Mutex, PoisonError};

use crate::access::Actor;

/// Who has it, if anybody. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<Option<Actor>>>);

impl Turns {
    /// Takes it.
    ///
    /// # Errors
    /// Who has it.
    pub(crate) fn take(&self, actor: &Actor) -> Result<Turn, Actor> {
        let mut holder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(holder) = &*holder {
            return Err(holder.clone());
        }
        *holder = Some(actor.clone());
        Ok(Turn(Arc::clone(&self.0)))
    }
}

/// While it lives nobody else has it.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Mutex<Option<Actor>>>);

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let turns = Turns::default();
        let turn = turns.clone().take(&Actor::User(7)).unwrap();
        assert_eq!(turns.take(&Actor::User(8)).err(), Some(Actor::User(7)));
        drop(turn);
        assert!(turns.take(&Actor::User(8)).is_ok());
    }
}
