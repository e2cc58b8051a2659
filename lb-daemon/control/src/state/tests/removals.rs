//! Changes that remove too much at once. What counts is tested with the rule itself, in lb-model.

use super::*;
use crate::command::{Warning, WarningReason};
use lb_model::{ObjectReference, removal_guard::Removal};

/// Pool `web` with backends of these last bytes, and the service `web`.
fn web(backends: impl IntoIterator<Item = u8>) -> String {
    let backend =
        |last| format!("[[pool.backend]]\naddress = \"10.0.0.{last}\"\nregion = \"eu\"\n");
    let backends: String = backends.into_iter().map(backend).collect();
    format!(
        "[[region]]\nname = \"eu\"\n[[pool]]\nname = \"web\"\nslots = 31\n{backends}[[service]]\nname = \"web\"\n\
         address = \"192.0.2.1\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"\n"
    )
}

const HALF: &str = "pool web loses 5 of 10 backends, more than 30 %: this needs --force";

impl Daemon {
    async fn put_all(&self, apply: Apply) -> Result<Applied, Refusal> {
        self.running.commands.apply(apply, None).await.unwrap()
    }

    /// How many backends are in force.
    async fn backends(&self) -> usize {
        let exported = self.running.commands.export().await.unwrap();
        exported.configuration.pools.values().map(|pool| pool.backends.len()).sum()
    }
}

#[tokio::test]
async fn a_change_that_removes_too_much_changes_nothing_unless_it_is_forced() {
    let mut daemon = Daemon::new();
    daemon.apply(&web(1..=10)).await.unwrap();
    let refused = daemon.apply(&web(6..=10)).await.unwrap_err();
    assert_eq!(refused.to_string(), HALF);
    assert_eq!(daemon.backends().await, 10);
    assert_eq!(daemon.running.commands.export().await.unwrap().generation, 1);

    // A change without it goes on.
    assert_eq!(daemon.apply(&web(1..=11)).await.unwrap().generation, 2);
    assert_eq!(daemon.apply(&web(1..=10)).await.unwrap().generation, 3);
    let forced = daemon.force(&web(6..=10)).await.unwrap();
    let removed = Removal::Pool { pool: name("web"), removed: 5, backends: 10 };
    assert_eq!((forced.generation, forced.removals), (4, vec![removed]));
    assert_eq!(daemon.backends().await, 5);
    // With force and without need.
    assert_eq!(daemon.force(&web(6..=9)).await.unwrap().removals, []);

    let refused = daemon.apply("# nothing").await.unwrap_err().to_string();
    let all = "the configuration loses all backends, of which it has 4: this needs --force";
    assert_eq!(refused, all);
    // It is measured against what is in force, also after a restart.
    daemon.restart().await;
    assert_eq!(daemon.apply("# nothing").await.unwrap_err().to_string(), all);
    let refused = daemon.apply(&web([])).await.unwrap_err().to_string();
    assert_eq!(refused, all);
    daemon.force("# nothing").await.unwrap();
    assert_eq!(daemon.backends().await, 0);
}

#[tokio::test]
async fn a_dry_run_warns_of_what_needs_force() {
    let daemon = Daemon::new();
    daemon.apply(&web(1..=10)).await.unwrap();
    let dry = |text: &str, force| {
        let (configuration, dry_run) = (request(text), true);
        daemon.put_all(Apply { configuration, dry_run, force, ..Apply::default() })
    };
    let unforced = dry(&web(6..=10), false).await.unwrap();
    let warning = Warning {
        reason: WarningReason::ForceRequired,
        object: Some(ObjectReference::Pool(name("web"))),
        text: HALF.into(),
    };
    assert!(unforced.warnings.contains(&warning), "{:?}", unforced.warnings);
    assert_eq!(unforced.generation, 1);
    let forced = dry(&web(6..=10), true).await.unwrap();
    let reasons: Vec<_> = forced.warnings.iter().map(|warning| warning.reason).collect();
    assert!(!reasons.contains(&WarningReason::ForceRequired), "{reasons:?}");
    assert_eq!(dry(&web(1..=11), false).await.unwrap().removals, []);
}

/// A fleet has decided, where the change was made; whoever plans one for it is told.
#[tokio::test]
async fn what_a_fleet_decided_is_followed_and_what_it_would_decide_is_not() {
    let daemon = Daemon::new();
    let shared = |number, dry_run, backends: std::ops::RangeInclusive<u8>| Apply {
        configuration: request(&web(backends)),
        shared: Some(number),
        keep_hash_key: true,
        dry_run,
        ..Apply::default()
    };
    daemon.put_all(shared(1, false, 1..=10)).await.unwrap();
    let planned = daemon.put_all(shared(2, true, 6..=10)).await.unwrap();
    let removed = Removal::Pool { pool: name("web"), removed: 5, backends: 10 };
    assert_eq!(planned.removals, [removed]);
    let followed = daemon.put_all(shared(2, false, 6..=10)).await.unwrap();
    assert_eq!((followed.generation, followed.removals), (2, vec![]));
    assert_eq!(daemon.backends().await, 5);
}
