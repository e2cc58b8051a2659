use lb_common::abi::counter::GroupCounter;
use serde_json::json;

use super::{sample::GroupSample, *};
use crate::output::Report;

/// Two regions with a limit of 10/s each.
fn sample(at: Instant, counters: [GroupCounter; 2]) -> Sample {
    let group = |region: &str, limiter, counters| GroupSample {
        pool: "web".into(),
        region: region.into(),
        limiter: Some(limiter),
        limit: Some(10.0),
        counters,
    };
    let [eu, us] = counters;
    Sample { at, groups: vec![group("eu", 8, eu), group("us", 9, us)] }
}

/// The second region admits what the first one does not.
fn spilled(offered: u64, admitted: u64) -> [GroupCounter; 2] {
    let out = offered - admitted;
    let eu = GroupCounter { offered, admitted, overflow_out: out, ..GroupCounter::default() };
    let us =
        GroupCounter { offered: out, admitted: out, overflow_in: out, ..GroupCounter::default() };
    [eu, us]
}

fn status(region: &str, configured: f64, scaler: f64, rate: Option<f64>) -> v1::GroupStatus {
    v1::GroupStatus {
        pool: "web".into(),
        region: region.into(),
        configured_per_second: Some(configured),
        scaler,
        capacity_per_second: Some(configured * scaler),
        backends_up: 2,
        backends: 2,
        backend_rate_per_second: rate,
        portion: 1.0,
        ..Default::default()
    }
}

fn answer(regions: Vec<v1::GroupStatus>) -> DaemonAnswer {
    Ok(v1::RegionsResponse { regions, balancers: 1, ..Default::default() })
}

/// Two seconds in which the first region was asked for 15/s.
fn two_samples(answer: &DaemonAnswer) -> RegionsReport {
    let start = Instant::now();
    let before = sample(start, spilled(100, 100));
    let after = sample(start + Duration::from_secs(2), spilled(130, 120));
    RegionsReport::new(&after, Some(&before), answer)
}

#[test]
fn a_full_region_overflows_and_needs_another_backend() {
    let answer = answer(vec![status("eu", 20.0, 0.5, Some(10.0)), status("us", 10.0, 1.0, None)]);
    let regions = two_samples(&answer);
    assert_eq!(
        regions.table(),
        "\
counted   new connections a second, over 2.0 s
capacity  this balancer's alone
bars      # admitted  ! over the limit  > overflowed  x refused  . free

pool web
REGION  LIMIT  OFFERED  ADMITTED   IN  OUT  REFUSED  OVERCAP  USED
eu       10/s     15.0      10.0    0  5.0        0        0  100%
us       10/s      5.0       5.0  5.0    0        0        0   50%
eu  |#####################>>>>>>>>>>>|  capacity 10/s of 20/s, scaler 0.5; 1
                                        backend missing
us  |###########..........           |  capacity 10/s
"
    );
    let json = serde_json::to_value(&regions).unwrap();
    assert_eq!((&json["balancers"], &json["interval_seconds"]), (&json!(1), &json!(2.0)));
    let eu = &json["pools"][0]["regions"][0];
    assert_eq!(eu["totals"]["offered"], 130);
    assert_eq!(eu["per_second"]["overflow_out"], 5.0);
    assert_eq!((&eu["utilisation"], &eu["missing_backends"]), (&json!(1.0), &json!(1)));
    assert_eq!(eu["capacity"]["scaler"], 0.5);
}

