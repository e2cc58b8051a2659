//! Fleets as they are printed.

use spillway_proto::v1;

use super::{problems::ProblemReason, status::FleetReport};
use crate::{failure::Exit, output::Report as _};

fn member(name: &str) -> v1::FleetMember {
    v1::FleetMember {
        name: name.into(),
        address: format!("192.0.2.{}:7946", name.trim_start_matches("lb-")),
        region: "eu".into(),
        alive: true,
        version: "0.1.0".into(),
        revision: 4_711,
        generation: 8,
        ready: true,
        tables: "0123456789abcdef".into(),
        heard_ms_ago: Some(120),
        schema_revision: Some(1),
        compared_with: "lb-1".into(),
        tables_agree: Some(true),
        ..Default::default()
    }
}

/// A fleet of as many balancers, as `lb-1` sees it, in which all is well. Balancer `n` has a portion and a demand that grow
/// with `n`.
fn fleet(balancers: u32) -> v1::FleetStatus {
    let names: Vec<_> = (1..=balancers).map(|number| format!("lb-{number}")).collect();
    let mut members: Vec<_> = names.iter().map(|name| member(name)).collect();
    members[0].heard_ms_ago = None;
    let whole = f64::from(balancers * (balancers + 1) / 2);
    let shares = names.iter().zip(1..).map(|(name, number)| v1::GroupShare {
        balancer: name.clone(),
        portion: f64::from(number) / whole,
        demand_per_second: f64::from(number) * 60.0,
    });
    let group = |pool: &str, capacity_per_second| v1::SharedGroup {
        pool: pool.into(),
        region: "eu".into(),
        capacity_per_second,
        shares: shares.clone().collect(),
        in_flight: 0.0,
        capacity_unknown: false,
    };
    v1::FleetStatus {
        fleet: "edge".into(),
        balancer: "lb-1".into(),
        member: true,
        revision: 4_711,
        generation: 8,
        members,
        groups: vec![group("dns", None), group("web", Some(10_000.0))],
        epoch: 2,
        ..Default::default()
    }
}

fn table(status: &v1::FleetStatus) -> String {
    FleetReport::new(status.clone()).table()
}

#[test]
fn a_fleet_of_one_balancer() {
    assert_eq!(
        table(&fleet(1)),
        "\
fleet edge, as lb-1 sees it: generation 8, revision 4711

BALANCER  REGION  ALIVE  READY  VERSION  GENERATION  TABLES  HEARD
lb-1      eu      yes    yes    0.1.0             8  same     here

POOL  REGION  CAPACITY         lb-1
dns   eu      no limit  100.0% 60/s
web   eu       10000/s  100.0% 60/s
"
    );
    FleetReport::new(fleet(1)).check().unwrap();
}

#[test]
fn four_balancers_have_columns_of_their_own() {
    let mut status = fleet(4);
    status.members[2].heard_ms_ago = Some(2_340);
    status.groups[0].shares.remove(1);
    status.groups[1].shares[3].demand_per_second = 3.55;
    status.groups[1].shares[0].portion = 0.000_2;
    assert_eq!(
        table(&status),
        "\
fleet edge, as lb-1 sees it: generation 8, revision 4711

BALANCER  REGION  ALIVE  READY  VERSION  GENERATION  TABLES  HEARD
lb-1      eu      yes    yes    0.1.0             8  same     here
lb-2      eu      yes    yes    0.1.0             8  same    120ms
lb-3      eu      yes    yes    0.1.0             8  same     2.3s
lb-4      eu      yes    yes    0.1.0             8  same    120ms

POOL  REGION  CAPACITY         lb-1         lb-2         lb-3         lb-4
dns   eu      no limit   10.0% 60/s            -  30.0% 180/s  40.0% 240/s
web   eu       10000/s  < 0.1% 60/s  20.0% 120/s  30.0% 180/s  40.0% 3.6/s
"
    );
}

#[test]
fn of_nine_balancers_the_least_and_the_largest_portion_are_shown() {
    let mut status = fleet(9);
    // Some of it is on its way.
    status.groups[1].shares[4].portion = 0.0;
    assert_eq!(
        table(&status),
        "\
fleet edge, as lb-1 sees it: generation 8, revision 4711

BALANCER  REGION  ALIVE  READY  VERSION  GENERATION  TABLES  HEARD
lb-1      eu      yes    yes    0.1.0             8  same     here
lb-2      eu      yes    yes    0.1.0             8  same    120ms
lb-3      eu      yes    yes    0.1.0             8  same    120ms
lb-4      eu      yes    yes    0.1.0             8  same    120ms
lb-5      eu      yes    yes    0.1.0             8  same    120ms
lb-6      eu      yes    yes    0.1.0             8  same    120ms
lb-7      eu      yes    yes    0.1.0             8  same    120ms
lb-8      eu      yes    yes    0.1.0             8  same    120ms
lb-9      eu      yes    yes    0.1.0             8  same    120ms

POOL  REGION  CAPACITY            SUM      LEAST     LARGEST
dns   eu      no limit  100.0% 2700/s  2.2% lb-1  20.0% lb-9
web   eu       10000/s   88.9% 2700/s  0.0% lb-5  20.0% lb-9
"
    );
    let wide = FleetReport::new(status).wide();
    let line = wide.lines().find(|line| line.starts_with("web")).unwrap();
    assert!(line.contains("2.2% 60/s") && line.contains("20.0% 540/s"), "{wide}");
    assert!(wide.contains("  192.0.2.9:7946  ") && wide.contains("  0123456789abcdef  "), "{wide}");
}

