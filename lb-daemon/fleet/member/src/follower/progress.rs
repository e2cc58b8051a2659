//! What etcd has, on its way to the parts that put it in force, and how far each of them is. None waits for another one.

use std::{future::pending, sync::Arc, time::Duration};

use lb_fleet::reader::Snapshot;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// A state of etcd that may be followed.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// Rises with each.
    pub(super) number: u64,
    pub(super) snapshot: Arc<Snapshot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    Configuration,
    Overrides,
    Homes,
}

/// The last offer that each part has in force.
#[derive(Debug, Default)]
pub(super) struct Progress {
    configuration: Option<Offer>,
    overrides: Option<Offer>,
    homes: Option<Offer>,
}

impl Progress {
    /// The latest offer of which each part is in force, or has been replaced by a later one.
    pub(super) fn of_all(&self) -> Option<&Offer> {
        let parts = [&self.configuration, &self.overrides, &self.homes];
        let parts: Option<Vec<&Offer>> = parts.into_iter().map(Option::as_ref).collect();
        parts?.into_iter().min_by_key(|offer| offer.number)
    }

    const fn part(&mut self, kind: PartKind) -> &mut Option<Offer> {
        match kind {
            PartKind::Configuration => &mut self.configuration,
            PartKind::Overrides => &mut self.overrides,
            PartKind::Homes => &mut self.homes,
        }
    }
}

/// What a part puts in force, and where it says that it has.
pub(super) struct Part {
    kind: PartKind,
    progress: watch::Sender<Progress>,
    offers: watch::Receiver<Option<Offer>>,
    is_rebuilding: watch::Receiver<bool>,
    retry_at: Option<Instant>,
}

impl Part {
    pub(super) const fn new(
        kind: PartKind,
        progress: watch::Sender<Progress>,
        offers: watch::Receiver<Option<Offer>>,
        is_rebuilding: watch::Receiver<bool>,
    ) -> Self {
        Self { kind, progress, offers, is_rebuilding, retry_at: None }
    }

    /// The latest offer, once there is a new one or it is time for a retry. `None`: the daemon is stopping.
    pub(super) async fn next(&mut self) -> Option<Offer> {
        loop {
            let retry_at = self.retry_at.take();
            let retry = async {
                match retry_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                changed = self.offers.changed() => changed.ok()?,
                () = retry => {}
            }
            // While there is a conflict with etcd, there is nothing to follow.
            if let Some(offer) = self.offers.borrow_and_update().clone() {
                return Some(offer);
            }
        }
    }

    /// The same, but not while a configuration of before is put in force first: what goes with the present one waits for that.
    pub(super) async fn next_after_rebuild(&mut self) -> Option<Offer> {
        loop {
            self.next().await?;
            self.is_rebuilding.wait_for(|is_rebuilding| !is_rebuilding).await.ok()?;
            if let Some(offer) = self.offers.borrow_and_update().clone() {
                return Some(offer);
            }
        }
    }

    /// Waits until there is a newer offer than the one that [`Self::next`] returned.
    pub(super) async fn is_overtaken(&self) {
        let mut offers = self.offers.clone();
        let _ended = offers.changed().await;
    }

    pub(super) fn retry_after(&mut self, wait: Duration) {
        self.retry_at = Some(Instant::now() + wait);
    }

    pub(super) fn put_in_force(&self, offer: Offer) {
        self.progress.send_modify(|progress| *progress.part(self.kind) = Some(offer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(number: u64) -> Offer {
        Offer { number, snapshot: Arc::default() }
    }

    #[test]
    fn a_part_that_waits_does_not_count_as_followed() {
        let mut progress = Progress::default();
        let number = |progress: &Progress| progress.of_all().map(|offer| offer.number);
        *progress.part(PartKind::Configuration) = Some(offer(1));
        *progress.part(PartKind::Overrides) = Some(offer(3));
        assert_eq!(number(&progress), None, "homes were never followed");
        *progress.part(PartKind::Homes) = Some(offer(2));
        assert_eq!(number(&progress), Some(1));
        *progress.part(PartKind::Configuration) = Some(offer(4));
        assert_eq!(number(&progress), Some(2), "homes are the last now");
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_a_rebuild_gets_the_latest_offer_then() {
        let (offers, offers_rx) = watch::channel(None);
        let (is_rebuilding, is_rebuilding_rx) = watch::channel(true);
        let (progress, _) = watch::channel(Progress::default());
        let mut part = Part::new(PartKind::Homes, progress, offers_rx, is_rebuilding_rx);
        offers.send_replace(Some(offer(1)));
        let waits = tokio::time::timeout(Duration::from_secs(60), part.next_after_rebuild()).await;
        assert!(waits.is_err(), "a rebuild is under way");
        offers.send_replace(Some(offer(2)));
        is_rebuilding.send_replace(false);
        assert_eq!(part.next_after_rebuild().await.map(|it| it.number), Some(2));
        part.retry_after(Duration::from_secs(1));
        assert_eq!(part.next().await.map(|it| it.number), Some(2), "the same again");
        offers.send_replace(None);
        drop(offers);
        assert!(part.next().await.is_none(), "a conflict, then the end");
    }
}
