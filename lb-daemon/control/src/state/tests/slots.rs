//! Slots of pools: chosen once, kept by the generation, changed only on request.

use super::*;

/// Pool `web` with as many backends, and `fields`.
fn pool(backends: u32, fields: &str) -> String {
    let mut text = format!("[[region]]\nname = \"eu\"\n[[pool]]\nname = \"web\"\n{fields}\n");
    for number in 1..=backends {
        text += &format!(
            "[[pool.backend]]\naddress = \"10.0.{}.{}\"\nregion = \"eu\"\n",
            number / 200,
            number % 200 + 1
        );
    }
    text + "[[service]]\nname = \"web\"\naddress = \"192.0.2.1\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"\n"
}

impl Daemon {
    /// In force, in the store's words, and in the plan that the packet path has.
    async fn slots(&self) -> [u32; 2] {
        let exported = self.running.commands.export().await.unwrap();
        let content = self.path.content();
        let planned =
            content.plan.pools.values().flat_map(|pool| &pool.groups).map(|group| group.slots);
        let planned: BTreeSet<u32> = planned.collect();
        assert_eq!(planned.len(), 1, "one size of table");
        [exported.configuration.pools[&name("web")].slots, *planned.first().unwrap()]
    }

    async fn outgrown(&self) -> Vec<(String, String)> {
        let conditions = self.status().await.conditions.into_iter();
        let conditions = conditions.filter(|condition| condition.subject.starts_with("slots of "));
        conditions.map(|condition| (condition.subject, condition.cause)).collect()
    }
}

#[tokio::test]
async fn a_new_pool_gets_slots_by_need_and_keeps_them() {
    let mut daemon = Daemon::new();
    daemon.apply(&pool(3, "")).await.unwrap();
    assert_eq!(daemon.slots().await, [1_009; 2]);

    // The same file again is no change, and neither is another way to say the same.
    for fields in ["", "slots = 0", "slots = 1009"] {
        let applied = daemon.apply(&pool(3, fields)).await.unwrap();
        assert_eq!((applied.generation, &*applied.changes), (1, &[][..]), "{fields}");
    }
    let dry = Apply { configuration: request(&pool(3, "")), dry_run: true, ..Apply::default() };
    let dry = daemon.running.commands.apply(dry, None).await.unwrap().unwrap();
    assert_eq!((dry.changes, dry.memory), (vec![], None));

    // A new daemon would choose 16381 for these.
    daemon.apply(&pool(60, "")).await.unwrap();
    assert_eq!(daemon.slots().await, [1_009; 2]);
    daemon.restart().await;
    assert_eq!(daemon.slots().await, [1_009; 2]);
    let applied = daemon.apply(&pool(60, "")).await.unwrap();
    assert_eq!((applied.generation, &*applied.changes), (2, &[][..]));
    assert_eq!(daemon.slots().await, [1_009; 2]);

    let other = Daemon::new();
    other.apply(&pool(60, "")).await.unwrap();
    assert_eq!(other.slots().await, [16_381; 2]);
    // What one exports the other takes over.
    let exported = daemon.running.commands.export().await.unwrap().configuration;
    let apply = Apply { configuration: exported.into(), ..Apply::default() };
    other.running.commands.apply(apply, None).await.unwrap().unwrap();
    assert_eq!(other.slots().await, [1_009; 2]);
}

