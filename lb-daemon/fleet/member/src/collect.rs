//! Removes what etcd keeps of old generations.

use std::{sync::Arc, time::Duration};

use lb_fleet::collect::{Collected, Collector, GRACE};
use tokio::time::sleep;

use super::{Member, wall_clock};

/// How long after the start a balancer looks for the first time, on average.
const FIRST: Duration = Duration::from_secs(20);

/// How often it looks, on average: after the time that generations are kept, within these bounds. Every balancer does, and finds
/// little if another one did before.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// How long it waits if a commit came in between: where changes never end, it gets a little further each time.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// Goes on for ever.
pub(super) async fn remove_old_generations(member: Arc<Member>) {
    let mut collector = Collector::new(GRACE);
    let mut wait = FIRST;
    loop {
        sleep(wait.mul_f64(0.5 + fastrand::f64())).await;
        wait = LONGEST;
        let fleet = member.etcd().fleet.borrow().clone();
        let Some((fleet, snapshot)) = fleet.zip(member.view().snapshot) else { continue };
        if member.check_lineage(&snapshot).is_err() {
            continue;
        }
        match collector.collect(&fleet, wall_clock::now()).await {
            Ok(Collected { generations, pieces, homes, is_interrupted, .. }) => {
                let pause = collector.kept_for().clamp(SHORTEST, LONGEST);
                wait = if is_interrupted { INTERRUPTED } else { pause };
                if generations + pieces + homes > 0 {
                    tracing::info!(
                        generations,
                        pieces,
                        homes,
                        "old generations are removed from etcd"
                    );
                }
            }
            Err(error) => tracing::debug!("old generations stay in etcd: {error}"),
        }
    }
}
