//! The history, rollbacks, and differences between generations.

use super::*;
use crate::command::{Actor, Difference};
use lb_config::Reason;
use lb_fake::test_disk::Answer;
use lb_model::{ObjectReference, diff::Kind};
use lb_store::HistoryEntry;

impl Daemon {
    async fn history(&self) -> Vec<HistoryEntry> {
        self.running.commands.generations().await.unwrap()
    }

    async fn numbers(&self) -> Vec<u64> {
        self.history().await.iter().map(|entry| entry.number).collect()
    }

    async fn configuration(&self) -> Configuration {
        self.running.commands.export().await.unwrap().configuration
    }

    /// As the API does it.
    async fn rollback(&self, number: u64, how: Apply) -> Result<Applied, Refusal> {
        let commands = &self.running.commands;
        let configuration = (*commands.generation(number).await.unwrap()?).clone().into();
        let apply = Apply { configuration, rollback_to: Some(number), ..how };
        commands.apply(apply, None).await.unwrap()
    }

    async fn difference(&self, from: u64, to: Option<u64>) -> Result<Difference, Refusal> {
        self.running.commands.difference(from, to).await.unwrap()
    }
}

fn weight(weight: u32) -> String {
    let address = "address = \"10.0.0.1\"\n";
    web(address, &format!("{address}weight = {weight}\n"))
}

fn drained() -> String {
    let address = "address = \"10.0.0.1\"\n";
    web(address, &format!("{address}admin_state = \"drain\"\n"))
}

fn because(text: &str) -> Apply {
    Apply { reason: Reason::new(text).unwrap(), ..Apply::default() }
}

#[tokio::test]
async fn the_history_says_who_changed_what_and_why() {
    let mut daemon = Daemon::new();
    assert_eq!(daemon.history().await, []);
    let (user, file) = (Actor::user(7), Actor::File("/etc/web.toml".into()));
    let certificate = Actor::Certificate("ci.example".into());
    for (text, actor, reason) in [
        (WEB.to_owned(), file, ""),
        (weight(2), user.clone(), "ticket 7"),
        (weight(3), certificate, ""),
    ] {
        let request_text = "update of pool \"web\"".to_owned();
        let apply = Apply {
            configuration: request(&text),
            actor,
            request: request_text,
            ..because(reason)
        };
        daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
    }
    for (number, reason) in [(1, ""), (2, "slow")] {
        let how = Apply { actor: user.clone(), ..because(reason) };
        daemon.rollback(number, how).await.unwrap();
    }
    let expected = [
        (1, "file /etc/web.toml", "configuration file /etc/web.toml", Some(4)),
        (2, "uid 7", "ticket 7", Some(2)),
        (3, "certificate ci.example", "update of pool \"web\"", Some(2)),
        (4, "uid 7", "rollback to generation 1", Some(2)),
        (5, "uid 7", "rollback to generation 2: slow", Some(2)),
    ];
    for _ in 0..2 {
        let history = daemon.history().await;
        let found = history.iter().map(|it| (it.number, &*it.who, &*it.why, it.changes));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(history.iter().all(|it| it.unusable.is_none()));
        let times: Vec<_> = history.iter().map(|it| it.applied_at.unwrap()).collect();
        assert!(times.is_sorted());
        daemon.restart().await;
    }
}