/// A portion is shown where it is not that of equal balancers; one more backend brings as much of it.
#[test]
fn what_a_balancer_owns_of_a_capacity_is_shown() {
    let owning = |portion, balancers| {
        let eu = v1::GroupStatus { portion, ..status("eu", 20.0, 0.5, Some(10.0)) };
        let us = v1::GroupStatus {
            portion: 1.0 / f64::from(balancers),
            ..status("us", 10.0, 1.0, None)
        };
        let regions = vec![eu, us];
        two_samples(&Ok(v1::RegionsResponse { regions, balancers, ..Default::default() }))
    };
    let fleet = owning(0.125, 1);
    let table = fleet.table();
    assert!(table.contains("capacity  of each, the portion that this balancer owns\n"), "{table}");
    assert_eq!(table.matches("portion ").count(), 2, "{table}");
    let words: Vec<_> = table.split_whitespace().collect();
    assert!(words.join(" ").contains("scaler 0.5; portion 12.5%; 8 backends missing"), "{table}");
    let json = serde_json::to_value(&fleet).unwrap();
    assert_eq!(json["pools"][0]["regions"][0]["portion"], 0.125);

    let table = owning(0.25, 4).table();
    assert!(table.contains("capacity  shared by 4 balancers\n"), "{table}");
    assert!(!table.contains("portion"), "{table}");
    let none = owning(0.0, 4).table();
    assert!(none.contains("portion 0.0%") && none.contains("missing backends unknown"), "{none}");
}

#[test]
fn the_first_sample_shows_totals() {
    let regions =
        RegionsReport::new(&sample(Instant::now(), spilled(30, 10)), None, &answer(vec![]));
    assert_eq!(
        regions.table(),
        "\
counted   new connections in total, since each region was created
capacity  this balancer's alone
bars      # admitted  ! over the limit  > overflowed  x refused  . free

pool web
REGION  LIMIT  OFFERED  ADMITTED  IN  OUT  REFUSED  OVERCAP  USED
eu       10/s       30        10   0   20        0        0     -
us       10/s       20        20  20    0        0        0     -
eu  |###########>>>>>>>>>>>>>>>>>>>>>|
us  |#####################           |
"
    );
    let json = serde_json::to_value(&regions).unwrap();
    assert_eq!(json["interval_seconds"], json!(null));
    assert_eq!(json["pools"][0]["regions"][0]["per_second"], json!(null));
}

#[test]
fn without_the_daemon_there_are_limits_and_rates_but_no_capacities() {
    let regions = two_samples(&Err("spillwayd at s: nothing listens there".into()));
    let table = regions.table();
    let expected = "capacity  configured capacity unknown: spillwayd at s: nothing listens there\n";
    assert!(table.contains(expected), "{table}");
    assert!(table.contains("eu       10/s     15.0      10.0    0  5.0        0        0  100%\n"));
    assert!(table.contains(">|  missing backends unknown\n"), "{table}");
    let json = serde_json::to_value(regions).unwrap();
    let eu = &json["pools"][0]["regions"][0];
    assert_eq!((&eu["capacity"], &eu["missing_backends"]), (&json!(null), &json!(null)));
    assert_eq!(json["daemon"], "spillwayd at s: nothing listens there");
    // That none is missing is known without the daemon.
    assert_eq!(json["pools"][0]["regions"][1]["missing_backends"], 0);
}

#[test]
fn a_new_region_has_no_rates_yet() {
    let start = Instant::now();
    let before = sample(start, spilled(100, 100));
    let mut after = sample(start + Duration::from_secs(1), spilled(103, 103));
    after.groups[0].limiter = Some(11);
    let regions = RegionsReport::new(&after, Some(&before), &answer(vec![]));
    assert!(regions.pools[0].regions[0].per_second.is_none());
    assert!(regions.pools[0].regions[1].per_second.is_some());
    // Totals are not shown among rates.
    let table = regions.table();
    let eu = table.lines().find(|line| line.starts_with("eu ")).unwrap();
    let cells: Vec<_> = eu.split_whitespace().collect();
    assert_eq!(cells, ["eu", "10/s", "-", "-", "-", "-", "-", "-", "-"], "{table}");
}

