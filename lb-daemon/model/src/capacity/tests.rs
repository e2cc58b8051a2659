use std::{cell::Cell, num::NonZeroU32, time::Duration};

use lb_common::{
    abi::{clock::Nanoseconds, counter::GroupCounter, limiter::LimitWord},
    admission::{Debit, debit},
};
use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::{GroupSettings, Rate, Scaler};

const SECOND: Nanoseconds = 1_000_000_000;
const TICK: Nanoseconds = 4_000_000;

fn settings(capacity: Option<f64>, scaler: f64) -> GroupSettings {
    let capacity = capacity.map(|per_second| Rate::new(per_second).unwrap());
    GroupSettings { capacity, scaler: Scaler::new(scaler).unwrap(), drained: false }
}

fn member(rate: Option<f64>, healthy: bool) -> Member {
    let rate = rate.map(|per_second| Rate::new(per_second).unwrap());
    Member { weighted: true, healthy, last_resort: false, rate }
}

fn share(balancers: u32) -> Share {
    Share { portion: Portion::equal(NonZeroU32::new(balancers).unwrap()), tick: TICK }
}

fn portion(fraction: f64) -> Share {
    Share { portion: Portion::new(fraction).unwrap(), tick: TICK }
}

#[test]
fn what_is_set_outright_counts_whoever_is_healthy() {
    for members in [vec![], vec![member(Some(5.0), true)], vec![member(None, false)]] {
        let capacity = |scaler| Capacity::of_members(settings(Some(10.0), scaler), members.clone());
        assert_eq!(capacity(1.0), Capacity::PerSecond(10.0));
        assert_eq!(capacity(0.5), Capacity::PerSecond(5.0));
        assert_eq!(capacity(0.0), Capacity::Closed);
        let drained = GroupSettings { drained: true, ..settings(Some(10.0), 0.5) };
        assert_eq!(Capacity::of_members(drained, members.clone()), Capacity::Closed);
        assert!(!Capacity::follows_health(settings(Some(10.0), 1.0), members));
    }
}

#[test]
fn what_is_not_set_is_the_sum_over_the_healthy() {
    let of = |members: &[Member], scaler| {
        Capacity::of_members(settings(None, scaler), members.iter().copied())
    };
    let [up, down] = [true, false].map(|healthy| member(Some(5.0), healthy));
    assert_eq!(of(&[up, up, down], 1.0), Capacity::PerSecond(10.0));
    assert_eq!(of(&[up, up, down], 0.1), Capacity::PerSecond(1.0));
    assert_eq!(of(&[down, down], 1.0), Capacity::Closed);
    assert_eq!(of(&[up, up], 0.0), Capacity::Closed);
    // One without a limit, healthy or not: nobody knows what the group takes.
    for healthy in [true, false] {
        assert_eq!(of(&[up, member(None, healthy)], 1.0), Capacity::Unlimited);
    }
    // Who has no weight takes nothing.
    let idle = |rate| Member { weighted: false, ..member(rate, true) };
    assert_eq!(of(&[up, idle(Some(5.0)), idle(None)], 1.0), Capacity::PerSecond(5.0));
    assert!(Capacity::follows_health(settings(None, 1.0), [up, down]));
    assert!(!Capacity::follows_health(settings(None, 0.0), [up, down]));
    let drained = GroupSettings { drained: true, ..settings(None, 1.0) };
    assert_eq!(Capacity::of_members(drained, [up, up]), Capacity::Closed);
    assert!(!Capacity::follows_health(drained, [up, down]));
    assert!(!Capacity::follows_health(settings(None, 1.0), [up, member(None, true)]));
}

#[test]
fn the_last_resort_counts_where_nobody_is_healthy() {
    let last = Member { last_resort: true, ..member(Some(5.0), false) };
    let of =
        |members: &[Member]| Capacity::of_members(settings(None, 1.0), members.iter().copied());
    assert_eq!(of(&[last, last, member(Some(5.0), false)]), Capacity::PerSecond(10.0));
    assert_eq!(of(&[last, member(Some(2.0), true)]), Capacity::PerSecond(2.0));
}

