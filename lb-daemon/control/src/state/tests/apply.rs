use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use proptest::{collection::vec, prelude::*};
use tokio::time::{sleep, timeout};

use super::*;
use lb_base::Namespace;
use lb_fake::arbitrary;
use lb_maps::directory::Directory;
use lb_model::{
    Encapsulation, ObjectReference,
    diff::{Change, FieldChange, Kind},
};

fn changes(applied: &Applied) -> Vec<String> {
    applied.changes.iter().map(|change| change.object.to_string()).collect()
}

#[tokio::test]
async fn an_apply_counts_the_generation_up_only_if_something_changes() {
    let daemon = Daemon::new();
    let first = daemon.apply(WEB).await.unwrap();
    assert_eq!(first.generation, 1);
    assert_eq!(changes(&first), ["region eu", "health check tcp", "pool web", "service web"]);
    let again = daemon.apply(WEB).await.unwrap();
    assert_eq!(
        again,
        Applied {
            generation: 1,
            changes: vec![],
            movements: vec![],
            movements_unknown: false,
            memory: None,
            warnings: vec![],
            removals: vec![],
            takeovers: vec![],
            resolved: None,
            balancers: BTreeMap::new()
        }
    );
    let second = daemon.apply(&web("port = 80\n    protocol", "port = 81\n    protocol")).await;
    let change = Change {
        kind: Kind::Changed,
        object: ObjectReference::Service(name("web")),
        fields: vec![FieldChange {
            field: "port",
            region: None,
            old: "80".into(),
            new: "81".into(),
            note: String::new(),
        }],
        slots_moved: 0,
    };
    let second = second.unwrap();
    assert_eq!((second.generation, second.changes), (2, vec![change]));
    assert_eq!(daemon.force("# nothing").await.unwrap().generation, 3);
    assert_eq!(daemon.path.content().plan, Plan::default());
}

#[tokio::test]
async fn an_apply_is_answered_after_disk_and_packet_path() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    {
        let content = daemon.path.content();
        let service = content.plan.services.values().next().unwrap();
        assert_eq!(content.plan.pools[&service.pool].name, name("web"));
        assert_eq!(content.plan.backends.len(), 2);
    }
    let copy = tempfile::tempdir().unwrap();
    let file = lb_store::FILE;
    std::fs::copy(daemon.directory.path().join(file), copy.path().join(file)).unwrap();
    let stored = Store::open(copy.path()).unwrap();
    let generation = stored.generation().unwrap();
    assert_eq!(generation.number, 1);
    assert_eq!(*generation.configuration, parse(WEB));
    let directory = Directory::read(daemon.directory.path()).unwrap();
    assert_eq!((directory.generation, directory.own_region.as_deref()), (1, Some("eu")));
    assert_eq!(directory.network_namespace, Some(Namespace::current().unwrap()));
    assert_eq!(directory.pools.into_values().collect::<Vec<_>>(), ["web"]);
}

/// The difference needs the tables of both configurations.
#[tokio::test]
async fn a_table_that_was_built_for_the_difference_is_published() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    // Nothing was compared.
    assert_eq!(daemon.path.content().built, [false]);
    let applied = daemon.apply(&web("slots = 31", "slots = 37")).await.unwrap();
    assert_eq!(applied.generation, 2);
    assert_eq!(daemon.path.content().built, [true]);
    daemon.apply(&web("port = 80", "port = 81")).await.unwrap();
    assert_eq!(daemon.path.content().built, [true], "the slots of the first one");
    daemon.apply(&web("port = 80", "port = 82")).await.unwrap();
    assert!(daemon.path.content().built.is_empty(), "no new table");
}

#[tokio::test]
async fn a_dry_run_lists_the_changes_and_makes_none() {
    let daemon = Daemon::new();
    let configuration = request(WEB);
    let apply = Apply { configuration, dry_run: true, ..Apply::default() };
    let dry = daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
    assert_eq!(dry.generation, 0);
    assert_eq!(daemon.running.commands.export().await.unwrap().generation, 0);
    assert_eq!(daemon.path.content().applied, 0);
    assert_eq!(daemon.apply(WEB).await.unwrap().changes, dry.changes);
}

#[tokio::test]
async fn another_expected_generation_refuses_the_apply() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let apply = |expected| {
        let expected_generation = Some(expected);
        let apply = Apply { expected_generation, force: true, ..Apply::default() };
        daemon.running.commands.apply(apply, None)
    };
    let error = apply(0).await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "generation 1 is in force, not 0");
    assert_eq!(daemon.running.commands.export().await.unwrap().generation, 1);
    assert_eq!(apply(1).await.unwrap().unwrap().generation, 2);
}

#[tokio::test]
async fn a_configuration_without_room_is_refused() {
    let daemon = Daemon::new();
    daemon.path.content().full = true;
    let error = daemon.apply(WEB).await.unwrap_err();
    assert_eq!(
        error_chain::message(&error),
        "the packet path has no room for the configuration: groups: 1 contiguous entries are \
         needed, the largest free range has 0"
    );
    assert_eq!(daemon.running.commands.export().await.unwrap().generation, 0);
    assert_eq!(daemon.path.content().applied, 0);
}

