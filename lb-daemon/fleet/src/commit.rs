//! A commit of a generation: its pieces first, then one transaction that makes it the current one.
//!
//! The transaction compares what the commit builds on, so of two at once one wins. It also compares that no piece was removed
//! since it was seen that all are there, because unused pieces are collected meanwhile ([`crate::collect`]): a key that each
//! removal writes says it, so a configuration may have more pieces than a transaction has comparisons. If the reply is lost, the same
//! [`Attempt`] may be committed again: it is carried out once at most, since both requests build on the same revision.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use etcd_client::{Txn, TxnOp};
use lb_model::Name;

use lb_pieces::{Digest, MAX_PIECE};
use lb_sharing::GroupKey;

use crate::{
    Document, DocumentError, EtcdError, Fleet,
    births::{Births, next_births},
    client::Row,
    documents::{Generation, WallTime},
    transaction::{is_at, none_after},
};

/// Largest configuration, bytes: one that etcd keeps several of, and that a balancer reads at once.
pub const MAX_CONFIGURATION: usize = 60 << 20;

/// Largest value of a generation, bytes. The transaction has it twice, for `config/current` and for the history, and etcd
/// takes 1.5 MiB in one request by default.
pub const MAX_GENERATION: usize = 720 << 10;

/// The bytes of a configuration, in parts that change independently of each other.
pub type Parts = Arc<[Vec<u8>]>;

/// How often pieces are put again because they were collected between put and commit.
const ROUNDS: usize = 5;

/// A generation in etcd.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    pub document: Document<Generation>,
    /// Of its value: what the next generation names as its parent.
    pub digest: Digest,
    /// Of `config/current`: what the next commit compares.
    pub mod_revision: i64,
}

/// A configuration to be committed, and why.
#[derive(Clone, Debug)]
pub struct Draft {
    /// A part that is the same as before is not written again.
    pub parts: Parts,
    /// Balancers that are alive: they own the groups that are born.
    pub live: BTreeSet<Name>,
    /// [`Snapshot::members_revision`](crate::reader::Snapshot::members_revision) of what `live` was taken from. A balancer
    /// that left since must not own new groups.
    pub members_seen: i64,
    /// Pool and region of all groups of the configuration.
    pub groups: BTreeSet<(Name, Name)>,
    /// Longest time for which a change of home settles in the configuration.
    pub settles: Duration,
    pub author: String,
    pub reason: String,
    pub applied_at: WallTime,
}

/// A draft on top of a generation.
#[derive(Clone, Debug)]
pub struct Attempt {
    base: i64,
    members_seen: i64,
    parts: Parts,
    document: Document<Generation>,
}

/// Parts as etcd has them: no piece is larger than a value may be.
fn cut(parts: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    parts.iter().flat_map(|part| part.chunks(MAX_PIECE))
}

/// Why a generation was not committed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CommitError {
    #[error("{}", conflict(.0.as_deref()))]
    Conflict(Option<Box<Committed>>),
    #[error("the configuration has {size} bytes; a fleet shares at most {MAX_CONFIGURATION}")]
    TooLarge { size: usize },
    #[error(
        "what is said of the configuration's groups, and why it is applied, has {size} bytes; a fleet shares at most \
         {MAX_GENERATION}"
    )]
    TooManyGroups { size: usize },
    #[error("no balancer is alive, so none would own the new groups' capacity")]
    NoneAlive,
    /// It may be in force, or may become so: read it with [`Fleet::resolve`], or commit the same attempt again.
    #[error("it is unknown whether the configuration was applied: {0}")]
    Unknown(EtcdError),
    #[error("its pieces are collected faster than they can be written")]
    PiecesVanish,
    /// Nothing was changed.
    #[error("a balancer joined or left meanwhile: make the change again")]
    MembersChanged,
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Nothing was changed.
    #[error(transparent)]
    Etcd(EtcdError),
    #[error("no number follows that of generation {last}")]
    NoNumber { last: u64 },
    #[error("no random number for the attempt: {0}")]
    Random(String),
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    Applied(Box<Committed>),
    /// It was applied, and another generation is in force by now.
    AppliedAndReplaced,
    /// Another generation came first, so it will not be applied any more.
    Lost(Option<Box<Committed>>),
    /// It has not been applied so far. A request under way may still apply it; to commit it again is safe.
    Open,
}