/// By hand: parts of 1/16 ns; b = max(10, limit / 10), less what comes in a tick of 4 ms.
#[test]
fn limits_are_this_balancers_share() {
    for (per_second, balancers, interval, burst) in [
        (10.0, 1, 1_600_000_000, 9),
        (10.0, 4, 6_400_000_000, 9),
        (100.0, 1, 160_000_000, 9),
        (1_000.0, 1, 16_000_000, 96),
        (1_000.0, 3, 48_000_000, 32),
        (1_000_000.0, 1, 16_000, 96_000),
        (10_000_000.0, 1, 1_600, 960_000),
        (7.0, 1, 2_285_714_286, 9),
    ] {
        let limit = share(balancers).group_limit(Capacity::PerSecond(per_second));
        assert_eq!((limit.interval(), limit.burst()), (interval, burst), "{per_second}/s");
        assert_eq!(share(balancers).member_limit(Rate::new(per_second).unwrap()), limit);
    }
    assert_eq!(share(2).group_limit(Capacity::Unlimited), LimitWord::UNLIMITED);
    assert_eq!(share(2).group_limit(Capacity::Closed), LimitWord::CLOSED);
    // Less than one in 68.7 s is none.
    let lowest = |balancers| share(balancers).group_limit(Capacity::PerSecond(0.1));
    assert_eq!((lowest(6).interval(), lowest(6).burst()), (960_000_000_000, 9));
    assert_eq!(lowest(7), LimitWord::CLOSED);
    assert_eq!(share(7).member_limit(Rate::new(0.1).unwrap()), LimitWord::CLOSED);
    // A clock so slow that the burst would be used up within a tick.
    let slow = Share { tick: SECOND / 5, ..share(1) };
    assert_eq!(slow.group_limit(Capacity::PerSecond(1_000.0)).burst(), 1);
}

/// By hand: 1,000 a second is one in 16,000,000 parts of 1/16 ns.
#[test]
fn limits_are_the_portion_of_the_capacity() {
    for (fraction, interval, burst) in [
        (1.0, 16_000_000, 96),
        (0.25, 64_000_000, 24),
        (0.01, 1_600_000_000, 9),
        (0.000_1, 160_000_000_000, 9),
        // One in 62.5 s, and the slowest that a limiter can do is one in 68.7 s.
        (0.000_016, 1_000_000_000_000, 9),
    ] {
        let limit = portion(fraction).group_limit(Capacity::PerSecond(1_000.0));
        assert_eq!((limit.interval(), limit.burst()), (interval, burst), "{fraction}");
        assert_eq!(portion(fraction).member_limit(Rate::new(1_000.0).unwrap()), limit);
    }
    for fraction in [0.0, -0.0, f64::MIN_POSITIVE, 1.0 / 2.0_f64.powi(32), 0.000_014] {
        let share = portion(fraction);
        assert_eq!(share.group_limit(Capacity::PerSecond(1_000.0)), LimitWord::CLOSED);
        assert_eq!(share.member_limit(Rate::new(1_000.0).unwrap()), LimitWord::CLOSED);
        assert_eq!(share.group_limit(Capacity::Unlimited), LimitWord::UNLIMITED, "{fraction}");
        assert_eq!(share.group_limit(Capacity::Closed), LimitWord::CLOSED);
    }
    assert_eq!(portion(1.0).group_limit(Capacity::Closed), LimitWord::CLOSED);
}

#[test]
fn limits_are_ordered_from_closed_to_unlimited() {
    let limit = |per_second| share(1).group_limit(Capacity::PerSecond(per_second));
    let rising = [LimitWord::CLOSED, limit(0.1), limit(10.0), limit(1e7), LimitWord::UNLIMITED];
    for (i, low) in rising.iter().enumerate() {
        for (j, high) in rising.iter().enumerate() {
            assert_eq!(is_lower(*low, *high), i < j);
        }
    }
}

prop_compose! {
    fn members()(
        members in vec((any::<bool>(), any::<bool>(), option::of(1u32..1000)), 0..20),
    ) -> Vec<Member> {
        let member = |(weighted, healthy, rate): (bool, bool, Option<u32>)| Member {
            weighted,
            ..member(rate.map(f64::from), healthy)
        };
        members.into_iter().map(member).collect()
    }
}

