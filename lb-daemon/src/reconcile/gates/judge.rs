//! Which exceptions go, and which gates may be closed: pure.

use lb_common::abi::{
    clock::{Coarse, EXCEPTION_LIFE, RECORD_LIFE},
    exception::ExceptionWord,
    pool::PoolLine,
};

/// How far the packet path's clock may be ahead of ours, in coarse units: a second, which may begin in
/// another unit.
pub(super) const AHEAD: u64 = 2;
/// Coarse units until the time in an exception begins anew.
const IDLE_WRAPS: u64 = 1 << 24;

/// What is known of an exception beside its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Circumstances {
    /// Its service is gone, or its backend.
    pub(super) gone: bool,
    /// Where it says its connection is, the connection would be without it.
    pub(super) at_home: bool,
    /// No connection of its pool was placed away from home as long as records live.
    pub(super) ripe: bool,
}

/// Whether an exception is needed no more.
pub(super) fn goes(word: ExceptionWord, now: Coarse, about: Circumstances) -> bool {
    let at_home = about.at_home && about.ripe && !may_be_marked(word, now);
    about.gone || at_home || idle(word, now) > EXCEPTION_LIFE
}

/// Whether a pool's gate can be closed if none of its connections has an exception: it is open, no
/// record says of any that it is away, and home means one thing only.
pub(super) const fn is_ripe(line: &PoolLine, now: Coarse) -> bool {
    !line.is_gate_closed()
        && line.versions().former() == 0
        && now.0.saturating_sub(line.last_away) > RECORD_LIFE + AHEAD
}

/// Coarse units since its last packet, none if that is in our future.
const fn idle(word: ExceptionWord, now: Coarse) -> u64 {
    let idle = word.idle(now);
    if idle >= IDLE_WRAPS - AHEAD { 0 } else { idle }
}

/// Whether it is marked by either clock.
const fn may_be_marked(word: ExceptionWord, now: Coarse) -> bool {
    word.is_marked(now) || word.is_marked(Coarse(now.0.wrapping_add(AHEAD)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_common::abi::{pool::PoolWord, record::Placed};

    const NOW: Coarse = Coarse(10_000_000);
    const AWAY: Circumstances = Circumstances { gone: false, at_home: false, ripe: true };
    const HOME: Circumstances = Circumstances { at_home: true, ..AWAY };

    fn seen(ago: u64) -> ExceptionWord {
        ExceptionWord::new(Placed { backend: 7, incarnation: 3 }, Coarse(NOW.0 - ago))
    }

    #[test]
    fn what_was_used_within_ten_minutes_stays() {
        // 600 s are 558.8 units of 2^30 ns.
        assert!(!goes(seen(0), NOW, AWAY));
        assert!(!goes(seen(559), NOW, AWAY));
        assert!(goes(seen(560), NOW, AWAY));
        let pool_still_spills = Circumstances { ripe: false, ..AWAY };
        assert!(goes(seen(560), NOW, pool_still_spills));
    }

    #[test]
    fn a_packet_of_the_next_unit_is_not_sixteen_million_units_old() {
        for ahead in [1, 2] {
            let word = seen(0).seen(Coarse(NOW.0 + ahead));
            assert!(!goes(word, NOW, AWAY), "{ahead} ahead");
        }
    }

    #[test]
    fn at_home_it_goes_when_no_record_and_no_mark_speaks_against_it() {
        assert!(goes(seen(5), NOW, HOME));
        assert!(!goes(seen(5), NOW, Circumstances { ripe: false, ..HOME }));
        // A mark counts for 64 s, 60 units, also one that our clock has not come to.
        for (at, stays) in
            [(NOW.0 + 2, true), (NOW.0, true), (NOW.0 - 59, true), (NOW.0 - 60, false)]
        {
            let word = seen(5).marked(Coarse(at));
            assert_eq!(!goes(word, NOW, HOME), stays, "marked at {at}");
        }
    }

    #[test]
    fn without_service_or_backend_it_goes_at_once() {
        assert!(goes(seen(0).marked(NOW), NOW, Circumstances { gone: true, ..AWAY }));
    }

    #[test]
    fn a_gate_is_ripe_a_little_after_the_last_record_has_expired() {
        let away = |ago| PoolLine { last_away: NOW.0 - ago, ..PoolLine::default() };
        assert!(!is_ripe(&away(0), NOW));
        assert!(!is_ripe(&away(62), NOW));
        assert!(is_ripe(&away(63), NOW));
        let settling = PoolLine { word: PoolWord::new(4, 3).0, ..away(63) };
        assert!(!is_ripe(&settling, NOW));
        assert!(is_ripe(&PoolLine { word: PoolWord::new(4, 0).0, ..away(63) }, NOW));
        let ahead = PoolLine { last_away: NOW.0 + 1, ..PoolLine::default() };
        assert!(!is_ripe(&ahead, NOW));
        let closed = PoolLine { cleared: NOW.0 - 500, ..away(500) };
        assert!(!is_ripe(&closed, NOW));
    }
}
