//! Hold-downs that outlive the daemon: the status loop shows them, and the member loop of the next daemon continues them.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::members::clock;
use lb_common::abi::member::Accepts;
use lb_model::{
    Name, Pool,
    hold_down::{HoldDown, HoldDownTimes},
};

/// The hold-down of a backend in a pool, with times of this process or, in the file, since boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedHoldDown<T> {
    pub pool: Name,
    pub address: IpAddr,
    /// The pool's settings, which must be the same.
    pub times: HoldDownTimes,
    pub hold_down: HoldDown<T>,
}

/// The hold-downs of this daemon, and those that an earlier one wrote down. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct HoldDowns(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Until the member loop takes them.
    restored: Mutex<RestoredHoldDowns>,
    /// `None` until the members of a configuration are known.
    current: watch::Sender<Option<Arc<[SavedHoldDown<Instant>]>>>,
}

impl HoldDowns {
    /// With the hold-downs that an earlier daemon wrote down at `saved_at`.
    pub fn restored(saved: Vec<SavedHoldDown<Instant>>, saved_at: Instant) -> Self {
        let key = |saved: SavedHoldDown<Instant>| {
            ((saved.pool, saved.address), (saved.times, saved.hold_down))
        };
        let restored = RestoredHoldDowns {
            saved_at: Some(saved_at),
            members: saved.into_iter().map(key).collect(),
        };
        let shared = Shared { restored: Mutex::new(restored), ..Shared::default() };
        Self(Arc::new(shared))
    }

    /// Those that a restart must not forget, at most `limit`. `None`: no configuration is in force yet, so what an earlier
    /// daemon wrote down is still the newest.
    pub fn now(&self, limit: usize) -> Option<Vec<SavedHoldDown<Instant>>> {
        let current = self.0.current.borrow().clone()?;
        let now = clock();
        let kept = current.iter().filter(|saved| !saved.hold_down.is_forgiven(now, saved.times));
        Some(kept.take(limit).cloned().collect())
    }

    pub(crate) fn show(&self, current: impl Iterator<Item = SavedHoldDown<Instant>>) {
        self.0.current.send_replace(Some(current.collect()));
    }

    pub(crate) fn take_restored(&self) -> RestoredHoldDowns {
        std::mem::take(&mut *self.0.restored.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What an earlier daemon wrote down.
#[derive(Debug, Default)]
pub(crate) struct RestoredHoldDowns {
    saved_at: Option<Instant>,
    members: BTreeMap<(Name, IpAddr), (HoldDownTimes, HoldDown)>,
}

impl RestoredHoldDowns {
    /// The hold-down of a backend of a pool that accepts this now, as of `now`; `None`: nothing is known of it. It is taken
    /// once, so that what ends it later ends it for good.
    pub(crate) fn take(
        &mut self,
        (name, address): (&Name, IpAddr),
        accepts: Accepts,
        pool: &Pool,
        now: Instant,
    ) -> Option<HoldDown> {
        let saved_at = self.saved_at?;
        let (times, hold_down) = self.members.remove(&(name.clone(), address))?;
        let is_same = times == HoldDownTimes::new(pool);
        is_same.then(|| hold_down.restored(saved_at, accepts, times, now)).flatten()
    }
}