#[tokio::test]
async fn slots_change_on_request_and_what_moves_is_told() {
    let daemon = Daemon::new();
    daemon.apply(&pool(60, "slots = 1009")).await.unwrap();
    let dry =
        Apply { configuration: request(&pool(60, "slots = 0")), dry_run: true, ..Apply::default() };
    let dry = daemon.running.commands.apply(dry, None).await.unwrap().unwrap();
    assert_eq!(dry.changes.len(), 1);
    let fields: Vec<_> = dry.changes[0].fields.iter().map(ToString::to_string).collect();
    assert_eq!(fields, ["slots: 1009 -> 16381"]);
    assert_eq!(dry.changes[0].slots_moved, 16_381);
    let [moved] = &*dry.movements else { panic!("{:?}", dry.movements) };
    let web = lb_model::ObjectReference::Pool(name("web"));
    assert_eq!((&moved.object, moved.effect), (&web, lb_model::diff::Effect::Settle));
    // Of two unrelated tables of sixty backends, one in sixty places has the same.
    assert!((0.9..1.0).contains(&moved.share), "{}", moved.share);
    assert_eq!(daemon.slots().await, [1_009; 2]);

    let applied = daemon.apply(&pool(60, "slots = 0")).await.unwrap();
    assert_eq!(applied.changes, dry.changes);
    assert_eq!(daemon.slots().await, [16_381; 2]);
    daemon.apply(&pool(60, "slots = 4093")).await.unwrap();
    assert_eq!(daemon.slots().await, [4_093; 2]);
    daemon.apply(&pool(60, "")).await.unwrap();
    assert_eq!(daemon.slots().await, [4_093; 2]);
}

#[tokio::test]
async fn a_pool_that_outgrew_its_slots_is_a_condition() {
    let mut daemon = Daemon::new();
    daemon.apply(&pool(10, "")).await.unwrap();
    assert_eq!(daemon.outgrown().await, []);
    let condition = |slots: u32, least: u32, choice: u32| {
        let cause = format!(
            "of {slots} slots the backend with the least weight in region eu has {least}, and fewer than 100 spread \
             connections unevenly; slots = {choice}, or slots = 0 to have a number chosen, moves homes of connections, \
             and open ones stay for the settle time"
        );
        [("slots of pool web".to_owned(), cause)]
    };
    daemon.apply(&pool(11, "")).await.unwrap();
    assert_eq!(daemon.outgrown().await, condition(1_009, 91, 4_093));
    daemon.apply(&pool(60, "")).await.unwrap();
    assert_eq!(daemon.outgrown().await, condition(1_009, 16, 16_381));
    assert_eq!(daemon.slots().await, [1_009; 2]);
    daemon.restart().await;
    assert_eq!(daemon.outgrown().await, condition(1_009, 16, 16_381));
    daemon.apply(&pool(60, "slots = 0")).await.unwrap();
    assert_eq!(daemon.outgrown().await, []);
    daemon.apply(&pool(60, "slots = 4093")).await.unwrap();
    assert_eq!(daemon.outgrown().await, condition(4_093, 68, 16_381));
    // A pool that is gone has no condition.
    daemon.force("[[region]]\nname = \"eu\"").await.unwrap();
    assert_eq!(daemon.outgrown().await, []);
}

/// Pool `web` with backends of these weights.
fn weighted(weights: &[u32], fields: &str) -> String {
    let mut text = pool(weights.len() as u32, fields);
    for (number, weight) in weights.iter().enumerate() {
        let address = format!("address = \"10.0.0.{}\"\n", number + 2);
        text = text.replace(&address, &format!("{address}weight = {weight}\n"));
    }
    text
}