#[tokio::test]
async fn the_hash_key_in_use_is_exported_and_accepted_back() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let listed = daemon.running.commands.export().await.unwrap();
    let key = listed.configuration.hash_key.unwrap();
    let planned = daemon.path.content().plan.pools.values().next().unwrap().hash_key;
    assert_eq!(planned, key);
    let back = Apply { configuration: listed.configuration.into(), ..Apply::default() };
    let answer = daemon.running.commands.apply(back, None).await.unwrap().unwrap();
    assert_eq!(
        answer,
        Applied {
            generation: 1,
            changes: vec![],
            movements: vec![],
            movements_unknown: false,
            memory: None,
            warnings: vec![],
            removals: vec![],
            takeovers: vec![],
            resolved: None,
            balancers: BTreeMap::new()
        }
    );

    let text = format!("hash_key = \"{}\"\n{WEB}", "0".repeat(31) + "1");
    let applied = daemon.apply(&text).await.unwrap();
    assert_eq!(changes(&applied), ["hash key"]);
    let planned = daemon.path.content().plan.pools.values().next().unwrap().hash_key;
    assert_eq!(planned, [0, 1]);
}

#[tokio::test]
async fn sensors_follow_the_configuration_in_force() {
    let mut daemon = Daemon::new();
    let text = web(
        "address = \"10.0.0.2\"\n    region = \"eu\"",
        "address = \"10.0.0.2\"\n    region = \"eu\"\n    admin_state = \"disabled\"",
    ) + "
        [[pool]]
        name = \"unchecked\"
        [[pool.backend]]
        address = \"10.0.0.3\"
        region = \"eu\"
    ";
    daemon.apply(&text).await.unwrap();
    let configuration = parse(&text);
    let check = configuration.health_checks[&name("tcp")].clone();
    let checks = vec![(name("tcp"), check)];
    let target = Target {
        pool: name("web"),
        address: ip("10.0.0.1"),
        checks,
        vips: [ip("192.0.2.1")].into(),
        encapsulation: Encapsulation::IpInIp,
        urgent: true,
        is_up: false,
    };
    assert_eq!(
        daemon.running.targets.borrow_and_update().as_slice(),
        std::slice::from_ref(&target)
    );
    let addresses = [ip("10.0.0.1"), ip("10.0.0.2"), ip("10.0.0.3")];
    assert!(daemon.running.next_hop_targets.borrow().iter().eq(&addresses));

    daemon.restart().await;
    assert_eq!(daemon.running.targets.borrow().as_slice(), [target]);
    assert!(daemon.running.next_hop_targets.borrow().iter().eq(&addresses));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever was applied before, with whatever restarts: packets are decided as by a daemon that never had
    /// another configuration, and no two backends share a number.
    #[test]
    fn earlier_configurations_leave_no_trace(
        steps in vec((arbitrary::configuration(), any::<bool>()), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut daemon = Daemon::new();
            let mut last = Configuration::default();
            for (mut configuration, restart) in steps {
                configuration.hash_key.get_or_insert([3, 4]);
                let requested = configuration.clone().into();
                let apply = Apply { configuration: requested, force: true, ..Apply::default() };
                daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
                if restart {
                    daemon.restart().await;
                }
                last = configuration;
            }
            let fresh = Daemon::new();
            let apply = Apply { configuration: last.clone().into(), ..Apply::default() };
            fresh.running.commands.apply(apply, None).await.unwrap().unwrap();
            let (status, expected) = (daemon.status().await, fresh.status().await);
            assert_eq!(status.checksum, expected.checksum);
            let listed = daemon.running.commands.export().await.unwrap().configuration;
            assert_eq!(listed, last);
            let content = daemon.path.content();
            let backends = &content.plan.backends;
            let numbers: BTreeSet<_> =
                backends.values().map(|backend| backend.id.index).collect();
            assert_eq!(numbers.len(), backends.len());
        });
    }
}

/// A mistyped own region stays a condition, over restarts too, until the configuration contains it.
#[tokio::test]
async fn an_unknown_own_region_is_a_condition() {
    let mut daemon = Daemon::new();
    let conditions = async |daemon: &Daemon| -> Vec<_> {
        let all = daemon.status().await.conditions.into_iter().map(|t| (t.subject, t.cause));
        all.filter(|(subject, _)| subject.starts_with("region")).collect()
    };
    assert_eq!(conditions(&daemon).await, []);
    daemon.apply(&WEB.replace("\"eu\"", "\"us\"")).await.unwrap();
    let cause = "this balancer's own region is not in the configuration, so it prefers no backend";
    let expected = [("region eu".to_owned(), cause.to_owned())];
    assert_eq!(conditions(&daemon).await, expected);
    daemon.restart().await;
    assert_eq!(conditions(&daemon).await, expected);
    daemon.apply(WEB).await.unwrap();
    assert_eq!(conditions(&daemon).await, []);
}