fn conflict(current: Option<&Committed>) -> String {
    match current.map(|it| &it.document.body) {
        None => "another balancer removed the configuration meanwhile".into(),
        Some(Generation { number, author, .. }) if author.is_empty() => {
            format!("generation {number} was applied meanwhile")
        }
        Some(Generation { number, author, .. }) => {
            format!("generation {number} was applied meanwhile by {author}")
        }
    }
}

impl Attempt {
    /// # Errors
    /// [`CommitError::TooLarge`], [`CommitError::TooManyGroups`], [`CommitError::NoneAlive`], [`CommitError::NoNumber`], or
    /// the system has no random numbers.
    pub fn new(base: Option<&Committed>, draft: Draft) -> Result<Self, CommitError> {
        let previous = base.map(|base| base.document.body.groups()).unwrap_or_default();
        Self::build(base, &previous, None, draft)
    }

    /// A generation that balancers follow although it does not descend from what they have in force, because an operator
    /// decided so.
    ///
    /// `base` is what etcd has. `shared` are the groups whose capacities the balancers share, each with its first owners
    /// ([`Snapshot::births`](crate::reader::Snapshot::births)): they keep their births, so that what is owned of them stays.
    /// All others are born anew. `floor` is the highest number of a generation that any balancer has in force. The new one
    /// is above it, so that no other group had its birth.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn restore(
        base: Option<&Committed>,
        shared: &BTreeMap<GroupKey, BTreeSet<Name>>,
        floor: u64,
        draft: Draft,
    ) -> Result<Self, CommitError> {
        let last_birth = shared.keys().map(|group| group.birth).max();
        let floor = floor.max(last_birth.unwrap_or_default());
        Self::build(base, shared, Some(floor), draft)
    }

    fn build(
        base: Option<&Committed>,
        previous: &BTreeMap<GroupKey, BTreeSet<Name>>,
        restores_above: Option<u64>,
        draft: Draft,
    ) -> Result<Self, CommitError> {
        let Draft { parts, live, members_seen, groups, settles, author, reason, applied_at } =
            draft;
        let size = parts.iter().map(Vec::len).sum();
        if size > MAX_CONFIGURATION {
            return Err(CommitError::TooLarge { size });
        }
        let last = base.map_or(0, |base| base.document.body.number);
        let last = last.max(restores_above.unwrap_or_default());
        let number = last.checked_add(1).ok_or(CommitError::NoNumber { last })?;
        let Births { births, owners } = next_births(previous, &groups, number, &live);
        if owners.get(&number).is_some_and(BTreeSet::is_empty) {
            return Err(CommitError::NoneAlive);
        }
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| CommitError::Random(error.to_string()))?;
        let body = Generation {
            number,
            parent: base.map(|base| base.digest),
            attempt: format!("{:032x}", u128::from_le_bytes(id)),
            pieces: cut(&parts).map(Digest::new).collect(),
            size: size as u64,
            live,
            births,
            owners,
            restored: match restores_above {
                Some(_) => number,
                None => base.map_or(0, |base| base.document.body.restored),
            },
            settles_ms: u64::try_from(settles.as_millis()).unwrap_or(u64::MAX),
            author,
            reason,
            applied_at,
        };
        let document = match base {
            Some(base) => base.document.replaced_by(body),
            None => body.into(),
        };
        let size = document.write("config/current")?.len();
        if size > MAX_GENERATION {
            return Err(CommitError::TooManyGroups { size });
        }
        let base = base.map_or(0, |base| base.mod_revision);
        Ok(Self { base, members_seen, parts, document })
    }

    pub const fn generation(&self) -> &Generation {
        &self.document.body
    }

    fn is_in(&self, committed: &Committed) -> bool {
        committed.document.body.attempt == self.generation().attempt
    }
}

