//! Removes generations that are too old, pieces that no generation has, and what was marked out of pools that no generation has.
//!
//! Each transaction compares that the current generation is still the one that was read, so it does not meet a commit that
//! builds on it. A commit that follows compares that no piece was removed since, and puts those again that were. A piece is
//! removed only some time after it was first found unused: one of a commit under way is unused too, and a collector that took
//! it each time would keep the commit from ever succeeding.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use etcd_client::{Txn, TxnOp};
use tokio::time::Instant;
use tracing::warn;

use lb_model::Name;
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
pub const GRACE: Duration = Duration::from_secs(60);

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

/// What one pass has to know of a generation.
#[derive(Clone, Copy, Debug)]
struct Known {
    mod_revision: i64,
    digest: Digest,
    parent: Option<Digest>,
    applied_at: WallTime,
    settles: Duration,
    is_misnumbered: bool,
}

/// Removes what is not needed. Generations never change, so each is read once, and only what a pass needs is remembered.
#[derive(Clone, Debug)]
pub struct Collector {
    grace: Duration,
    /// Generations of the history, by the numbers of their keys.
    known: BTreeMap<u64, Known>,
    /// The last generation that has a piece; those of a misnumbered one are used for ever.
    last_use: BTreeMap<Digest, u64>,
    /// The same of pools.
    last_pools: BTreeMap<Name, u64>,
    /// Since when pieces were unused, with the `mod_revision` of the piece: one that was written anew is a new one.
    unused: BTreeMap<(Digest, i64), Instant>,
    kept_for: Duration,
}

impl Collector {
    /// `grace` is [`GRACE`], but for tests.
    pub const fn new(grace: Duration) -> Self {
        Self {
            grace,
            known: BTreeMap::new(),
            last_use: BTreeMap::new(),
            last_pools: BTreeMap::new(),
            unused: BTreeMap::new(),
            kept_for: Duration::ZERO,
        }
    }

    /// How long generations are kept that are not among the last [`HISTORY`], as the last pass found.
    pub const fn kept_for(&self) -> Duration {
        self.kept_for
    }

    /// Keeps the last [`HISTORY`] generations, and those that were applied or replaced, before `now`, less than the longest
    /// time ago for which a change of home settles in any generation that is still there.
    ///
    /// # Errors
    /// [`CollectError`]
    pub async fn collect(
        &mut self,
        fleet: &Fleet,
        now: WallTime,
    ) -> Result<Collected, CollectError> {
        let keys = fleet.keys();
        let first = keys.current();
        // The key alone, and the revision for all else.
        let current = fleet.range(&first, &format!("{first}\0"), None, false).await?;
        let at = Some(current.revision);
        let current = current.rows.first().map(committed).transpose()?;
        let history = fleet.list_history(at).await?;
        let (first, end) = (keys.chunks(), keys.after_chunks());
        let pieces = fleet.range(&first, &end, at, true).await?;
        self.learn(fleet, current.as_ref(), &history).await?;

        let numbered = self.known.iter().filter(|(_, known)| !known.is_misnumbered);
        let numbered: Vec<(u64, Known)> = numbered.map(|(number, it)| (*number, *it)).collect();
        let settles = numbered.iter().map(|(_, it)| it.settles);
        let settles = settles.chain(current.iter().map(|it| it.document.body.settles()));
        let applied: Vec<_> = numbered.iter().map(|(_, it)| it.applied_at).collect();
        self.kept_for = settles.max().unwrap_or_default();
        let old = removable(&applied, self.kept_for, now);
        let kept = numbered.get(old).map_or(u64::MAX, |(number, _)| *number);
        let base = current.as_ref().map_or(0, |it| it.mod_revision);
        let used = self.last_use.iter().filter(|(_, last)| **last >= kept);
        let mut used: BTreeSet<Digest> = used.map(|(piece, _)| *piece).collect();
        let pools = self.last_pools.iter().filter(|(_, last)| **last >= kept);
        let mut pools: BTreeSet<Name> = pools.map(|(pool, _)| pool.clone()).collect();
        if let Some(current) = current {
            let body = current.document.body;
            used.extend(body.pieces);
            pools.extend(body.births.into_keys());
        }
        let old: Vec<_> = numbered[..old].iter().map(|(number, _)| keys.history(*number)).collect();
        let unused = self.long_unused(fleet, &pieces, &used);
        let unused: Vec<_> = unused.iter().map(|digest| keys.chunk(digest)).collect();
        let misnumbered = self.known.len() - numbered.len();
        let mut collected = Collected { misnumbered, ..Collected::default() };
        // Generations first, so that none is ever there without its pieces.
        for (keys, is_history) in [(old, true), (unused, false)] {
            for batch in keys.chunks(BATCH) {
                let deletes = batch.iter().map(|key| TxnOp::delete(&**key, None));
                let mut operations: Vec<_> = deletes.collect();
                if !is_history {
                    operations.push(TxnOp::put(fleet.keys().chunk_removed(), "", None));
                }
                let current = fleet.keys().current();
                let transaction = Txn::new().when([is_at(&current, base)]).and_then(operations);
                if !fleet.transact(transaction).await?.is_done {
                    return Ok(Collected { is_interrupted: true, ..collected });
                }
                match is_history {
                    true => collected.generations += batch.len(),
                    false => collected.pieces += batch.len(),
                }
            }
        }
        let Some(homes) = fleet.remove_homes(&pools, (&keys.current(), base), at).await? else {
            return Ok(Collected { is_interrupted: true, ..collected });
        };
        Ok(Collected { homes, ..collected })
    }