#[tokio::test]
async fn a_rollback_is_a_new_generation_with_exactly_that_configuration() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let first = daemon.configuration().await;
    // Slots, which a pool keeps if an apply leaves them open, and the hash key.
    let others =
        format!("hash_key = \"{:032}\"\n{}", 7, weight(5).replace("slots = 31", "slots = 37"));
    daemon.apply(&others).await.unwrap();
    let second = daemon.configuration().await;
    assert_ne!(first, second);
    let dry = daemon.rollback(1, Apply { dry_run: true, ..Apply::default() }).await.unwrap();
    assert_eq!((dry.generation, daemon.configuration().await), (2, second.clone()));
    daemon.restart().await;
    let applied = daemon.rollback(1, Apply::default()).await.unwrap();
    assert_eq!(applied.generation, 3);
    assert_eq!((&applied.changes, &applied.movements), (&dry.changes, &dry.movements));
    let objects: Vec<_> = applied.changes.iter().map(|change| change.object.to_string()).collect();
    assert_eq!(objects, ["pool web", "pool web: backend 10.0.0.1", "hash key"]);
    assert_eq!(daemon.configuration().await, first);
    daemon.restart().await;
    assert_eq!(daemon.configuration().await, first);
    assert_eq!(daemon.rollback(2, Apply::default()).await.unwrap().generation, 4);
    assert_eq!(daemon.configuration().await, second);
    assert_eq!(daemon.numbers().await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_rollback_to_the_generation_in_force_changes_nothing() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.apply(&weight(2)).await.unwrap();
    let applied = daemon.rollback(2, because("again")).await.unwrap();
    assert_eq!((applied.generation, applied.changes.len()), (2, 0));
    assert_eq!(daemon.numbers().await, [1, 2]);
    // Another generation with the same configuration is none either.
    daemon.apply(WEB).await.unwrap();
    let applied = daemon.rollback(1, Apply::default()).await.unwrap();
    assert_eq!((applied.generation, applied.changes.len()), (3, 0));
}

#[tokio::test]
async fn a_generation_that_is_not_kept_is_refused() {
    let daemon = Daemon::new();
    for number in 1..=22 {
        daemon.apply(&weight(number)).await.unwrap();
    }
    assert_eq!(daemon.numbers().await, (3..=22).collect::<Vec<_>>());
    for number in [0, 1, 2, 23, u64::MAX] {
        let refused = daemon.rollback(number, Apply::default()).await.unwrap_err();
        assert!(matches!(refused, Refusal::NoGeneration(of) if of == number), "{refused}");
        let expected =
            format!("generation {number} is not in the history, which has the last 20 generations");
        assert_eq!(refused.to_string(), expected);
        for (from, to) in [(number, None), (22, Some(number))] {
            let refused = daemon.difference(from, to).await.unwrap_err();
            assert!(matches!(refused, Refusal::NoGeneration(of) if of == number), "{refused}");
        }
    }
    assert_eq!(daemon.rollback(3, Apply::default()).await.unwrap().generation, 23);
}