#[test]
fn overload_and_refusals_show_without_colour() {
    let start = Instant::now();
    let over_capacity = |n| GroupCounter {
        offered: n,
        admitted: n,
        over_capacity: n / 2,
        ..GroupCounter::default()
    };
    let refused =
        |n| GroupCounter { offered: n, admitted: n / 2, refused: n / 2, ..GroupCounter::default() };
    let before = sample(start, [over_capacity(0), refused(0)]);
    let mut after = sample(start + Duration::from_secs(1), [over_capacity(20), refused(20)]);
    let table = RegionsReport::new(&after, Some(&before), &answer(vec![])).table();
    assert!(table.contains("|################!!!!!!!!!!!!!!!!|"), "{table}");
    assert!(table.contains("|################xxxxxxxxxxxxxxxx|"), "{table}");

    after.groups[0].limit = Some(0.0);
    after.groups[1].limit = None;
    let table = RegionsReport::new(&after, Some(&before), &answer(vec![])).table();
    assert!(table.contains("\neu        0/s     20.0"), "{table}");
    assert!(table.contains("\nus          -     20.0"), "{table}");
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
}

#[test]
fn a_balancer_without_pools_shows_that() {
    let nothing = Sample { at: Instant::now(), groups: vec![] };
    let table = RegionsReport::new(&nothing, None, &answer(vec![])).table();
    assert!(table.ends_with("\nno pool has backends yet\n"), "{table}");
}

/// A daemon's answer makes the same rows as the maps, except for the indices of limiters.
#[test]
fn the_daemons_answer_equals_the_maps() {
    let start = Instant::now();
    let by_maps = sample(start, spilled(130, 120));
    let regions = by_maps.groups.iter().map(|group| v1::GroupStatus {
        limit_per_second: group.limit,
        counters: Some(v1::GroupCounters {
            offered: group.counters.offered,
            admitted: group.counters.admitted,
            overflow_in: group.counters.overflow_in,
            overflow_out: group.counters.overflow_out,
            refused: group.counters.refused,
            over_capacity: group.counters.over_capacity,
        }),
        ..status(&group.region, 10.0, 1.0, None)
    });
    let answer = v1::RegionsResponse { regions: regions.collect(), ..Default::default() };
    let mut by_daemon = Sample::from_response(start, &answer);
    for (group, maps) in by_daemon.groups.iter_mut().zip(&by_maps.groups) {
        assert_eq!(group.limiter, None);
        group.limiter = maps.limiter;
    }
    assert_eq!(by_daemon.groups, by_maps.groups);
    // A new group counts from 0 again, which shows without the index of its limiter.
    let mut later = Sample::from_response(start + Duration::from_secs(1), &answer);
    later.groups[0].counters = spilled(3, 3)[0];
    let regions = RegionsReport::new(
        &later,
        Some(&Sample::from_response(start, &answer)),
        &Ok(answer.clone()),
    );
    assert!(regions.pools[0].regions[0].per_second.is_none());
    assert!(regions.pools[0].regions[1].per_second.is_some());
}

/// A figure above 100% does not stand there alone.
#[test]
fn more_than_the_limit_is_explained_where_it_stands() {
    let used = |admitted| {
        let start = Instant::now();
        let counted = |admitted| {
            let eu = GroupCounter { offered: admitted, admitted, ..GroupCounter::default() };
            [eu, GroupCounter::default()]
        };
        let (before, after) =
            (sample(start, counted(0)), sample(start + Duration::from_secs(1), counted(admitted)));
        RegionsReport::new(&after, Some(&before), &answer(Vec::new())).table()
    };
    let over = used(14);
    assert!(over.contains("140%\n"), "{over}");
    let words = over.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("used admitted, of LIMIT; more than 100% is a burst"), "{over}");
    assert!(words.contains("OVERCAP: connections above it, admitted because"), "{over}");
    assert!(over.lines().all(|line| line.len() <= 80), "{over}");
    let full = used(10);
    assert!(full.contains("100%\n") && !full.contains("burst"), "{full}");
}
