//! Follows what the balancers of the region agreed to mark out, beside the configuration.

use std::{sync::Arc, time::Duration};

use lb_control::state::{MarkOutDecision, MarkOutDecisions};
use lb_model::Name;
use tokio::time::{Instant, timeout_at};

use super::{in_force::Shown, progress::Part, rebuild};

/// Longest wait until packets follow what is marked out.
const HOMES: Duration = Duration::from_secs(3);

/// Puts in force what etcd has in `homes/`.
pub(crate) struct HomesFollower {
    homes: MarkOutDecisions,
    region: Option<Name>,
    shown: Shown,
    part: Part,
}

impl HomesFollower {
    pub(super) const fn new(
        homes: MarkOutDecisions,
        region: Option<Name>,
        shown: Shown,
        part: Part,
    ) -> Self {
        Self { homes, region, shown, part }
    }

    /// Runs until the daemon stops. It is followed once packets follow, or after a while: the maps may have no room yet.
    pub(crate) async fn run(mut self) {
        let mut until = Instant::now();
        while let Some(offer) = self.part.next_after_rebuild().await {
            if offer.snapshot.configuration.is_none() {
                self.part.put_in_force(offer);
                continue;
            }
            let marked_out = rebuild::present(&offer.snapshot, self.region.as_ref());
            let decision = MarkOutDecision::Agreed(Arc::clone(&marked_out));
            if self.homes.decision() != decision {
                self.homes.decide(decision.clone());
                until = Instant::now() + HOMES;
            }
            // Packets that follow no configuration of the fleet follow none of its homes.
            if self.shown.in_force.borrow().generation == 0 {
                until = Instant::now();
            }
            let mut in_force = self.homes.in_force();
            let follows = in_force.wait_for(|shown| shown.as_ref() == Some(&decision));
            tokio::select! {
                biased;
                _ = timeout_at(until, follows) => self.part.put_in_force(offer),
                () = self.part.is_overtaken() => {}
            }
        }
    }
}