#[tokio::test]
async fn of_two_rollbacks_on_top_of_one_generation_one_is_refused() {
    let daemon = Daemon::new();
    for number in 1..=3 {
        daemon.apply(&weight(number)).await.unwrap();
    }
    let on_top = || Apply { expected_generation: Some(3), ..Apply::default() };
    let (one, other) = tokio::join!(daemon.rollback(1, on_top()), daemon.rollback(2, on_top()));
    let mut results = [one, other];
    results.sort_by_key(Result::is_err);
    let [Ok(applied), Err(refused)] = &results else { panic!("{results:?}") };
    assert_eq!(applied.generation, 4);
    assert!(matches!(refused, Refusal::Conflict { expected: 3, current: 4 }), "{refused}");
    assert_eq!(daemon.numbers().await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_rollback_of_what_a_file_says_is_warned_about() {
    let daemon = Daemon::new();
    let path = daemon.directory.path().join("web.toml");
    daemon.apply(WEB).await.unwrap();
    std::fs::write(&path, weight(2)).unwrap();
    let apply = Apply {
        configuration: request(&weight(2)),
        actor: Actor::File(path.clone()),
        ..Apply::default()
    };
    daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
    daemon.running.followed.set(Some(path.clone()));
    let warning = format!(
        "the daemon reads {} at its next start or reload, which reverts this change: change the file too",
        path.display()
    );
    let dry = Apply { dry_run: true, ..Apply::default() };
    for how in [dry, Apply::default()] {
        let applied = daemon.rollback(1, how).await.unwrap();
        assert_eq!(applied.warnings, std::slice::from_ref(&warning));
    }
    let back = daemon.rollback(2, Apply::default()).await.unwrap();
    assert_eq!(back.warnings, [""; 0], "that is what the file says");
}

#[tokio::test(start_paused = true)]
async fn on_a_full_disk_a_rollback_is_refused_as_an_apply() {
    let (daemon, disk) = Daemon::with_disk();
    for text in [weight(2), WEB.to_owned(), drained()] {
        daemon.apply(&text).await.unwrap();
    }
    disk.set(Answer::IsFull);
    let refused = daemon.rollback(1, Apply::default()).await;
    assert!(matches!(refused, Err(Refusal::Store(_))), "{refused:?}");
    assert_eq!(daemon.numbers().await, [1, 2, 3]);
    // What is in force can be rolled back to without the disk.
    assert_eq!(daemon.rollback(3, Apply::default()).await.unwrap().generation, 3);
    disk.set(Answer::Writes);
    assert_eq!(daemon.rollback(2, Apply::default()).await.unwrap().generation, 4);
    assert_eq!(daemon.numbers().await, [1, 2, 3, 4]);
}

/// An old configuration is the way out of one that cannot be used.
#[tokio::test]
async fn an_unusable_generation_is_in_the_history_and_can_be_rolled_back_from() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let first = daemon.configuration().await;
    daemon.apply(&weight(2)).await.unwrap();
    daemon.stop().await;
    lb_fake::stored::rewrite(daemon.directory.path(), |_, configuration, _| {
        configuration.regions[0].overflow_to.push("nowhere".into());
    })
    .unwrap();
    daemon.running = Running::start(&daemon.directory, &daemon.path);
    daemon.running.begun().await;
    let history = daemon.history().await;
    let cause = history[1].unusable.as_deref().unwrap();
    assert!(cause.starts_with("this version refuses it: regions[0] \"eu\""), "{cause}");
    assert_eq!(history[0].unusable, None);
    for refused in [
        daemon.rollback(2, Apply::default()).await.unwrap_err(),
        daemon.difference(1, None).await.unwrap_err(),
    ] {
        let expected = format!("generation 2 cannot be used: {cause}");
        assert_eq!(refused.to_string(), expected);
    }
    let applied = daemon.rollback(1, Apply::default()).await.unwrap();
    assert_eq!((applied.generation, daemon.configuration().await), (3, first));
    // It is refused once it is read.
    let refused = daemon.rollback(2, Apply::default()).await.unwrap_err();
    assert!(matches!(refused, Refusal::UnusableGeneration { number: 2, .. }), "{refused}");
    assert_eq!(daemon.numbers().await, [1, 2, 3]);
}

#[tokio::test]
async fn two_generations_are_compared_as_a_dry_run_does() {
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let dry = Apply { configuration: request(&weight(2)), dry_run: true, ..Apply::default() };
    let expected = daemon.running.commands.apply(dry, None).await.unwrap().unwrap();
    daemon.apply(&weight(2)).await.unwrap();
    let removed = weight(2).replace("address = \"10.0.0.2\"", "address = \"10.0.0.3\"");
    daemon.apply(&removed).await.unwrap();
    let difference = daemon.difference(1, Some(2)).await.unwrap();
    let Applied { changes, movements, .. } = expected;
    assert!(!movements.is_empty());
    assert_eq!(difference, Difference { from: 1, to: 2, changes, movements });
    let Difference { from, to, changes, .. } = daemon.difference(2, None).await.unwrap();
    assert_eq!((from, to), (2, 3));
    let backends =
        changes.iter().filter(|change| matches!(change.object, ObjectReference::Backend { .. }));
    let backends: Vec<_> =
        backends.map(|change| (change.kind, change.object.to_string())).collect();
    let [removed, added] = ["2", "3"].map(|last| format!("pool web: backend 10.0.0.{last}"));
    assert_eq!(backends, [(Kind::Removed, removed), (Kind::Added, added)]);
    // The way back.
    let back = daemon.difference(3, Some(2)).await.unwrap();
    assert_eq!(back.changes.len(), changes.len());
    let same = daemon.difference(2, Some(2)).await.unwrap();
    assert_eq!((same.changes.len(), same.movements.len()), (0, 0));
}
