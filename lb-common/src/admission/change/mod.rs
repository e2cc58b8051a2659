//! Changes of a limit, by the daemon.

use crate::{
    abi::{clock::Nanoseconds, limiter::LimitWord},
    word::Word,
};

/// The longest time that debt of before a change may keep an open limit from admitting, besides the limit's own interval.
///
/// A window of ten seconds that contains one change still has no more than the integral of the rate plus the largest
/// burst. Debt beyond that is forgiven: a full burst of 10,000 a second would close a limit of one a minute for 16.5 h.
pub const MAX_WAIT: Nanoseconds = 10_000_000_000;

/// Changes a limit and keeps the debt in connections, up to [`MAX_WAIT`]. For the one writer of the limit, while packets
/// debit.
///
/// 1. The limit admits nothing for the moment, so no debit begins.
/// 2. The arrival is converted. Debits that began earlier fail from then on, because it is another number.
/// 3. The new limit is stored.
///
/// A writer that is killed in between leaves a limiter that admits nothing, whose debt the next change reads as no more
/// than it was.
pub fn change_limit<W: Word>(limit: W, arrival: W, to: LimitWord, now: Nanoseconds) {
    let from = LimitWord(limit.load());
    if from == to {
        return;
    }
    update(limit, |_| between(from, to).0);
    update(arrival, |arrival| converted(arrival, from, to, now));
    update(limit, |_| to.0);
}

/// Brings back an arrival that is further ahead than a full burst explains. For a daemon that starts: whatever is wrong
/// with a limiter must not close it for long.
pub fn clamp_arrival<W: Word>(limit: LimitWord, arrival: W, now: Nanoseconds) {
    // Without a burst, the limit is about to change.
    if limit.is_closed() || limit.burst() == 0 {
        return;
    }
    let latest = now.wrapping_mul(LimitWord::PER_NANOSECOND).wrapping_add(limit.allowance());
    if arrival.load() > latest {
        update(arrival, |arrival| arrival.min(latest));
    }
}

/// What the limit is while the arrival is converted. If neither limit is closed, packets find it reached, which must not
/// mean that no backend is there.
fn between(from: LimitWord, to: LimitWord) -> LimitWord {
    if from.is_closed() || to.is_closed() {
        return LimitWord::CLOSED;
    }
    LimitWord::without_burst(from.interval().max(to.interval()))
}

/// The arrival that means as many connections under `to` as `arrival` does under `from`, but is another number. Rounded
/// up, so that debt never shrinks, unless it is more than any limit admits at a time, or is beyond [`MAX_WAIT`].
fn converted(arrival: u64, from: LimitWord, to: LimitWord, now: Nanoseconds) -> u64 {
    let now = now.wrapping_mul(LimitWord::PER_NANOSECOND);
    if arrival <= now {
        // No debt, wherever it is in the past.
        return if arrival == now && now > 0 { arrival - 1 } else { arrival + 1 };
    }
    // A closed limit admits nothing anyway, so the debt waits there whole.
    let most = match to.is_closed() {
        true => u64::MAX,
        false => to.allowance() + MAX_WAIT * LimitWord::PER_NANOSECOND,
    };
    let (from, to) = (per_connection(from), per_connection(to));
    if from == 0 || to == 0 {
        return now;
    }
    let debt = (arrival - now).min(from * u64::from(LimitWord::MAX_BURST));
    let converted = (u128::from(debt) * u128::from(to)).div_ceil(u128::from(from));
    let converted = now.wrapping_add(most.min(converted as u64));
    if converted == arrival { arrival.wrapping_add(1) } else { converted }
}

/// What a connection adds to the arrival. Debt survives that a limit is closed, so closed counts as the lowest limit.
/// Without a limit there is no debt: 0.
fn per_connection(limit: LimitWord) -> u64 {
    if limit.is_closed() { LimitWord::MAX_INTERVAL } else { limit.interval() }
}

fn update<W: Word>(word: W, change: impl Fn(u64) -> u64) {
    let mut seen = word.load();
    while let Err(found) = word.exchange(seen, change(seen)) {
        seen = found;
    }
}

#[cfg(test)]
mod tests;
