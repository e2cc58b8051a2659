//! Which displaced entries are removed, and which displaced checks can be turned off. Pure.

use lb_common::abi::{
    clock::{Coarse, DISPLACED_LIFE, HANDSHAKE_LIFE},
    connection::DisplacedWord,
    pool::PoolLine,
};

/// The packet path's clock may be this far ahead, in coarse units: a second, which may reach into another
/// unit.
pub(super) const AHEAD: u64 = 2;
/// Coarse units after which the time in a displaced entry wraps around.
const IDLE_WRAPS: u64 = 1 << 24;

/// What is known of a displaced entry besides its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryContext {
    /// Its service or its backend is gone.
    pub(super) gone: bool,
    /// Without the entry the connection would be at the same backend.
    pub(super) at_home: bool,
    /// No connection of its pool was displaced within the lifetime of handshake entries.
    pub(super) clearable: bool,
}

/// Whether a displaced entry is no longer needed.
pub(super) fn is_expired(word: DisplacedWord, now: Coarse, about: EntryContext) -> bool {
    let at_home = about.at_home && about.clearable && !may_be_marked(word, now);
    about.gone || at_home || idle(word, now) > DISPLACED_LIFE
}

/// Whether a pool's displaced check can be turned off once none of its connections has a displaced entry: the
/// check is on, no handshake entry of a displaced connection is left, and there is no previous home.
pub(super) const fn can_turn_off(line: &PoolLine, now: Coarse) -> bool {
    line.has_displaced()
        && line.versions().previous() == 0
        && now.0.saturating_sub(line.last_displaced) > HANDSHAKE_LIFE + AHEAD
}

/// Coarse units since its last packet; 0 if that is in our future.
const fn idle(word: DisplacedWord, now: Coarse) -> u64 {
    let idle = word.idle(now);
    if idle >= IDLE_WRAPS - AHEAD { 0 } else { idle }
}

/// Whether it is contested by either clock.
const fn may_be_marked(word: DisplacedWord, now: Coarse) -> bool {
    word.is_contested(now) || word.is_contested(Coarse(now.0.wrapping_add(AHEAD)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_common::abi::{connection::Placement, pool::PoolWord};

    const NOW: Coarse = Coarse(10_000_000);
    const AWAY: EntryContext = EntryContext { gone: false, at_home: false, clearable: true };
    const HOME: EntryContext = EntryContext { at_home: true, ..AWAY };

    fn seen(ago: u64) -> DisplacedWord {
        DisplacedWord::new(Placement { backend: 7, incarnation: 3 }, Coarse(NOW.0 - ago))
    }

    #[test]
    fn an_entry_used_within_ten_minutes_stays() {
        assert!(!is_expired(seen(0), NOW, AWAY));
        assert!(!is_expired(seen(559), NOW, AWAY));
        assert!(is_expired(seen(560), NOW, AWAY));
        let pool_still_overflows = EntryContext { clearable: false, ..AWAY };
        assert!(is_expired(seen(560), NOW, pool_still_overflows));
    }

    #[test]
    fn an_entry_from_the_next_unit_is_not_idle() {
        for ahead in [1, 2] {
            let word = seen(0).seen(Coarse(NOW.0 + ahead));
            assert!(!is_expired(word, NOW, AWAY), "{ahead} ahead");
        }
    }

    #[test]
    fn an_entry_at_home_expires_unless_contested_or_recent() {
        assert!(is_expired(seen(5), NOW, HOME));
        assert!(!is_expired(seen(5), NOW, EntryContext { clearable: false, ..HOME }));
        // It is contested for 64 s, 60 units, also if that began in our future.
        for (at, stays) in
            [(NOW.0 + 2, true), (NOW.0, true), (NOW.0 - 59, true), (NOW.0 - 60, false)]
        {
            let word = seen(5).contested(Coarse(at));
            assert_eq!(!is_expired(word, NOW, HOME), stays, "marked at {at}");
        }
    }

    #[test]
    fn an_entry_without_service_or_backend_expires_immediately() {
        assert!(is_expired(seen(0).contested(NOW), NOW, EntryContext { gone: true, ..AWAY }));
    }

    #[test]
    fn a_check_can_turn_off_after_the_last_handshake_entry_expired() {
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
