//! Removes generations that are too old, pieces that no generation has, and what was marked out of pools that no generation has.
//!
//! Each transaction compares that the current generation is still the one that was read, so it does not meet a commit that
//! builds on it. A commit that follows compares that its pieces exist, and puts those again that were removed. A piece is
//! removed only some time after it was first found unused: one of a commit under way is unused too, and a collector that took
//! it each time would keep the commit from ever succeeding.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use etcd_client::{Txn, TxnOp};
use tokio::time::Instant;
use tracing::warn;

use lb_pieces::Digest;

use crate::{
    DocumentError, EtcdError, Fleet, FleetKey,
    client::Rows,
    commit::{Committed, committed},
    documents::WallTime,
    transaction::is_at,
};

/// Generations that stay however old they are, the current one among them.
pub const HISTORY: usize = 20;

/// How long a piece stays unused before it goes; much longer than a commit.
pub const GRACE: Duration = Duration::from_secs(600);

/// Deletions in one transaction: etcd takes 128 operations.
const BATCH: usize = 100;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub generations: usize,
    pub pieces: usize,
    /// Keys with what was marked out of pools that are gone.
    pub homes: usize,
    /// Keys of generations whose values say another number. They stay, with their pieces.
    pub misnumbered: usize,
    /// A commit came in between: what is left is for the next time.
    pub is_interrupted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectError {
    /// What it refers to is not known, so nothing is removed.
    #[error("old generations cannot be removed: {0}")]
    Unreadable(#[from] DocumentError),
    #[error(transparent)]
    Etcd(#[from] EtcdError),
}

/// Removes what is not needed, and remembers since when pieces were unused.
#[derive(Debug)]
pub struct Collector {
    grace: Duration,
    /// With the `mod_revision` of the piece: one that was written anew is a new one.
    unused: BTreeMap<(Digest, i64), Instant>,
}

impl Collector {
    /// `grace` is [`GRACE`], but for tests.
    pub const fn new(grace: Duration) -> Self {
        Self { grace, unused: BTreeMap::new() }
    }

    /// Keeps the last [`HISTORY`] generations, and those that were applied or replaced less than `keep` before `now`.
    ///
    /// # Errors
    /// [`CollectError`]
    pub async fn collect(
        &mut self,
        fleet: &Fleet,
        keep: Duration,
        now: WallTime,
    ) -> Result<Collected, CollectError> {
        let keys = fleet.keys();
        let current = keys.current();
        // From `config/current` over the whole history, at one revision.
        let end = format!("{}0", keys.histories().trim_end_matches('/'));
        let configurations = fleet.range(&current, &end, None, false).await?;
        let at = Some(configurations.revision);
        let (first, end) = (keys.chunks(), keys.after_chunks());
        let pieces = fleet.range(&first, &end, at, true).await?;
        let mut base = 0;
        let (mut used, mut pools) = (BTreeSet::new(), BTreeSet::new());
        let mut history: Vec<Committed> = Vec::new();
        let mut collected = Collected::default();
        for row in &configurations.rows {
            match keys.parse(&row.key) {
                FleetKey::Current => {
                    base = row.mod_revision;
                    let body = committed(row)?.document.body;
                    used.extend(body.pieces);
                    pools.extend(body.births.into_keys());
                }
                FleetKey::History(number) => {
                    let found = committed(row)?;
                    let said = found.document.body.number;
                    if said == number {
                        history.push(found);
                    } else {
                        let key = keys.history(number);
                        warn!("{key}: its value says generation {said}, so it is not removed");
                        used.extend(found.document.body.pieces);
                        pools.extend(found.document.body.births.into_keys());
                        collected.misnumbered += 1;
                    }
                }
                _ => {}
            }
        }
        history.sort_by_key(|it| it.document.body.number);
        let old = removable(&history, keep, now);
        for kept in history.iter().skip(old) {
            used.extend(kept.document.body.pieces.iter().copied());
            pools.extend(kept.document.body.births.keys().cloned());
        }
        let old = history.iter().take(old).map(|it| keys.history(it.document.body.number));
        let unused = self.long_unused(fleet, &pieces, &used);
        let unused = unused.iter().map(|digest| keys.chunk(digest));
        // Generations first, so that none is ever there without its pieces.
        for (keys, is_history) in [(old.collect::<Vec<_>>(), true), (unused.collect(), false)] {
            for batch in keys.chunks(BATCH) {
                let deletes: Vec<_> = batch.iter().map(|key| TxnOp::delete(&**key, None)).collect();
                let transaction = Txn::new().when([is_at(&current, base)]).and_then(deletes);
                if !fleet.transact(transaction).await?.is_done {
                    return Ok(Collected { is_interrupted: true, ..collected });
                }
                match is_history {
                    true => collected.generations += batch.len(),
                    false => collected.pieces += batch.len(),
                }
            }
        }
        let Some(homes) = fleet.remove_homes(&pools, (&current, base), at).await? else {
            return Ok(Collected { is_interrupted: true, ..collected });
        };
        Ok(Collected { homes, ..collected })
    }

    /// Notes which pieces are unused, and returns those that have been for long enough.
    fn long_unused(
        &mut self,
        fleet: &Fleet,
        pieces: &Rows,
        used: &BTreeSet<Digest>,
    ) -> Vec<Digest> {
        let now = Instant::now();
        let unused = pieces.rows.iter().filter_map(|row| match fleet.keys().parse(&row.key) {
            FleetKey::Chunk(digest) if !used.contains(&digest) => Some((digest, row.mod_revision)),
            _ => None,
        });
        self.unused =
            unused.map(|piece| (piece, self.unused.get(&piece).copied().unwrap_or(now))).collect();
        let long =
            self.unused.iter().filter(|(_, since)| now.duration_since(**since) >= self.grace);
        long.map(|((digest, _), _)| *digest).collect()
    }
}

/// How many of the first generations may go. A generation is needed until `keep` after it was replaced, because it says
/// where home was until then. An `applied_at` that is yet to come is of a clock that was wrong: the next one that is not,
/// or `now`, counts instead.
fn removable(history: &[Committed], keep: Duration, now: WallTime) -> usize {
    let most = history.len().saturating_sub(HISTORY);
    let applied = history.iter().map(|it| it.document.body.applied_at);
    let applied = applied.rev().scan(now, |later, applied_at| {
        if applied_at <= now {
            *later = applied_at;
        }
        Some(*later)
    });
    let applied: Vec<_> = applied.collect();
    let replaced = applied.into_iter().rev().skip(1);
    replaced.take(most).take_while(|replaced| replaced.age(now) >= keep).count()
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;
    use crate::documents::Generation;

    fn at(time: SystemTime, number: u64) -> Committed {
        let body = Generation {
            number,
            parent: None,
            attempt: String::new(),
            pieces: Vec::new(),
            size: 0,
            live: BTreeSet::new(),
            births: BTreeMap::new(),
            owners: BTreeMap::new(),
            is_restore: false,
            author: String::new(),
            reason: String::new(),
            applied_at: time.into(),
        };
        Committed { document: body.into(), digest: Digest::new(b""), mod_revision: 0 }
    }

    #[test]
    fn a_clock_that_was_ahead_keeps_no_generation_for_ever() {
        let seconds = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let length = HISTORY as u64 + 5;
        let mut history: Vec<_> = (0..length).map(|it| at(seconds(it), it)).collect();
        let now = seconds(length).into();
        assert_eq!(removable(&history, Duration::ZERO, now), 5);
        history[2] = at(seconds(1_000_000), 2);
        assert_eq!(removable(&history, Duration::ZERO, now), 5);
        // The one before it counts as replaced when the one after it was applied.
        let ages = [2, 3, 4].map(|it| Duration::from_secs(length - it));
        assert_eq!(ages.map(|age| removable(&history, age, now)), [1, 3, 4]);
    }
}