#[test]
fn what_differs_is_said_in_sentences() {
    let mut status = fleet(4);
    status.groups.clear();
    status.members[1].generation = 7;
    (status.members[1].compared_with, status.members[1].tables_agree) = (String::new(), None);
    status.members[2].tables = "fedcba9876543210".into();
    status.members[2].differing_pools = vec!["web".into()];
    status.members[2].tables_agree = Some(false);
    status.members[3] = v1::FleetMember { name: "lb-4".into(), ..Default::default() };
    status.being_forgotten = vec!["lb-4".into()];
    assert_eq!(
        table(&status),
        "\
fleet edge, as lb-1 sees it: generation 8, revision 4711
forgotten  lb-4: portions go to the others now

BALANCER  REGION  ALIVE  READY  VERSION  GENERATION  TABLES  HEARD
lb-1      eu      yes    yes    0.1.0             8  same     here
lb-2      eu      yes    yes    0.1.0             7  -       120ms
lb-3      eu      yes    yes    0.1.0             8  differ  120ms
lb-4      -       no     no     -                 -  -       never

lb-2 has generation 7 in force, etcd has 8
lb-3: pool web has other tables than here
lb-4 is not alive: it does not renew its lease in etcd
"
    );
    let failure = FleetReport::new(status).check().unwrap_err();
    assert_eq!(failure.exit, Exit::Failure);
    assert_eq!(
        failure.message,
        "fleet edge: lb-2 has generation 7 in force, etcd has 8; lb-3: pool web has other tables than here; lb-4 is not \
         alive: it does not renew its lease in etcd"
    );
}

/// In the middle of an upgrade, what newer balancers know waits for the others.
#[test]
fn older_balancers_that_hold_back_newer_fields_are_named() {
    let mut status = fleet(3);
    status.groups.clear();
    status.schema_revision = 1;
    for member in [0, 2] {
        (status.members[member].version, status.members[member].schema_revision) =
            ("0.2.0".into(), Some(2));
    }
    let report = FleetReport::new(status.clone());
    report.check().unwrap();
    let text = report.table();
    let expected = "\
fleet edge, as lb-1 sees it: generation 8, revision 4711
held back  fields of schema revision 2 wait until these are upgraded: lb-2
           (version 0.1.0, schema revision 1)
";
    assert!(text.starts_with(expected), "{text}");
    assert!(report.wide().contains("VERSION  SCHEMA"), "{}", report.wide());
    let json = serde_json::to_value(report).unwrap();
    assert_eq!(json["held_back_by"], serde_json::json!(["lb-2"]));
    assert_eq!(
        (&json["schema_revision"], &json["balancers"][2]["schema_revision"]),
        (&1.into(), &2.into())
    );
    status.members[1].schema_revision = Some(2);
    assert!(!table(&status).contains("held back"));
    // A program that does not say it holds nothing back.
    status.members[1].schema_revision = None;
    assert!(!table(&status).contains("held back"));
}

#[test]
fn a_fleet_without_certificates_says_so_and_that_is_no_problem() {
    let mut status = fleet(2);
    assert!(!table(&status).contains("certificates"));
    status.insecure = true;
    let text = table(&status);
    let expected = "\
fleet edge, as lb-1 sees it: generation 8, revision 4711
insecure  no certificates: whoever reaches etcd or the balancers can change what
          the fleet has
";
    assert!(text.starts_with(expected), "{text}");
    let report = FleetReport::new(status);
    assert!(report.check().is_ok());
    assert_eq!(serde_json::to_value(&report).unwrap()["insecure"], true);
}

