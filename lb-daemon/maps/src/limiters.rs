//! Limits, which the daemon changes while packets debit.

use std::mem::offset_of;

use lb_common::{
    abi::{
        clock::Nanoseconds,
        limiter::{LimitWord, Limiter},
    },
    admission::{change_limit, clamp_arrival},
};

use super::{ArrayView, raw::MappingMut};

const LIMIT_WORD: usize = offset_of!(Limiter, limit) / size_of::<u64>();
const ARRIVAL_WORD: usize = offset_of!(Limiter, arrival) / size_of::<u64>();

impl ArrayView<Limiter, MappingMut> {
    /// Changes a limit; what was admitted before still counts, in connections.
    pub(super) fn change(&self, limiter: u32, limit: LimitWord, now: Nanoseconds) {
        let word = |word| self.shared_word(limiter, word);
        change_limit(word(LIMIT_WORD), word(ARRIVAL_WORD), limit, now);
    }

    /// Changes a budget of displaced entries, by one store.
    ///
    /// A budget follows from the free places of a table, where the entries that were admitted before are counted already.
    /// So debt is not kept in connections, which would count them twice, but in time, in which the bursts of all budgets
    /// are equal: what was a full burst stays one. Only for the largest tables the bursts differ.
    pub(super) fn set_budget(&self, limiter: u32, limit: LimitWord, now: Nanoseconds) {
        self.set_word(limiter, LIMIT_WORD, limit.0);
        clamp_arrival(limit, self.shared_word(limiter, ARRIVAL_WORD), now);
    }

    /// Brings back arrivals that are further ahead than a full burst explains.
    pub(super) fn clamp(&self, now: Nanoseconds) {
        for limiter in 0..self.entries() {
            let limit = self.get(limiter).map_or(LimitWord::UNLIMITED, |it| LimitWord(it.limit));
            clamp_arrival(limit, self.shared_word(limiter, ARRIVAL_WORD), now);
        }
    }
}
