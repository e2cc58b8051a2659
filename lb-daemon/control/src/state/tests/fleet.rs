//! Generations of a fleet: their numbers, and what a member refuses.

use super::*;
use crate::command::{Actor, ChangeRecord};
use lb_config::Reason;
use lb_model::plan::Plan;
use lb_store::{Generation, decode_shared, encode_shared};

const KEY: &str = "hash_key = \"000102030405060708090a0b0c0d0e0f\"\n";

/// [`WEB`] as a fleet shares it.
pub(super) fn web_of_fleet() -> String {
    format!("{KEY}{WEB}")
}

/// The same with another weight.
fn weight(weight: u32) -> String {
    let address = "address = \"10.0.0.1\"\n";
    web_of_fleet().replace(address, &format!("{address}weight = {weight}\n"))
}

/// A generation of a fleet.
pub(super) fn shared(number: u64, text: &str) -> Apply {
    Apply {
        configuration: request(text),
        shared: Some(number),
        actor: Actor::Fleet { author: format!("uid {number}") },
        request: format!("reason {number}"),
        ..Apply::default()
    }
}

impl Daemon {
    pub(super) async fn put(&self, apply: Apply) -> Result<Applied, Refusal> {
        self.running.commands.apply(apply, None).await.unwrap()
    }

    /// The numbers, with the author and the reason of the last; without those from before the fleet.
    async fn generations(&self) -> (Vec<u64>, String, String) {
        let history = self.running.commands.generations().await.unwrap();
        let last = history.last().unwrap();
        let (who, why) = (last.who.clone(), last.why.clone());
        let fleets = history.iter().filter(|it| !it.is_before_fleet);
        (fleets.map(|it| it.number).collect(), who, why)
    }

    async fn in_force(&self) -> (u64, Configuration) {
        let exported = self.running.commands.export().await.unwrap();
        (exported.generation, exported.configuration)
    }
}

#[tokio::test]
async fn a_generation_of_a_fleet_has_its_number_author_and_reason() {
    let mut daemon = Daemon::new();
    for _ in 0..3 {
        daemon.apply(WEB).await.unwrap();
        daemon.apply(&web("slots = 31", "slots = 37")).await.unwrap();
    }
    assert_eq!(daemon.generations().await.0, [1, 2, 3, 4, 5, 6]);
    for (number, text, expected) in [
        // Lower than its own, higher with a gap, lower again: another history of the fleet.
        (4, web_of_fleet(), &[4][..]),
        (7, weight(2), &[4, 7]),
        (8, weight(3), &[4, 7, 8]),
        (2, weight(4), &[2]),
    ] {
        let applied = daemon.put(shared(number, &text)).await.unwrap();
        assert_eq!(applied.generation, number);
        assert!(!applied.changes.is_empty());
        for _ in 0..2 {
            assert_eq!(daemon.in_force().await, (number, parse(&text)));
            let (numbers, who, why) = daemon.generations().await;
            assert_eq!((&*numbers, who), (expected, format!("uid {number}")));
            assert_eq!(why, format!("reason {number}"));
            daemon.restart().await;
        }
    }
    let gone = daemon.running.commands.generation(4).await.unwrap().unwrap_err();
    assert!(matches!(gone, Refusal::BeforeFleet(4)), "{gone}");
    let gone = daemon.running.commands.generation(7).await.unwrap().unwrap_err();
    assert!(matches!(gone, Refusal::NoGeneration(7)), "{gone}");
    let given = Apply { reason: Reason::new("ticket 7").unwrap(), ..shared(3, &weight(5)) };
    daemon.put(given).await.unwrap();
    assert_eq!(daemon.generations().await.2, "ticket 7");
    // It leaves, and goes on after its own.
    assert_eq!(daemon.apply(&weight(6)).await.unwrap().generation, 7);
    assert_eq!(daemon.generations().await.0, [1, 2, 3, 4, 5, 6, 7]);
    let own = daemon.running.commands.generation(4).await.unwrap().unwrap();
    assert_eq!(*own, parse(&web("slots = 31", "slots = 37")));
}

