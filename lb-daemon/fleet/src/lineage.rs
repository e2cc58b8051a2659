//! Whether a balancer may follow what etcd offers, given what it has in force. Pure.
//!
//! After etcd was restored from a backup, or a balancer was pointed at another cluster, etcd may hold an older state, or one
//! with another past. A balancer then keeps what it has until an operator decides.

use std::collections::BTreeMap;

use lb_base::pieces::Digest;

/// A generation and the one that it builds on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub digest: Digest,
    pub parent: Option<Digest>,
}

/// A state of etcd, as far as its past matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    pub cluster: u64,
    /// `mod_revision` of `changed`; 0: nothing was shared yet.
    pub revision: i64,
    /// Number of the current generation; `None`: there is none.
    pub current: Option<u64>,
    /// Generations that are kept, by number, the current one among them.
    pub history: BTreeMap<u64, Link>,
}

/// What a balancer has in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    pub cluster: u64,
    pub revision: i64,
    /// Number and digest; `None`: no generation.
    pub generation: Option<(u64, Digest)>,
}

/// Why a balancer must not follow what etcd offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error(
        "etcd is another cluster ({offered:x}) than the one that the configuration in force came from ({in_force:x})"
    )]
    OtherCluster { in_force: u64, offered: u64 },
    #[error(
        "etcd is at revision {offered}, but revision {in_force} is in force: it was restored from an old backup"
    )]
    Older { in_force: i64, offered: i64 },
    #[error("etcd has no configuration, but generation {in_force} is in force")]
    Gone { in_force: u64 },
    #[error(
        "etcd has generation {offered}, but generation {in_force} is in force: it was restored from an old backup"
    )]
    OlderGeneration { in_force: u64, offered: u64 },
    #[error(
        "generation {offered} of etcd does not descend from generation {in_force}, which is in force"
    )]
    NotDescended { in_force: u64, offered: u64 },
    #[error(
        "etcd no longer has the generations between {in_force}, which is in force, and {offered}: whether one descends from \
         the other cannot be told"
    )]
    Untraceable { in_force: u64, offered: u64 },
}

impl Lineage {
    /// # Errors
    /// Why a balancer with `in_force` must not follow this state.
    pub fn check(&self, in_force: &InForce) -> Result<(), Conflict> {
        if self.cluster != in_force.cluster {
            let (in_force, offered) = (in_force.cluster, self.cluster);
            return Err(Conflict::OtherCluster { in_force, offered });
        }
        if self.revision < in_force.revision {
            let (in_force, offered) = (in_force.revision, self.revision);
            return Err(Conflict::Older { in_force, offered });
        }
        let Some((number, digest)) = in_force.generation else { return Ok(()) };
        let Some(current) = self.current else {
            return Err(Conflict::Gone { in_force: number });
        };
        if current < number {
            return Err(Conflict::OlderGeneration { in_force: number, offered: current });
        }
        self.trace(number, digest, current)
    }

    /// Follows the parents of `offered` down to generation `in_force`.
    fn trace(&self, in_force: u64, digest: Digest, offered: u64) -> Result<(), Conflict> {
        let untraceable = Conflict::Untraceable { in_force, offered };
        let not_descended = Conflict::NotDescended { in_force, offered };
        let mut expected = self.history.get(&offered).ok_or(untraceable)?.digest;
        for number in (in_force..offered).rev().map(|number| number + 1) {
            let link = self.history.get(&number).ok_or(untraceable)?;
            if link.digest != expected {
                return Err(not_descended);
            }
            expected = link.parent.ok_or(not_descended)?;
        }
        if expected == digest { Ok(()) } else { Err(not_descended) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generations 1 to `length`; those after `fork` differ by `branch`.
    fn chain(length: u64, fork: u64, branch: u8) -> Lineage {
        let mut parent = None;
        let mut lineage = Lineage { cluster: 1, revision: 100, ..Lineage::default() };
        for number in 1..=length {
            let branch = if number > fork { branch } else { 0 };
            let digest = Digest::new(format!("{parent:?} {number} {branch}").as_bytes());
            lineage.history.insert(number, Link { digest, parent });
            parent = Some(digest);
        }
        lineage.current = Some(length).filter(|it| *it > 0);
        lineage
    }

    fn in_force(lineage: &Lineage, number: u64) -> InForce {
        let generation = lineage.history.get(&number).map(|link| (number, link.digest));
        InForce { cluster: lineage.cluster, revision: lineage.revision, generation }
    }

    #[test]
    fn each_conflict_has_its_sentence() {
        let offered = chain(5, 0, 0);
        let mine = in_force(&offered, 4);
        let sentence = |it: &Lineage| it.check(&mine).unwrap_err().to_string();
        assert_eq!(
            sentence(&Lineage { cluster: 255, ..offered.clone() }),
            "etcd is another cluster (ff) than the one that the configuration in force came from (1)"
        );
        assert_eq!(
            sentence(&Lineage { revision: 99, ..offered.clone() }),
            "etcd is at revision 99, but revision 100 is in force: it was restored from an old backup"
        );
        assert_eq!(
            sentence(&chain(0, 0, 0)),
            "etcd has no configuration, but generation 4 is in force"
        );
        assert_eq!(
            sentence(&chain(3, 0, 0)),
            "etcd has generation 3, but generation 4 is in force: it was restored from an old backup"
        );
        assert_eq!(
            sentence(&chain(5, 3, 1)),
            "generation 5 of etcd does not descend from generation 4, which is in force"
        );
    }

    proptest! {
        #[test]
        fn what_descends_is_accepted(length in 1u64..30, back in 0u64..30) {
            let offered = chain(length, 0, 0);
            let mine = in_force(&offered, length.saturating_sub(back));
            prop_assert_eq!(offered.check(&mine), Ok(()));
        }

        #[test]
        fn another_past_is_a_conflict(fork in 0u64..20, mine in 1u64..20, more in 0u64..20) {
            let mine = fork + mine;
            let before = chain(mine, fork, 1);
            let offered = chain(mine + more, fork, 2);
            let conflict = Conflict::NotDescended { in_force: mine, offered: mine + more };
            prop_assert_eq!(offered.check(&in_force(&before, mine)), Err(conflict));
        }

        #[test]
        fn what_cannot_be_traced_is_never_accepted(length in 3u64..30, gone in 2u64..30, back in 1u64..30) {
            let mut offered = chain(length, 0, 0);
            let number = length.saturating_sub(back).max(1);
            let mine = in_force(&offered, number);
            let gone = gone.min(length);
            offered.history.remove(&gone);
            let conflict = Conflict::Untraceable { in_force: number, offered: length };
            let expected = if gone > number { Err(conflict) } else { Ok(()) };
            prop_assert_eq!(offered.check(&mine), expected);
        }
    }
}