#[tokio::test]
async fn several_balancers_need_a_hash_key() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let own = daemon.running.commands.export().await.unwrap().configuration.hash_key.unwrap();
    let error = daemon.apply(&format!("balancers = 2\n{WEB}")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "hash_key: 2 balancers need one key to choose the same backends, and none is set"
    );
    assert!(matches!(error, Refusal::NoHashKey { own_key, .. } if own_key == own));

    let text = format!("balancers = 2\nhash_key = \"{:016x}{:016x}\"\n{WEB}", own[0], own[1]);
    let applied = daemon.apply(&text).await.unwrap();
    assert_eq!(changes(&applied), ["hash key", "balancers"]);
    assert_eq!(applied.movements, []);
    // The key is part of the configuration now.
    daemon.stop().await;
    let store = Store::open(daemon.directory.path()).unwrap();
    assert_eq!(store.generation().unwrap().configuration.hash_key, Some(own));
    drop(store);
    daemon.running = Running::start(&daemon.directory, &daemon.path);
    assert_eq!(daemon.apply(&text).await.unwrap().generation, 2, "nothing changes");

    let alone = text.replace("balancers = 2", "");
    let applied = daemon.apply(&alone).await.unwrap();
    assert_eq!(changes(&applied), ["hash key", "balancers"]);
    assert_eq!(applied.movements, []);
}

/// What an older daemon stored stays in force.
#[tokio::test]
async fn several_balancers_stored_without_a_hash_key_are_a_condition() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.stop().await;
    let mut store = Store::open(daemon.directory.path()).unwrap();
    let mut stored = store.generation().unwrap().clone();
    Arc::make_mut(&mut stored.configuration).balancers = 2.try_into().unwrap();
    store.commit(stored).await.unwrap();
    drop(store);
    daemon.running = Running::start(&daemon.directory, &daemon.path);
    let subjects = async |daemon: &Daemon| -> Vec<_> {
        let all = daemon.status().await.conditions.into_iter().map(|it| it.subject);
        all.filter(|subject| subject == "hash_key").collect()
    };
    assert_eq!(subjects(&daemon).await, ["hash_key"]);
    let exported = daemon.running.commands.export().await.unwrap();
    assert_eq!((exported.generation, exported.configuration.balancers.get()), (1, 2));
    let given = Apply { configuration: exported.configuration.into(), ..Apply::default() };
    let applied = daemon.running.commands.apply(given, None).await.unwrap().unwrap();
    assert_eq!(changes(&applied), ["hash key"]);
    assert_eq!(applied.movements, []);
    assert_eq!(subjects(&daemon).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_caller_is_gone_is_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::with(directory, FakePacketPath::default());
    let stall = daemon.path.stall();
    let commands = daemon.running.commands.clone();
    let apply = Apply { configuration: request(WEB), ..Apply::default() };
    let applying = tokio::spawn(async move { commands.apply(apply, None).await });
    let stall = stall.begun().await;

    // The command is queued, and then its caller goes away.
    let removal = Apply::default();
    let mut queued = Box::pin(daemon.running.commands.apply(removal, None));
    assert!(timeout(Duration::ZERO, &mut queued).await.is_err());
    drop(queued);
    drop(stall);
    applying.await.unwrap().unwrap().unwrap();
    let exported = daemon.running.commands.export().await.unwrap();
    assert_eq!((exported.generation, exported.configuration.services.len()), (1, 1));
    // A command whose caller waits is carried out.
    let removal = Apply { force: true, ..Apply::default() };
    let removed = daemon.running.commands.apply(removal, None).await.unwrap().unwrap();
    assert_eq!(removed.generation, 2);
}

const INTERVAL: Duration = Duration::from_millis(25);

async fn wait_for_rounds(heartbeat: &Heartbeat, more: u64) {
    let begin = heartbeat.rounds();
    let beats = async {
        while heartbeat.rounds() < begin + more {
            sleep(INTERVAL).await;
        }
    };
    timeout(4_000 * INTERVAL, beats).await.expect("the loop beats");
}

/// The publisher has its own thread, so that the rest of the daemon goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_packet_path_stops_the_publishers_heartbeat_alone() {
    let daemon = Daemon::beating(INTERVAL);
    let Heartbeats { state, publisher } = &daemon.running.heartbeats;
    wait_for_rounds(publisher, 3).await;

    let stall = daemon.path.stall();
    let commands = daemon.running.commands.clone();
    let apply = Apply { configuration: request(WEB), ..Apply::default() };
    let applying = tokio::spawn(async move { commands.apply(apply, None).await });
    let stall = stall.begun().await;

    // A loop that is not stalled completes forty rounds meanwhile.
    let before = publisher.rounds();
    wait_for_rounds(state, 40).await;
    assert_eq!(publisher.rounds(), before);

    drop(stall);
    applying.await.unwrap().unwrap().unwrap();
    wait_for_rounds(publisher, 1).await;
}