#[test]
fn long_conditions_are_wrapped_and_whole() {
    let mut status = fleet(2);
    status.groups.clear();
    status.etcd_problem = "https://192.0.2.7:2379: no leader, so nothing can be changed".into();
    status.etcd_problem_since = Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 5_000 });
    status.conflict = "etcd has generation 6, which does not descend from generation 8".into();
    status.members[1].ready = false;
    status.members[1].conditions = vec![
        "version 0.1.0 does not know the field pools[0].hold_down, which the fleet uses".into(),
        "its store cannot be written: no space left on device".into(),
    ];
    status.members[1].peer_problem = "192.0.2.2:7946: connection refused".into();
    status.members[1].heard_ms_ago = Some(200_000);
    let text = table(&status);
    assert_eq!(
        text,
        "\
fleet edge, as lb-1 sees it: generation 8, revision 4711
etcd      https://192.0.2.7:2379: no leader, so nothing can be changed (since
          1970-01-12T13:46:40Z)
conflict  etcd has generation 6, which does not descend from generation 8;
          `spillway fleet restore` decides

BALANCER  REGION  ALIVE  READY  VERSION  GENERATION  TABLES   HEARD
    PROBLEMS
lb-1      eu      yes    yes    0.1.0             8  same      here
    -
lb-2      eu      yes    no     0.1.0             8  same    3m 20s
    version 0.1.0 does not know the field pools[0].hold_down, which the fleet
    uses; its store cannot be written: no space left on device; 192.0.2.2:7946:
    connection refused

lb-2 is not ready to take traffic
"
    );
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let failure = FleetReport::new(status).check().unwrap_err();
    assert!(
        failure.message.ends_with("lb-2 is not ready to take traffic; and 3 more"),
        "{failure}"
    );
    assert!(failure.hint.unwrap().contains("`spillway fleet restore`"));
}

/// The problems of balancer 2 of two, after a change to its entry.
fn problems(change: impl FnOnce(&mut v1::FleetStatus)) -> Vec<(ProblemReason, String)> {
    let mut status = fleet(2);
    change(&mut status);
    let problems = FleetReport::new(status).problems.into_iter();
    problems.map(|problem| (problem.reason, problem.text)).collect()
}

#[test]
fn each_problem_has_a_reason_for_programs() {
    use ProblemReason::{Ahead, Behind, NotAlive, NotReady, Removed, Silent, TablesDiffer};
    let one = |change: fn(&mut v1::FleetMember)| problems(|it| change(&mut it.members[1]));
    let expected =
        |reason, text: &str| -> Vec<(ProblemReason, String)> { vec![(reason, text.into())] };
    let behind = "lb-2 has revision 4700 in force, etcd has 4711";
    assert_eq!(one(|it| it.revision = 4_700), expected(Behind, behind));
    let ahead = "lb-2 has generation 9 in force, etcd has 8";
    assert_eq!(one(|it| it.generation = 9), expected(Ahead, ahead));
    let none = "lb-2 has no generation in force, etcd has 8";
    assert_eq!(one(|it| it.generation = 0), expected(Behind, none));
    let pools = "lb-2: pools a, b, c, d, e, and 2 more have other tables than here";
    let seven = |it: &mut v1::FleetMember| {
        it.differing_pools = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned).into();
        it.tables_agree = Some(false);
    };
    assert_eq!(one(seven), expected(TablesDiffer, pools));
    let elsewhere = "lb-2: pool web has other tables than lb-7";
    let differs = |it: &mut v1::FleetMember| {
        (it.compared_with, it.differing_pools) = ("lb-7".into(), vec!["web".into()]);
        it.tables_agree = Some(false);
    };
    assert_eq!(one(differs), expected(TablesDiffer, elsewhere));
    let unanswered = "lb-2 has other tables than here";
    assert_eq!(one(|it| it.tables_agree = Some(false)), expected(TablesDiffer, unanswered));
    let waits = "lb-2 is not ready to take traffic, it says: no portions";
    let cause =
        |it: &mut v1::FleetMember| (it.ready, it.not_ready_cause) = (false, "no portions".into());
    assert_eq!(one(cause), expected(NotReady, waits));
    let dead = "lb-2 is not alive: it does not renew its lease in etcd";
    assert_eq!(one(|it| it.alive = false), expected(NotAlive, dead), "it has portions");
    let gone = problems(|status| {
        status.members[1].alive = false;
        for group in &mut status.groups {
            group.shares.retain(|it| it.balancer != "lb-2");
        }
    });
    let shared = format!(
        "{dead}, and the others have its portions; if it is gone for good, `spillway fleet remove lb-2`"
    );
    assert_eq!(gone, expected(NotAlive, &shared));
    let silent =
        "lb-2: no message came from it for 26 s; it has to reach this balancer at 192.0.2.1:7946";
    let addressed = |status: &mut v1::FleetStatus, ago| {
        status.members[0].address = "192.0.2.1:7946".into();
        status.members[1].heard_ms_ago = ago;
    };
    assert_eq!(problems(|it| addressed(it, Some(26_400))), expected(Silent, silent));
    assert_eq!(problems(|it| addressed(it, Some(4_999))), []);
    let never =
        "lb-2: no message came from it yet; it has to reach this balancer at 192.0.2.1:7946";
    assert_eq!(problems(|it| addressed(it, None)), expected(Silent, never));
    let removed = "the fleet has removed lb-1: leave by `spillway fleet leave`, and join again";
    let without = problems(|status| drop(status.members.remove(0)));
    assert_eq!(without, expected(Removed, removed));
    let waits = "this balancer does not take part in its fleet yet, `spillway status` says why";
    assert_eq!(problems(|status| status.members.clear()), expected(NotReady, waits));
    // The digests of other regions say nothing.
    assert_eq!(one(|it| (it.tables, it.region) = ("ff".into(), "us".into())), []);
    // It waits for the upgrade of the others.
    assert_eq!(one(|it| it.schema_revision = Some(2)), []);
    // Before the first apply there is nothing to have.
    let empty = problems(|status| {
        status.generation = 0;
        status.members.iter_mut().for_each(|it| it.generation = 0);
    });
    assert_eq!(empty, []);
    let lost = problems(|status| status.generation = 0);
    assert_eq!(lost[1], (Ahead, "lb-2 has generation 8 in force, etcd has none".into()));
}