/// Packets see nothing of it, and the number follows.
#[tokio::test]
async fn an_equal_configuration_gets_the_number_of_the_fleet() {
    let mut daemon = Daemon::new();
    daemon.apply(&web_of_fleet()).await.unwrap();
    daemon.apply(&weight(2)).await.unwrap();
    let published = daemon.path.content().applied;
    for (number, expected) in [(2, &[2][..]), (2, &[2]), (5, &[2, 5]), (6, &[2, 5, 6]), (1, &[1])] {
        let applied = daemon.put(shared(number, &weight(2))).await.unwrap();
        assert_eq!(
            (applied.generation, &*applied.changes, applied.memory),
            (number, &[][..], None)
        );
        assert_eq!(daemon.path.content().applied, published);
        let directory = lb_maps::directory::Directory::read(daemon.directory.path()).unwrap();
        assert_eq!(directory.generation, number);
        let (numbers, who, _) = daemon.generations().await;
        assert_eq!((&*numbers, who), (expected, format!("uid {number}")));
        assert_eq!(daemon.status().await.generation, number);
        let entry = daemon.running.commands.generations().await.unwrap().pop().unwrap();
        assert_eq!(entry.changes, Some(0));
    }
    daemon.restart().await;
    assert_eq!(daemon.in_force().await, (1, parse(&weight(2))));
    let watched = daemon.running.commands.watch(None).await.unwrap().unwrap();
    let mut events = watched.events;
    daemon.put(shared(3, &weight(2))).await.unwrap();
    let event = loop {
        if let Event::Generation(applied) = &*events.recv().await.unwrap() {
            break applied.clone();
        }
    };
    assert_eq!((event.generation, event.changes.len()), (3, 0));
}

/// The maps may still have what an earlier daemon put there.
#[tokio::test]
async fn an_empty_configuration_of_a_fleet_is_put_in_force_too() {
    let first = Daemon::new();
    first.apply(WEB).await.unwrap();
    let mut lost = Daemon::with(tempfile::tempdir().unwrap(), first.path.clone());
    assert_ne!(lost.path.content().plan, Plan::default());
    let applied = lost.put(shared(7, KEY)).await.unwrap();
    assert_eq!((applied.generation, lost.generations().await.0), (7, vec![7]));
    assert_eq!(lost.path.content().plan, Plan::default());
    lost.restart().await;
    assert_eq!(lost.in_force().await.0, 7);
}

#[tokio::test]
async fn an_expected_generation_and_the_audit_log_have_the_fleets_numbers() {
    #[derive(Debug)]
    struct Record(std::sync::mpsc::Sender<(u64, u64)>);
    impl ChangeRecord for Record {
        fn changed(self: Box<Self>, before: u64, applied: &Applied, _: Option<String>) {
            self.0.send((before, applied.generation)).unwrap();
        }
        fn finished(self: Box<Self>, _: &Result<Applied, Refusal>) {}
    }
    let daemon = Daemon::new();
    let (records_tx, records) = std::sync::mpsc::channel();
    for (number, text) in [(9, weight(1)), (4, weight(2)), (6, weight(2))] {
        let record = Box::new(Record(records_tx.clone()));
        daemon.running.commands.apply(shared(number, &text), Some(record)).await.unwrap().unwrap();
    }
    assert_eq!(records.try_iter().collect::<Vec<_>>(), [(0, 9), (9, 4), (4, 6)]);
    let expecting =
        |expected| Apply { expected_generation: Some(expected), ..shared(7, &weight(3)) };
    let refused = daemon.put(expecting(9)).await.unwrap_err();
    assert!(matches!(refused, Refusal::Conflict { expected: 9, current: 6 }), "{refused}");
    assert_eq!(daemon.put(expecting(6)).await.unwrap().generation, 7);
    let refused = daemon.put(shared(0, &weight(1))).await.unwrap_err();
    assert!(matches!(refused, Refusal::NoGeneration(0)), "{refused}");
}

/// The daemon was killed between the store and the maps.
#[tokio::test]
async fn a_restart_puts_the_stored_generation_of_the_fleet_in_the_maps() {
    for (number, text) in [(1, weight(9)), (2, weight(9)), (7, weight(9)), (7, web_of_fleet())] {
        let mut daemon = Daemon::new();
        daemon.apply(&web_of_fleet()).await.unwrap();
        daemon.apply(&weight(2)).await.unwrap();
        daemon.apply(&web_of_fleet()).await.unwrap();
        let before = daemon.path.content().plan.clone();
        daemon.put(shared(number, &text)).await.unwrap();
        let after = daemon.path.content().plan.clone();
        daemon.restart_after(|path| path.content().plan = before).await;
        assert_eq!(daemon.path.content().plan, after);
        assert_eq!(daemon.in_force().await, (number, parse(&text)));
        assert_eq!(daemon.generations().await.0, [number]);
    }
}

