//! Which displaced entries go, and which displaced checks may be turned off: pure.

use lb_common::abi::{
    clock::{Coarse, DISPLACED_LIFE, HANDSHAKE_LIFE},
    displaced::DisplacedWord,
    pool::PoolLine,
};

/// How far the packet path's clock may be ahead of ours, in coarse units: a second, which may begin in
/// another unit.
pub(super) const AHEAD: u64 = 2;
/// Coarse units until the time in a displaced entry begins anew.
const IDLE_WRAPS: u64 = 1 << 24;

/// What is known of a displaced entry beside its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryContext {
    /// Its service is gone, or its backend.
    pub(super) gone: bool,
    /// Where it says its connection is, the connection would be without it.
    pub(super) at_home: bool,
    /// No connection of its pool was displaced as long as handshake entries live.
    pub(super) clearable: bool,
}

/// Whether a displaced entry is needed no more.
pub(super) fn is_expired(word: DisplacedWord, now: Coarse, about: EntryContext) -> bool {
    let at_home = about.at_home && about.clearable && !may_be_marked(word, now);
    about.gone || at_home || idle(word, now) > DISPLACED_LIFE
}

/// Whether the displaced check of a pool can be turned off if none of its connections has a displaced entry: it is open, no
/// handshake entry says of any that it is away, and home means one thing only.
pub(super) const fn can_turn_off(line: &PoolLine, now: Coarse) -> bool {
    line.has_displaced()
        && line.versions().previous() == 0
        && now.0.saturating_sub(line.last_displaced) > HANDSHAKE_LIFE + AHEAD
}

/// Coarse units since its last packet, none if that is in our future.
const fn idle(word: DisplacedWord, now: Coarse) -> u64 {
    let idle = word.idle(now);
    if idle >= IDLE_WRAPS - AHEAD { 0 } else { idle }
}

/// Whether it is marked by either clock.
const fn may_be_marked(word: DisplacedWord, now: Coarse) -> bool {
    word.is_contested(now) || word.is_contested(Coarse(now.0.wrapping_add(AHEAD)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_common::abi::{handshake::Placement, pool::PoolWord};

    const NOW: Coarse = Coarse(10_000_000);
    const AWAY: EntryContext = EntryContext { gone: false, at_home: false, clearable: true };
    const HOME: EntryContext = EntryContext { at_home: true, ..AWAY };

    fn seen(ago: u64) -> DisplacedWord {
        DisplacedWord::new(Placement { backend: 7, incarnation: 3 }, Coarse(NOW.0 - ago))
    }

    #[test]
    fn what_was_used_within_ten_minutes_stays() {
        // 600 s are 558.8 units of 2^30 ns.
        assert!(!is_expired(seen(0), NOW, AWAY));
        assert!(!is_expired(seen(559), NOW, AWAY));
        assert!(is_expired(seen(560), NOW, AWAY));
        let pool_still_overflows = EntryContext { clearable: false, ..AWAY };
        assert!(is_expired(seen(560), NOW, pool_still_overflows));
    }

    #[test]
    fn a_packet_of_the_next_unit_is_not_sixteen_million_units_old() {
        for ahead in [1, 2] {
            let word = seen(0).seen(Coarse(NOW.0 + ahead));
            assert!(!is_expired(word, NOW, AWAY), "{ahead} ahead");
        }
    }

    #[test]
    fn at_home_it_goes_when_no_record_and_no_mark_speaks_against_it() {
        assert!(is_expired(seen(5), NOW, HOME));
        assert!(!is_expired(seen(5), NOW, EntryContext { clearable: false, ..HOME }));
        // A mark counts for 64 s, 60 units, also one that our clock has not come to.
        for (at, stays) in
            [(NOW.0 + 2, true), (NOW.0, true), (NOW.0 - 59, true), (NOW.0 - 60, false)]
        {
            let word = seen(5).contested(Coarse(at));
            assert_eq!(!is_expired(word, NOW, HOME), stays, "marked at {at}");
        }
    }

    #[test]
    fn without_service_or_backend_it_goes_at_once() {
        assert!(is_expired(seen(0).contested(NOW), NOW, EntryContext { gone: true, ..AWAY }));
    }

    #[test]
    fn a_check_may_turn_off_a_little_after_the_last_handshake_entry_expired() {
        let away = |ago| PoolLine { last_displaced: NOW.0 - ago, ..PoolLine::default() };
        assert!(!can_turn_off(&away(0), NOW));
        assert!(!can_turn_off(&away(62), NOW));
        assert!(can_turn_off(&away(63), NOW));
        let settling = PoolLine { word: PoolWord::new(4, 3).0, ..away(63) };
        assert!(!can_turn_off(&settling, NOW));
        assert!(can_turn_off(&PoolLine { word: PoolWord::new(4, 0).0, ..away(63) }, NOW));
        let ahead = PoolLine { last_displaced: NOW.0 + 1, ..PoolLine::default() };
        assert!(!can_turn_off(&ahead, NOW));
        let closed = PoolLine { cleared: NOW.0 - 500, ..away(500) };
        assert!(!can_turn_off(&closed, NOW));
    }
}