    /// Reads the generations of the history that are not known yet.
    async fn learn(
        &mut self,
        fleet: &Fleet,
        current: Option<&Committed>,
        there: &BTreeMap<u64, i64>,
    ) -> Result<(), CollectError> {
        self.forget_unless_continued(current, there);
        if !self.read_new(fleet, there).await? {
            self.forget();
            self.read_new(fleet, there).await?;
        }
        Ok(())
    }

    /// Returns whether what is new descends from what was known.
    async fn read_new(
        &mut self,
        fleet: &Fleet,
        there: &BTreeMap<u64, i64>,
    ) -> Result<bool, CollectError> {
        let new: Vec<_> = there.keys().filter(|it| !self.known.contains_key(it)).copied().collect();
        let mut unreadable = None;
        let visit = |number, read| match read {
            Ok(found) => self.add(fleet, number, there[&number], found),
            Err(error) => unreadable = Some(error),
        };
        fleet.visit_generations(new.iter().copied(), visit).await?;
        match unreadable {
            Some(error) => Err(error.into()),
            None => Ok(new.iter().all(|number| self.is_linked(*number))),
        }
    }

    fn add(&mut self, fleet: &Fleet, number: u64, mod_revision: i64, found: Committed) {
        let (body, digest) = (found.document.body, found.digest);
        let is_misnumbered = body.number != number;
        if is_misnumbered {
            let (key, said) = (fleet.keys().history(number), body.number);
            warn!("{key}: its value says generation {said}, so it is not removed");
        }
        let last = if is_misnumbered { u64::MAX } else { number };
        let (applied_at, settles, parent) = (body.applied_at, body.settles(), body.parent);
        for digest in body.pieces {
            let known = self.last_use.entry(digest).or_default();
            *known = last.max(*known);
        }
        for pool in body.births.into_keys() {
            let known = self.last_pools.entry(pool).or_default();
            *known = last.max(*known);
        }
        let known = Known { mod_revision, digest, parent, applied_at, settles, is_misnumbered };
        self.known.insert(number, known);
    }

    /// Whether a generation descends from the one before it, if that is known.
    fn is_linked(&self, number: u64) -> bool {
        let before = number.checked_sub(1).and_then(|before| self.known.get(&before));
        let both = self.known.get(&number).zip(before);
        both.is_none_or(|(known, before)| {
            let is_misnumbered = known.is_misnumbered || before.is_misnumbered;
            is_misnumbered || known.parent == Some(before.digest)
        })
    }

    fn forget(&mut self) {
        self.known.clear();
        self.last_use.clear();
        self.last_pools.clear();
    }

    /// Drops what is known of generations that were removed because they were old. If anything else changed than that new
    /// ones came, as when etcd is restored, all is read anew. Revisions alone do not tell, because after a restore they are
    /// given again.
    fn forget_unless_continued(&mut self, current: Option<&Committed>, there: &BTreeMap<u64, i64>) {
        let oldest = there.keys().next().copied().unwrap_or(u64::MAX);
        self.known.retain(|number, _| *number >= oldest);
        self.last_use.retain(|_, last| *last >= oldest);
        self.last_pools.retain(|_, last| *last >= oldest);
        let is_there =
            |(number, known): (&u64, &Known)| there.get(number) == Some(&known.mod_revision);
        let last = self.known.iter().rev().find(|(_, known)| !known.is_misnumbered);
        let last = last.map_or(0, |(number, _)| *number);
        let is_new = |number: &u64| *number > last || self.known.contains_key(number);
        let of_current =
            current.and_then(|it| Some((it, self.known.get(&it.document.body.number)?)));
        let is_same = of_current.is_none_or(|(current, known)| current.digest == known.digest);
        if !is_same || !self.known.iter().all(is_there) || !there.keys().all(is_new) {
            self.forget();
        }
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
fn removable(applied: &[WallTime], keep: Duration, now: WallTime) -> usize {
    let most = applied.len().saturating_sub(HISTORY);
    let applied = applied.iter().rev().scan(now, |later, applied_at| {
        if *applied_at <= now {
            *later = *applied_at;
        }
        Some(*later)
    });
    let applied: Vec<_> = applied.collect();
    let replaced = applied.into_iter().rev().skip(1);
    replaced.take(most).take_while(|replaced| replaced.age(now) >= keep).count()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_clock_that_was_ahead_keeps_no_generation_for_ever() {
        let seconds = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let length = HISTORY as u64 + 5;
        let mut history: Vec<WallTime> = (0..length).map(|it| seconds(it).into()).collect();
        let now = seconds(length).into();
        assert_eq!(removable(&history, Duration::ZERO, now), 5);
        history[2] = seconds(1_000_000).into();
        assert_eq!(removable(&history, Duration::ZERO, now), 5);
        // The one before it counts as replaced when the one after it was applied.
        let ages = [2, 3, 4].map(|it| Duration::from_secs(length - it));
        assert_eq!(ages.map(|age| removable(&history, age, now)), [1, 3, 4]);
    }
}
