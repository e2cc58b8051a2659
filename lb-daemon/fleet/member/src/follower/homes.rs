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

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use lb_fleet::{
        Document,
        commit::{Attempt, Committed, Draft},
        documents::{Homes, Liveness, WallTime},
        reader::{SharedConfiguration, Snapshot, Versioned},
    };
    use lb_model::plan::MarkedOut;
    use tokio::sync::watch;

    use super::*;
    use crate::follower::{
        in_force::InForce,
        progress::{Offer, PartKind, Progress},
    };

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn marked_out(address: &str) -> MarkedOut {
        MarkedOut { members: [address.parse().unwrap()].into(), ..MarkedOut::default() }
    }

    /// A state of etcd in which one backend of pool `web` is marked out in region `eu`.
    fn offer(number: u64, address: &str) -> Offer {
        let since = WallTime::from(UNIX_EPOCH);
        let draft = Draft {
            parts: Vec::new().into(),
            settles: Duration::ZERO,
            live: [name("lb-1")].into(),
            members_seen: 0,
            groups: [].into(),
            author: String::new(),
            reason: String::new(),
            applied_at: since,
        };
        let generation = Attempt::new(None, draft).unwrap().generation().clone();
        let digest = lb_pieces::Digest::new(b"");
        let committed = Committed { document: generation.into(), digest, mod_revision: 1 };
        let shared = SharedConfiguration { committed, bytes: [].into() };
        let homes =
            Homes { now: marked_out(address), before: MarkedOut::default(), since, generation: 1 };
        let homes = Versioned { document: Document::from(homes), mod_revision: 1 };
        let snapshot = Snapshot {
            configuration: Some(Arc::new(shared)),
            homes: [((name("eu"), name("web")), homes)].into(),
            ..Snapshot::default()
        };
        Offer { number, snapshot: Arc::new(snapshot) }
    }

    #[tokio::test(start_paused = true)]
    async fn homes_wait_for_a_rebuild_and_not_for_a_generation() {
        let homes = MarkOutDecisions::default();
        let (in_force, _) = watch::channel(InForce { generation: 1, ..InForce::default() });
        let (liveness, _) = watch::channel(Arc::new(Document::from(Liveness::default())));
        let (offers, offers_rx) = watch::channel(None);
        let (is_rebuilding, is_rebuilding_rx) = watch::channel(true);
        // The configuration reports nothing: it waits for the disk.
        let (progress, _) = watch::channel(Progress::default());
        let part = Part::new(PartKind::Homes, progress, offers_rx, is_rebuilding_rx);
        let shown = Shown { in_force, liveness };
        let follower = HomesFollower::new(homes.clone(), Some(name("eu")), shown, part);
        tokio::spawn(follower.run());
        let decided = |address: &str| {
            let by_pool = [(name("web"), marked_out(address))].into();
            MarkOutDecision::Agreed(Arc::new(by_pool))
        };
        let soon = || tokio::time::sleep(HOMES / 2);

        offers.send_replace(Some(offer(1, "10.0.0.1")));
        soon().await;
        assert_eq!(homes.decision(), MarkOutDecision::Alone, "the homes of before come first");
        is_rebuilding.send_replace(false);
        soon().await;
        assert_eq!(homes.decision(), decided("10.0.0.1"));
        // Packets do not follow yet, and the next decision does not wait for that.
        offers.send_replace(Some(offer(2, "10.0.0.2")));
        soon().await;
        assert_eq!(homes.decision(), decided("10.0.0.2"));
    }
}
