//! The most that any member of a pool accepts. Each member's word says it too, so that a packet of a pool where nobody takes
//! it costs no search through all of them.
//!
//! It is never less than the truth: it is raised before a member rises, and lowered after one fell. So a daemon that dies
//! in between leaves words that send packets on a search, but none that refuse what somebody would take.

use std::collections::{BTreeSet, HashMap};

use lb_common::abi::member::Accepts;

use super::{MemberWords, member_states::MemberStatus};
use crate::reconcile::published::PublishedGroup;

/// What the words say of pools, by index, unless it is [`Accepts::All`].
pub(super) type PoolAccepts = HashMap<u32, Accepts>;

impl MemberStatus {
    /// What a packet of its pool may find with it. A last resort may get new connections.
    pub(super) fn offers(self) -> Accepts {
        if self.last_resort { Accepts::All } else { self.state }
    }
}

impl MemberWords {
    /// Before members of a pool offer so much, or others join them. It is raised no further: until a member falls nothing lowers
    /// it again.
    pub(super) fn raise_pool(&mut self, pool: u32, to: Accepts) {
        if self.pool_accepts.get(&pool).is_some_and(|most| (*most as u8) < to as u8) {
            self.write_pool_accepts(pool, to);
        }
    }

    /// After members of a pool offer less, or have left it.
    pub(super) fn lower_pool(&mut self, pool: u32) {
        let most = self.most_offered(pool);
        if self.pool_accepts.get(&pool).copied().unwrap_or(Accepts::All) != most {
            self.write_pool_accepts(pool, most);
        }
    }

    /// Has the words of pools say what is so, whatever they say now.
    pub(super) fn settle_pool_accepts(&mut self, pools: BTreeSet<u32>) {
        for pool in pools {
            self.write_pool_accepts(pool, self.most_offered(pool));
        }
    }

    /// What members offer that have a word: to others go only packets whose cell names them.
    fn most_offered(&self, pool: u32) -> Accepts {
        let mut most = Accepts::Nothing;
        for group in self.groups_of(pool) {
            for member in &group.members {
                let known = self.states.get(pool, &member.address);
                let offers = known.map_or(Accepts::All, MemberStatus::offers);
                if offers == Accepts::All {
                    return offers;
                }
                if offers as u8 > most as u8 {
                    most = offers;
                }
            }
        }
        most
    }

    fn write_pool_accepts(&mut self, pool: u32, most: Accepts) {
        for group in self.groups_of(pool) {
            for at in (group.group.head.members..).take(group.members.len()) {
                let Some(there) = self.maps.member(at) else { continue };
                let word = there.with_pool_accepts(most);
                if word != there {
                    self.maps.set_member(at, word);
                }
            }
        }
        if most == Accepts::All || self.groups_of(pool).next().is_none() {
            self.pool_accepts.remove(&pool);
        } else {
            self.pool_accepts.insert(pool, most);
        }
    }

    /// The groups of a pool that packets see or are about to see.
    fn groups_of(&self, pool: u32) -> impl Iterator<Item = &PublishedGroup> {
        self.locations.groups(pool).filter_map(|at| self.groups.get(&at).map(|group| &**group))
    }
}