#[tokio::test]
async fn a_weight_too_small_for_a_slot_is_warned_of_and_stays_a_condition() {
    let mut daemon = Daemon::new();
    let far = weighted(&[1_000_000, 30, 1], "");
    let without = "of 65537 slots 1 backend with a weight has none, so it takes new connections only in place of \
                   others: 10.0.0.4 in region eu (weight 1 of 1000031); use weights that are closer together";
    let warning = format!("pool web: {without}");
    let cause = format!(
        "{without}; a change moves homes of connections, and open ones stay for the settle time"
    );
    let condition = [("slots of pool web".to_owned(), cause)];

    let dry = Apply { configuration: request(&far), dry_run: true, ..Apply::default() };
    let dry = daemon.running.commands.apply(dry, None).await.unwrap().unwrap();
    assert_eq!(dry.warnings, [&*warning]);
    assert_eq!(daemon.outgrown().await, []);
    assert_eq!(daemon.apply(&far).await.unwrap().warnings, [&*warning]);
    assert_eq!(daemon.slots().await, [65_537; 2]);
    assert_eq!(daemon.outgrown().await, condition);
    daemon.restart().await;
    assert_eq!(daemon.outgrown().await, condition);

    // It is not repeated when something else changes.
    let settled = weighted(&[1_000_000, 30, 1], "settle_time = \"99s\"");
    assert_eq!(daemon.apply(&settled).await.unwrap().warnings, [""; 0]);
    assert_eq!(daemon.outgrown().await, condition);
    let nearer = weighted(&[10_000, 30, 1], "");
    assert_eq!(daemon.apply(&nearer).await.unwrap().warnings, [""; 0]);
    assert_eq!(daemon.outgrown().await, [], "65537 / 10031 is 6 slots");
    // With fewer slots too few for a slot each is worse than too few for even shares.
    let small = daemon.apply(&weighted(&[10_000, 30, 1], "slots = 1009")).await.unwrap();
    let hint = "use weights that are closer together, or slots = 65537";
    let [warning] = &*small.warnings else { panic!("{:?}", small.warnings) };
    assert!(warning.text.contains("10.0.0.4") && warning.text.ends_with(hint), "{warning:?}");
    assert!(daemon.outgrown().await[0].1.contains(hint));
}

#[tokio::test]
async fn with_too_many_backends_for_its_slots_a_pool_is_refused() {
    let daemon = Daemon::new();
    daemon.apply(&pool(3, "slots = 7")).await.unwrap();
    let refused = daemon.apply(&pool(7, "")).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "pools[0] \"web\": slots: 7 must be more than the 7 backends in region \"eu\"; set another number, or 0 to \
         have one chosen"
    );
    assert_eq!(daemon.slots().await, [7; 2]);
    daemon.apply(&pool(7, "slots = 0")).await.unwrap();
    assert_eq!(daemon.slots().await, [1_009; 2]);
}

/// Two daemons of one fleet, with the same backends now, and different ones when the pool was created.
#[tokio::test]
async fn balancers_with_different_histories_cannot_have_different_tables() {
    let [old, new] = [Daemon::new(), Daemon::new()];
    old.apply(&pool(3, "")).await.unwrap();
    let shared = "hash_key = \"000102030405060708090a0b0c0d0e0f\"\nbalancers = 2\n";
    let file = |fields: &str| format!("{shared}{}", pool(60, fields));
    for (daemon, slots) in [(&old, 1_009), (&new, 16_381)] {
        for fields in ["", "slots = 0"] {
            let number = if fields.is_empty() { slots } else { 16_381 };
            let refused = daemon.apply(&file(fields)).await.unwrap_err();
            let Refusal::OpenSlots(open) = refused else { panic!("{refused}") };
            let hint = format!("set slots = {number} in pool web, in the configuration of all");
            assert!(open.hint.starts_with(&hint), "{}", open.hint);
        }
    }
    for daemon in [&old, &new] {
        daemon.apply(&file("slots = 16381")).await.unwrap();
        assert_eq!(daemon.slots().await, [16_381; 2]);
    }
    let checksums = [old.status().await.checksum, new.status().await.checksum];
    assert_eq!(checksums[0], checksums[1]);
}

/// The stored numbers count even if the rest cannot be used.
#[tokio::test]
async fn an_unusable_configuration_still_says_which_slots_pools_keep() {
    let mut daemon = Daemon::new();
    daemon.apply(&pool(3, "")).await.unwrap();
    daemon.apply(&pool(60, "")).await.unwrap();
    daemon.stop().await;
    let mut store = Store::open(daemon.directory.path()).unwrap();
    let mut stored = store.generation().unwrap().clone();
    let configuration = Arc::make_mut(&mut stored.configuration);
    let broken = configuration.pool_mut(&name("web")).unwrap();
    broken.settle_time = Duration::ZERO;
    store.commit(stored).await.unwrap();
    drop(store);
    daemon.running = Running::start(&daemon.directory, &daemon.path);
    assert!(daemon.running.commands.export().await.unwrap().unusable.is_some());
    daemon.apply(&pool(60, "")).await.unwrap();
    assert_eq!(daemon.slots().await, [1_009; 2]);
}