/// What a daemon does not know yet is no number.
#[test]
fn unknown_values_are_dashes_and_null() {
    let mut status = fleet(2);
    status.groups.truncate(1);
    status.groups[0].shares.clear();
    status.groups[0].capacity_unknown = true;
    (status.revision, status.generation) = (0, 0);
    for member in &mut status.members {
        let (name, alive) = (member.name.clone(), true);
        *member = v1::FleetMember { name, alive, ..Default::default() };
    }
    assert_eq!(
        table(&status),
        "\
fleet edge, as lb-1 sees it: no generation yet, revision 0

BALANCER  REGION  ALIVE  READY  VERSION  GENERATION  TABLES  HEARD
lb-1      -       yes    no     -                 -  -        here
lb-2      -       yes    no     -                 -  -       never

POOL  REGION  CAPACITY  lb-1  lb-2
dns   eu             -     -     -

lb-1 is not ready to take traffic
lb-2 is not ready to take traffic
"
    );
    let json = serde_json::to_value(FleetReport::new(status)).unwrap();
    assert_eq!(
        json["balancers"][1],
        serde_json::json!({
            "name": "lb-2", "address": "", "region": null, "alive": true, "ready": false, "not_ready_cause": null, "version": null,
            "revision": null, "generation": null, "schema_revision": null, "tables": null, "compared_with": null,
            "tables_agree": null, "differing_pools": [], "conditions": [], "heard_ms_ago": null, "peer_problem": null,
        })
    );
    assert_eq!((&json["generation"], &json["revision"]), (&serde_json::Value::Null, &0.into()));
    assert_eq!(json["groups"][0]["capacity_per_second"], serde_json::Value::Null);
}

#[test]
fn json_has_what_the_tables_show() {
    let mut status = fleet(2);
    status.conflict = "older".into();
    let json = serde_json::to_value(FleetReport::new(status)).unwrap();
    assert_eq!((&json["fleet"], &json["epoch"]), (&"edge".into(), &2.into()));
    assert_eq!(json["balancers"][1]["tables_agree"], true);
    assert_eq!(json["groups"][1]["capacity_per_second"], 10_000.0);
    let share = &json["groups"][1]["shares"][1];
    assert_eq!((&share["balancer"], &share["demand_per_second"]), (&"lb-2".into(), &120.0.into()));
    let problem = serde_json::json!(
        {"balancer": null, "reason": "conflict", "text": "conflict: older"}
    );
    assert_eq!(json["problems"], serde_json::json!([problem]));
}

#[test]
fn a_balancer_outside_of_a_fleet_is_told_what_to_do() {
    let none = FleetReport::new(v1::FleetStatus::default());
    assert_eq!(
        none.table(),
        "this balancer's settings name no fleet: to share a configuration and capacities with others, add the table \
         [fleet] to them, see /usr/share/doc/spillway/docs/fleet.md\n"
    );
    let named = v1::FleetStatus {
        fleet: "edge".into(),
        balancer: "lb-2".into(),
        ..v1::FleetStatus::default()
    };
    let named = FleetReport::new(named);
    let expected = "lb-2 is not a member of fleet edge: `spillway fleet join` makes it one\n";
    assert_eq!(named.table(), expected);
    let failure = named.check().unwrap_err();
    assert_eq!(
        (failure.exit, &*failure.message),
        (Exit::Failure, "lb-2 is not a member of fleet edge")
    );
    let json = serde_json::to_value(named).unwrap();
    assert_eq!((&json["member"], &json["revision"]), (&false.into(), &serde_json::Value::Null));
}