proptest! {
    /// Nobody's death raises a limit, and nobody's recovery lowers one.
    #[test]
    fn who_dies_takes_capacity_along(members in members(), which in any::<prop::sample::Index>()) {
        prop_assume!(!members.is_empty());
        let limit = |members: &[Member]| {
            share(1).group_limit(Capacity::of_members(settings(None, 1.0), members.iter().copied()))
        };
        let mut after = members.clone();
        let changed = &mut after[which.index(members.len())];
        changed.healthy = false;
        let counts = changed.weighted;
        let (before, after) = (limit(&members), limit(&after));
        prop_assert!(before == after || is_lower(after, before));
        prop_assert!(counts || before == after);
    }

    /// Whatever comes, no more than b and what the share allows is admitted in any window, as counted
    /// by a clock that does not tick; and all balancers together keep to the capacity.
    #[test]
    fn no_window_has_more_than_the_share_and_the_burst(
        per_second in 1f64..50_000.0, balancers in 1u32..5,
        gaps in vec(0u64..SECOND / 1000, 1..600),
    ) {
        let limit = share(balancers).group_limit(Capacity::PerSecond(per_second));
        let own = per_second / f64::from(balancers);
        let most = (own * 0.1).max(10.0);
        let (arrival, mut now) = (Cell::new(0), 100 * SECOND);
        let mut admitted: Vec<Nanoseconds> = Vec::new();
        for gap in gaps {
            now += gap;
            let seen = now - now % TICK;
            if debit(|| limit, &arrival, seen) == Debit::Admitted {
                admitted.push(now);
                for (n, since) in admitted.iter().rev().enumerate() {
                    let allowed = most + own * (now - since) as f64 / SECOND as f64;
                    prop_assert!((n + 1) as f64 <= allowed + 1e-6, "{} in {}", n + 1, now - since);
                }
            }
        }
    }

    /// Balancers whose portions are together the whole, in a flood at each of them: in no window do they admit more than
    /// the capacity and their bursts, and a portion of nothing admits nothing.
    #[test]
    fn portions_of_one_whole_admit_no_more_than_the_capacity(
        per_second in 1f64..20_000.0, parts in vec(0u32..1_000, 1..8), windows in vec(0usize..500, 2),
    ) {
        let sum: u32 = parts.iter().sum();
        prop_assume!(sum > 0);
        let start = 100 * SECOND;
        let mut admitted = vec![0_u32; 500];
        let mut bursts = 0.0;
        for part in parts {
            let share = portion(f64::from(part) / f64::from(sum));
            let limit = share.group_limit(Capacity::PerSecond(per_second));
            prop_assert!(part > 0 || limit.is_closed());
            bursts += if limit.is_closed() { 0.0 } else { (share.portion.fraction() * per_second * 0.1).max(10.0) };
            let arrival = Cell::new(0);
            for (tick, admitted) in admitted.iter_mut().enumerate() {
                while debit(|| limit, &arrival, start + tick as u64 * TICK) == Debit::Admitted {
                    *admitted += 1;
                }
            }
        }
        let (first, last) = (windows[0].min(windows[1]), windows[0].max(windows[1]));
        let within: u32 = admitted[first..=last].iter().sum();
        // The first connection may come at the end of its tick, the last one at the beginning.
        let seconds = (last - first) as f64 * TICK as f64 / SECOND as f64;
        prop_assert!(f64::from(within) <= bursts + per_second * seconds + 1e-6, "{within} in {seconds} s");
    }

    /// In a flood, nearly all of the share is used.
    #[test]
    fn a_flood_uses_the_share(per_second in 10f64..20_000.0) {
        let limit = share(1).group_limit(Capacity::PerSecond(per_second));
        let (arrival, start) = (Cell::new(0), 100 * SECOND);
        let mut admitted = 0.0;
        for now in (start..start + 4 * SECOND).step_by(TICK as usize) {
            while debit(|| limit, &arrival, now) == Debit::Admitted {
                admitted += 1.0;
            }
        }
        prop_assert!(admitted >= 0.97 * 4.0 * per_second, "{admitted} of {}", 4.0 * per_second);
    }
}

fn counted(offered: u64, admitted: u64, over_capacity: u64) -> GroupCounter {
    let overflow_out = offered - admitted;
    GroupCounter { offered, admitted, overflow_out, over_capacity, ..GroupCounter::default() }
}

