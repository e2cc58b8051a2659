//! Removes what etcd keeps of old generations.

use std::{sync::Arc, time::Duration};

use lb_fleet::collect::{Collected, Collector, GRACE};
use tokio::time::sleep;

use super::{Member, wall_clock};

/// How often, on average. Every balancer does it, and finds little if another one did it before.
const INTERVAL: Duration = Duration::from_secs(600);

/// Goes on for ever.
pub(super) async fn remove_old_generations(member: Arc<Member>) {
    let mut collector = Collector::new(GRACE);
    loop {
        sleep(INTERVAL.mul_f64(0.5 + fastrand::f64())).await;
        let fleet = member.etcd().fleet.borrow().clone();
        let Some((fleet, snapshot)) = fleet.zip(member.view().snapshot) else { continue };
        if member.check_lineage(&snapshot).is_err() {
            continue;
        }
        match collector.collect(&fleet, wall_clock::now()).await {
            Ok(Collected { generations, pieces, homes, .. })
                if generations + pieces + homes > 0 =>
            {
                tracing::info!(generations, pieces, homes, "old generations are removed from etcd");
            }
            Ok(_) => {}
            Err(error) => tracing::debug!("old generations stay in etcd: {error}"),
        }
    }
}