/// The answer says so, and the number is in force nevertheless.
#[tokio::test]
async fn a_packet_path_that_is_behind_is_retried_with_the_next_number() {
    let daemon = Daemon::new();
    daemon.apply(&web_of_fleet()).await.unwrap();
    daemon.path.content().failures = usize::MAX;
    let behind = daemon.put(shared(5, &weight(2))).await.unwrap_err();
    assert!(matches!(behind, Refusal::Behind { generation: 5, .. }), "{behind}");
    let behind = daemon.put(shared(6, &weight(2))).await.unwrap_err();
    assert!(matches!(behind, Refusal::Behind { generation: 6, .. }), "{behind}");
    daemon.path.content().failures = 0;
    assert_eq!(daemon.put(shared(7, &weight(2))).await.unwrap().generation, 7);
    assert_eq!((daemon.status().await.behind, daemon.generations().await.0), (None, vec![5, 6, 7]));
}

#[tokio::test]
async fn a_full_disk_keeps_the_number_and_the_history() {
    let (daemon, disk) = Daemon::with_disk();
    daemon.apply(&web_of_fleet()).await.unwrap();
    daemon.apply(&weight(2)).await.unwrap();
    disk.set(lb_fake::test_disk::Answer::IsFull);
    for text in [weight(2), weight(3)] {
        let refused = daemon.put(shared(1, &text)).await.unwrap_err();
        assert!(matches!(refused, Refusal::Store(_)), "{refused}");
        assert_eq!(daemon.in_force().await, (2, parse(&weight(2))));
        assert_eq!(daemon.generations().await.0, [1, 2]);
    }
    disk.set(lb_fake::test_disk::Answer::Writes);
    daemon.put(shared(1, &weight(2))).await.unwrap();
    assert_eq!((daemon.in_force().await.0, daemon.generations().await.0), (1, vec![1]));
}

#[tokio::test]
async fn a_member_refuses_what_is_not_of_its_fleet() {
    let daemon = Daemon::new();
    daemon.put(shared(3, &web_of_fleet())).await.unwrap();
    daemon.running.fleet.membership.set(true);
    let file = Actor::File("/etc/web.toml".into());
    for actor in [Actor::user(0), file] {
        // Also without a difference, because its reply would promise that it stays.
        for text in [web_of_fleet(), weight(2)] {
            let apply =
                Apply { configuration: request(&text), actor: actor.clone(), ..Apply::default() };
            let refused = daemon.put(apply.clone()).await.unwrap_err();
            assert!(matches!(refused, Refusal::Member), "{refused}");
            let dry = daemon.put(Apply { dry_run: true, ..apply }).await.unwrap();
            assert_eq!(dry.generation, 3);
        }
    }
    assert_eq!(daemon.in_force().await, (3, parse(&web_of_fleet())));
    assert_eq!(daemon.put(shared(4, &weight(2))).await.unwrap().generation, 4);
    daemon.running.fleet.membership.set(false);
    assert_eq!(daemon.apply(&weight(3)).await.unwrap().generation, 5);
}

/// Several balancers need all slots and the key, which the document of a fleet has.
#[tokio::test]
async fn a_fleet_needs_a_hash_key_and_no_number_of_balancers() {
    let daemon = Daemon::new();
    let refused = daemon.put(shared(1, WEB)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "hash_key: the balancers of a fleet need one key to choose the same backends, and none is set"
    );
    let several = format!("balancers = 4\n{}", web_of_fleet());
    assert_eq!(daemon.put(shared(1, &several)).await.unwrap().generation, 1);
    // Its own key, as it founds the fleet, stays in the configuration, so that all store the same.
    let own = Daemon::new();
    own.apply(WEB).await.unwrap();
    let exported = own.in_force().await.1;
    let apply = Apply { configuration: exported.clone().into(), ..shared(5, KEY) };
    own.put(apply).await.unwrap();
    let generation = own.running.commands.generation(5).await.unwrap().unwrap();
    assert_eq!(*generation, exported);
}