impl Fleet {
    /// Makes an attempt the current generation.
    ///
    /// # Errors
    /// [`CommitError`]
    pub async fn commit(&self, attempt: &Attempt) -> Result<Committed, CommitError> {
        let current = self.keys().current();
        let value = attempt.document.write(&current)?;
        for _ in 0..ROUNDS {
            let removed_at = self.put_missing(attempt).await.map_err(CommitError::Etcd)?;
            let transaction = self.commit_transaction(attempt, &value, removed_at);
            let done = self.transact(transaction).await;
            let done = done.map_err(|error| match error.is_indefinite() {
                true => CommitError::Unknown(error),
                false => CommitError::Etcd(error),
            })?;
            if done.is_done {
                let document = attempt.document.clone();
                let digest = Digest::new(&value);
                return Ok(Committed { document, digest, mod_revision: done.revision });
            }
            let found = done.rows.first().map(committed).transpose()?;
            let at = found.as_ref().map_or(0, |found| found.mod_revision);
            if at != attempt.base {
                return match found {
                    Some(found) if attempt.is_in(&found) => Ok(found),
                    found => Err(CommitError::Conflict(found.map(Box::new))),
                };
            }
            // The base is still in force, so the members are others, or pieces were removed.
            if self.members_changed(attempt).await.map_err(CommitError::Etcd)? {
                return Err(CommitError::MembersChanged);
            }
        }
        Err(CommitError::PiecesVanish)
    }

    /// Finds out what became of an attempt whose outcome is unknown.
    ///
    /// # Errors
    /// etcd cannot be read, or holds a generation that this version cannot read.
    pub async fn resolve(&self, attempt: &Attempt) -> Result<Resolved, CommitError> {
        let history = self.keys().history(attempt.generation().number);
        let both = [self.keys().current(), history.clone()];
        let rows = self.get_together(&both).await.map_err(CommitError::Etcd)?;
        let mut current = None;
        for row in rows {
            let is_old = row.key == history.as_bytes();
            let found = committed(&row)?;
            match is_old {
                false if attempt.is_in(&found) => return Ok(Resolved::Applied(found.into())),
                false => current = Some(Box::new(found)),
                true if attempt.is_in(&found) => return Ok(Resolved::AppliedAndReplaced),
                true => {}
            }
        }
        match current.as_ref().map_or(0, |it| it.mod_revision) == attempt.base {
            true => Ok(Resolved::Open),
            false => Ok(Resolved::Lost(current)),
        }
    }

    /// The current generation, read linearizably.
    ///
    /// # Errors
    /// etcd cannot be read, or this version cannot read the generation.
    pub async fn current(&self) -> Result<Option<Committed>, CommitError> {
        let row = self.get(&self.keys().current()).await.map_err(CommitError::Etcd)?;
        Ok(row.as_ref().map(committed).transpose()?)
    }

    async fn members_changed(&self, attempt: &Attempt) -> Result<bool, EtcdError> {
        let first = self.keys().members();
        let end = format!("{}0", first.trim_end_matches('/'));
        let rows = self.range(&first, &end, None, true).await?;
        Ok(rows.rows.iter().any(|row| row.mod_revision > attempt.members_seen))
    }

    /// Puts the pieces that are not there. Returns when pieces were removed last, as of when it was seen which are there.
    async fn put_missing(&self, attempt: &Attempt) -> Result<i64, EtcdError> {
        let keys = self.keys();
        let there = self.range(&keys.chunks(), &keys.after_chunks(), None, true).await?.rows;
        let there: BTreeMap<_, _> =
            there.into_iter().map(|row| (row.key, row.mod_revision)).collect();
        let pieces = attempt.generation().pieces.iter().zip(cut(&attempt.parts));
        let missing: BTreeMap<_, _> = pieces
            .map(|(digest, content)| (keys.chunk(digest), content))
            .filter(|(key, _)| !there.contains_key(key.as_bytes()))
            .collect();
        self.put_all(missing).await?;
        Ok(there.get(keys.chunk_removed().as_bytes()).copied().unwrap_or_default())
    }

    fn commit_transaction(&self, attempt: &Attempt, value: &[u8], removed_at: i64) -> Txn {
        let current = self.keys().current();
        let generation = attempt.generation();
        let compares = [
            is_at(&current, attempt.base),
            is_at(&self.keys().chunk_removed(), removed_at),
            none_after(&self.keys().members(), attempt.members_seen),
        ];
        let history = self.keys().history(generation.number);
        let puts =
            [TxnOp::put(&*current, value, None), TxnOp::put(history, value, None), self.touch()];
        Txn::new().when(compares).and_then(puts).or_else([TxnOp::get(current, None)])
    }
}

/// The generation in a row of `config/`.
pub(crate) fn committed(row: &Row) -> Result<Committed, DocumentError> {
    Ok(Committed {
        document: Document::read(&row.key, &row.value)?,
        digest: Digest::new(&row.value),
        mod_revision: row.mod_revision,
    })
}
