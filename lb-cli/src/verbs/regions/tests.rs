use lb_common::abi::counter::GroupCounter;
use serde_json::json;

use super::*;
use crate::output::Report;

/// Two regions with a limit of 10/s each.
fn look(at: Instant, counters: [GroupCounter; 2]) -> Look {
    let group = |region: &str, meter, counters| look::Group {
        pool: "web".into(),
        region: region.into(),
        meter: Some(meter),
        limit: Some(10.0),
        counters,
    };
    let [eu, us] = counters;
    Look { at, groups: vec![group("eu", 8, eu), group("us", 9, us)] }
}

/// What the first region did not admit, the second one did.
fn spilled(offered: u64, admitted: u64) -> [GroupCounter; 2] {
    let out = offered - admitted;
    let eu = GroupCounter { offered, admitted, spilled_out: out, ..GroupCounter::default() };
    let us =
        GroupCounter { offered: out, admitted: out, spilled_in: out, ..GroupCounter::default() };
    [eu, us]
}

fn told(region: &str, configured: f64, scaler: f64, rate: Option<f64>) -> v1::RegionStatus {
    v1::RegionStatus {
        pool: "web".into(),
        region: region.into(),
        configured_per_second: Some(configured),
        scaler,
        capacity_per_second: Some(configured * scaler),
        backends_up: 2,
        backends: 2,
        backend_rate_per_second: rate,
        ..Default::default()
    }
}

fn answer(regions: Vec<v1::RegionStatus>) -> Told {
    Ok(v1::RegionsResponse { regions, balancers: 1, ..Default::default() })
}

/// Two seconds in which the first region was asked for 15/s.
fn two_looks(told: &Told) -> Regions {
    let start = Instant::now();
    let before = look(start, spilled(100, 100));
    let after = look(start + Duration::from_secs(2), spilled(130, 120));
    Regions::new(&after, Some(&before), told)
}

