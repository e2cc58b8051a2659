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

    /// Brings back arrivals that are further ahead than a full burst explains.
    pub(super) fn clamp(&self, now: Nanoseconds) {
        for limiter in 0..self.entries() {
            let limit = self.get(limiter).map_or(LimitWord::UNLIMITED, |it| LimitWord(it.limit));
            clamp_arrival(limit, self.shared_word(limiter, ARRIVAL_WORD), now);
        }
    }
}