/// A dry run hands back what the fleet is to commit. Nothing of it stays.
#[tokio::test]
async fn a_dry_run_settles_slots_and_hash_key_and_leaves_nothing() {
    let open = WEB.replace("slots = 31", "");
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.running.fleet.membership.set(true);
    let (own, plan) = (daemon.in_force().await.1.hash_key, daemon.path.content().plan.clone());
    let dry = |text: &str| Apply { dry_run: true, keep_hash_key: true, ..shared(2, text) };
    let applied = daemon.put(dry(&open)).await.unwrap();
    let resolved = applied.resolved.unwrap();
    assert_eq!((applied.generation, resolved.hash_key), (1, own));
    assert_eq!(resolved.pools[&name("web")].slots, 31, "it keeps its number");
    let movements: &[_] = &[];
    assert_eq!(applied.movements, movements, "the key is the one in use");
    let several = daemon.put(dry(&format!("balancers = 2\n{open}"))).await.unwrap();
    assert_eq!(several.resolved.unwrap().pools[&name("web")].slots, 31);

    assert_eq!(daemon.path.content().plan, plan);
    assert_eq!(daemon.generations().await.0, [1]);
    daemon.stop().await;
    let store = Store::open(daemon.directory.path()).unwrap();
    let stored = store.generation().unwrap();
    assert_eq!((stored.number, stored.configuration.hash_key), (1, None));
    drop(store);

    // What a balancer commits is what all put in force.
    daemon.running = Running::start(&daemon.directory, &daemon.path);
    let shared_bytes = encode_shared(&resolved).unwrap().parts.concat();
    let other = Daemon::new();
    for daemon in [&daemon, &other] {
        let configuration = decode_shared(&shared_bytes).unwrap().into();
        daemon.put(Apply { configuration, ..shared(2, KEY) }).await.unwrap();
        assert_eq!(daemon.in_force().await, (2, (*resolved).clone()));
    }
    assert_eq!(daemon.status().await.checksum, other.status().await.checksum);
    // From here on it is the configuration's key that stays, also at a balancer with another one.
    for text in [&open, &open.replace("port = 80\n    protocol", "port = 81\n    protocol")] {
        let applied = other.put(dry(text)).await.unwrap();
        let resolved = applied.resolved.unwrap();
        assert_eq!(resolved.hash_key, own);
        assert_eq!(applied.changes.is_empty(), text == &open, "{:?}", applied.changes);
    }
    let given = other.put(dry(&web_of_fleet())).await.unwrap().resolved.unwrap();
    assert_ne!(given.hash_key, own, "the one that is given counts");
    assert_eq!(other.put(shared(3, &web_of_fleet())).await.unwrap().resolved, None);
}

/// The fleet's configuration replaces what this version cannot use, and its history.
#[tokio::test]
async fn an_unusable_generation_is_replaced_by_the_fleets() {
    let mut daemon = Daemon::new();
    daemon.put(shared(8, &web_of_fleet())).await.unwrap();
    daemon.stop().await;
    let key = parse(&web_of_fleet()).hash_key;
    let mut store = Store::open(daemon.directory.path()).unwrap();
    let mut stored = store.generation().unwrap().clone();
    Arc::make_mut(&mut stored.configuration).pool_mut(&name("web")).unwrap().settle_time =
        Duration::ZERO;
    store.commit(Generation { ..stored }).await.unwrap();
    drop(store);
    daemon.running = Running::start(&daemon.directory, &daemon.path);
    assert!(daemon.running.commands.export().await.unwrap().unusable.is_some());
    let dry = Apply { dry_run: true, keep_hash_key: true, ..shared(9, WEB) };
    let resolved = daemon.put(dry).await.unwrap().resolved.unwrap();
    assert_eq!(resolved.hash_key, key, "the one that packets are hashed with");
    let applied = daemon.put(shared(9, &web_of_fleet())).await.unwrap();
    assert!(applied.movements_unknown);
    assert_eq!(daemon.generations().await.0, [8, 9]);
    daemon.restart().await;
    assert_eq!(daemon.in_force().await, (9, parse(&web_of_fleet())));
}