#[test]
fn a_full_region_hands_over_and_misses_a_backend() {
    let told = answer(vec![told("eu", 20.0, 0.5, Some(10.0)), told("us", 10.0, 1.0, None)]);
    let regions = two_looks(&told);
    assert_eq!(
        regions.table(),
        "\
counted   new connections a second, over 2.0 s
capacity  this balancer's alone
bars      # admitted  ! over the limit  > spilled out  x refused  . room

pool web
REGION  LIMIT  OFFERED  ADMITTED   IN  OUT  REFUSED  OVERRUN  USED
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
    assert_eq!(eu["per_second"]["spilled_out"], 5.0);
    assert_eq!((&eu["utilisation"], &eu["missing_backends"]), (&json!(1.0), &json!(1)));
    assert_eq!(eu["capacity"]["scaler"], 0.5);
}

#[test]
fn the_first_look_shows_totals_and_says_so() {
    let regions = Regions::new(&look(Instant::now(), spilled(30, 10)), None, &answer(vec![]));
    assert_eq!(
        regions.table(),
        "\
counted   new connections in all, since each region was made
capacity  this balancer's alone
bars      # admitted  ! over the limit  > spilled out  x refused  . room

pool web
REGION  LIMIT  OFFERED  ADMITTED  IN  OUT  REFUSED  OVERRUN  USED
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
    let regions = two_looks(&Err("spillwayd at s: nothing listens there".into()));
    let table = regions.table();
    let said = "capacity  as configured not known: spillwayd at s: nothing listens there\n";
    assert!(table.contains(said), "{table}");
    assert!(table.contains("eu       10/s     15.0      10.0    0  5.0        0        0  100%\n"));
    assert!(table.contains(">|  missing backends unknown\n"), "{table}");
    let json = serde_json::to_value(regions).unwrap();
    let eu = &json["pools"][0]["regions"][0];
    assert_eq!((&eu["capacity"], &eu["missing_backends"]), (&json!(null), &json!(null)));
    assert_eq!(json["daemon"], "spillwayd at s: nothing listens there");
    // Where none is missing, that is known without it.
    assert_eq!(json["pools"][0]["regions"][1]["missing_backends"], 0);
}

#[test]
fn a_region_that_was_made_anew_has_no_rates_yet() {
    let start = Instant::now();
    let before = look(start, spilled(100, 100));
    let mut after = look(start + Duration::from_secs(1), spilled(103, 103));
    after.groups[0].meter = Some(11);
    let regions = Regions::new(&after, Some(&before), &answer(vec![]));
    assert!(regions.pools[0].regions[0].per_second.is_none());
    assert!(regions.pools[0].regions[1].per_second.is_some());
    // What it counted in all does not stand among rates.
    let table = regions.table();
    let eu = table.lines().find(|line| line.starts_with("eu ")).unwrap();
    let cells: Vec<_> = eu.split_whitespace().collect();
    assert_eq!(cells, ["eu", "10/s", "-", "-", "-", "-", "-", "-", "-"], "{table}");
}

#[test]
fn what_is_beyond_the_limit_or_refused_is_seen_without_colour() {
    let start = Instant::now();
    let overrun =
        |n| GroupCounter { offered: n, admitted: n, overrun: n / 2, ..GroupCounter::default() };
    let refused =
        |n| GroupCounter { offered: n, admitted: n / 2, refused: n / 2, ..GroupCounter::default() };
    let before = look(start, [overrun(0), refused(0)]);
    let mut after = look(start + Duration::from_secs(1), [overrun(20), refused(20)]);
    let table = Regions::new(&after, Some(&before), &answer(vec![])).table();
    assert!(table.contains("|################!!!!!!!!!!!!!!!!|"), "{table}");
    assert!(table.contains("|################xxxxxxxxxxxxxxxx|"), "{table}");

    after.groups[0].limit = Some(0.0);
    after.groups[1].limit = None;
    let table = Regions::new(&after, Some(&before), &answer(vec![])).table();
    assert!(table.contains("\neu        0/s     20.0"), "{table}");
    assert!(table.contains("\nus          -     20.0"), "{table}");
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
}

#[test]
fn a_balancer_without_pools_says_so() {
    let nothing = Look { at: Instant::now(), groups: vec![] };
    let table = Regions::new(&nothing, None, &answer(vec![])).table();
    assert!(table.ends_with("\nno pool has backends yet\n"), "{table}");
}

/// What the daemon tells makes the same rows as the maps that it reads, but for the meters' indices.
#[test]
fn the_look_of_the_daemon_is_that_of_the_maps() {
    let start = Instant::now();
    let by_maps = look(start, spilled(130, 120));
    let told = by_maps.groups.iter().map(|group| v1::RegionStatus {
        limit_per_second: group.limit,
        counters: Some(v1::RegionCounters {
            offered: group.counters.offered,
            admitted: group.counters.admitted,
            spilled_in: group.counters.spilled_in,
            spilled_out: group.counters.spilled_out,
            refused: group.counters.refused,
            overrun: group.counters.overrun,
        }),
        ..told(&group.region, 10.0, 1.0, None)
    });
    let answer = v1::RegionsResponse { regions: told.collect(), ..Default::default() };
    let mut by_daemon = Look::told(start, &answer);
    for (group, maps) in by_daemon.groups.iter_mut().zip(&by_maps.groups) {
        assert_eq!(group.meter, None);
        group.meter = maps.meter;
    }
    assert_eq!(by_daemon.groups, by_maps.groups);
    // A group that was made anew counts from 0 again, which shows without its meter.
    let mut later = Look::told(start + Duration::from_secs(1), &answer);
    later.groups[0].counters = spilled(3, 3)[0];
    let regions = Regions::new(&later, Some(&Look::told(start, &answer)), &Ok(answer.clone()));
    assert!(regions.pools[0].regions[0].per_second.is_none());
    assert!(regions.pools[0].regions[1].per_second.is_some());
}
