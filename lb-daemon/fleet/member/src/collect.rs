//! Removes what etcd keeps of old generations.

use std::{sync::Arc, time::Duration};

use lb_fleet::collect::{Collected, Collector, GRACE};
use tokio::time::sleep;

use super::{Member, wall_clock};

/// How long after the start a balancer looks for the first time, on average: its clock is compared with those of others by then.
const FIRST: Duration = Duration::from_secs(60);

/// How often it looks, on average: after the time that generations are kept, within these bounds. Every balancer does, and finds
/// little if another one did before.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

/// How long it waits if a commit came in between, and twice as long each time that this happens in a row.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// Goes on for ever.
pub(super) async fn remove_old_generations(member: Arc<Member>) {
    let mut collector = Collector::new(GRACE);
    let (mut wait, mut interrupted) = (FIRST, INTERRUPTED);
    loop {
        sleep(wait.mul_f64(0.5 + fastrand::f64())).await;
        wait = SHORTEST;
        let fleet = member.etcd().fleet.borrow().clone();
        let Some((fleet, snapshot)) = fleet.zip(member.view().snapshot) else { continue };
        // A clock that is ahead would remove generations that are needed yet.
        let is_believed = member.clock_problem().is_none() && member.has_compared_clock(&snapshot);
        if !is_believed || member.check_lineage(&snapshot).is_err() {
            continue;
        }
        match collector.collect(&fleet, wall_clock::now()).await {
            Ok(Collected { generations, pieces, homes, is_interrupted, .. }) => {
                wait = collector.kept_for().clamp(SHORTEST, LONGEST);
                if is_interrupted {
                    wait = wait.min(interrupted);
                    interrupted = LONGEST.min(interrupted * 2);
                } else {
                    interrupted = INTERRUPTED;
                }
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