#[test]
fn rates_are_what_was_counted_between_two_looks() {
    let (before, after) = (counted(100, 90, 5), counted(130, 110, 5));
    let two = Duration::from_secs(2);
    let rates = Rates::between(&before, &after, two).unwrap();
    let expected = Rates { offered: 15.0, admitted: 10.0, overflow_out: 5.0, ..Rates::default() };
    assert_eq!(rates, expected);
    assert_eq!(Rates::between(&before, &after, Duration::ZERO), None);
    assert_eq!(Rates::between(&after, &before, two), None, "begun anew");
}

#[test]
fn a_limit_is_told_a_second() {
    assert_eq!(per_second(share(1).group_limit(Capacity::PerSecond(10.0))), Some(10.0));
    assert_eq!(per_second(share(4).group_limit(Capacity::PerSecond(10.0))), Some(2.5));
    assert_eq!(per_second(LimitWord::UNLIMITED), None);
    assert_eq!(per_second(LimitWord::CLOSED), Some(0.0));
}

#[test]
fn utilisation_is_the_admitted_share_of_the_limit() {
    let limit = share(1).group_limit(Capacity::PerSecond(10.0));
    let used = |admitted| utilisation(&Rates { admitted, ..Rates::default() }, per_second(limit));
    assert_eq!((used(0.0), used(8.0), used(12.0)), (Some(0.0), Some(0.8), Some(1.2)));
    for none in [LimitWord::UNLIMITED, LimitWord::CLOSED] {
        assert_eq!(utilisation(&Rates::default(), per_second(none)), None);
    }
}

#[test]
fn missing_backends_are_whole_and_enough() {
    let limit = share(1).group_limit(Capacity::PerSecond(10.0));
    let missing = |offered: f64, gain| {
        let overflow_out = (offered - 10.0).max(0.0);
        let rates =
            Rates { offered, admitted: offered - overflow_out, overflow_out, ..Rates::default() };
        missing_backends(&rates, per_second(limit), gain)
    };
    for (offered, gain, backends) in [
        (0.0, Some(5.0), Some(0)),
        (10.0, Some(5.0), Some(0)),
        (10.1, Some(5.0), Some(1)),
        (15.0, Some(5.0), Some(1)),
        (15.1, Some(5.0), Some(2)),
        (20.0, Some(5.0), Some(2)),
        (10.3, Some(0.1), Some(3)),
        // Nobody knows what one more would bring; where none is missing, that does not matter.
        (15.0, None, None),
        (15.0, Some(0.0), None),
        (9.0, None, Some(0)),
    ] {
        assert_eq!(missing(offered, gain), backends, "{offered} by {gain:?}");
    }
    // What a burst took beyond the limit was admitted.
    let burst = Rates { offered: 15.0, admitted: 15.0, ..Rates::default() };
    assert_eq!(missing_backends(&burst, per_second(limit), Some(5.0)), Some(0));
    // What it took because all were full was not.
    let over_capacity = Rates { over_capacity: 5.0, ..burst };
    assert_eq!(missing_backends(&over_capacity, per_second(limit), Some(5.0)), Some(1));
    // Nobody healthy: everything is missing.
    let all = Rates { offered: 12.0, overflow_out: 12.0, ..Rates::default() };
    assert_eq!(missing_backends(&all, Some(0.0), Some(5.0)), Some(3));
    assert_eq!(missing_backends(&all, None, None), Some(0));
}

#[test]
fn one_more_backend_brings_its_share() {
    let reading = |rates: &[Option<f64>], scaler, balancers| GroupReading {
        pool: 0,
        region: 0,
        settings: settings(None, scaler),
        portion: Portion::equal(NonZeroU32::new(balancers).unwrap()),
        members: rates.iter().map(|rate| member(*rate, false)).collect(),
        limit: LimitWord::UNLIMITED,
        counters: GroupCounter::default(),
    };
    let mixed = reading(&[Some(4.0), Some(8.0), None], 0.5, 3);
    assert_eq!((mixed.backend_rate(), mixed.gain()), (Some(6.0), Some(1.0)));
    assert_eq!(mixed.configured(), Capacity::Unlimited);
    assert_eq!(reading(&[None], 1.0, 1).gain(), None);
    assert_eq!(reading(&[Some(4.0)], 0.0, 1).gain(), Some(0.0));

    let down = reading(&[Some(4.0), Some(8.0)], 0.5, 1);
    assert_eq!(down.configured(), Capacity::PerSecond(12.0));
    assert_eq!(down.capacity(), Capacity::Closed);
}
