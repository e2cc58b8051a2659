//! The slots of one group, counted.

use lb_common::abi::{
    member::{MemberState, MemberWord},
    next_hop::NextHopWord,
    slot::{RANKS_PER_SLOT, SlotWord},
};
use lb_daemon::maglev;
use serde::Serialize;

use crate::pinned;

/// What the maps say of a group.
pub(super) struct Source {
    pub(super) region: String,
    /// The slots' lists.
    pub(super) words: Vec<u64>,
    /// Members by rank: address, word, next hop.
    pub(super) members: Vec<(String, MemberWord, NextHopWord)>,
}

/// A pool's backends in one region, and their slots.
#[derive(Serialize)]
pub(super) struct Group {
    pub(super) region: String,
    pub(super) slots: u32,
    /// Of the table: equal on all balancers with the same members, weights and size.
    pub(super) checksum: String,
    /// Slots whose lists hold nobody for a new connection now; these go by other slots' lists.
    pub(super) slots_unserved_now: u32,
    pub(super) members: Vec<Member>,
}

#[derive(Serialize)]
pub(super) struct Member {
    pub(super) backend: String,
    /// Slots it owns.
    pub(super) slots: u32,
    /// Slots whose lists give a new connection to it now.
    pub(super) slots_now: u32,
    pub(super) state: &'static str,
    /// `null`: unresolved; it takes nothing.
    pub(super) next_hop: Option<String>,
}

impl Group {
    pub(super) fn new(source: &Source) -> Self {
        let shares = maglev::shares(&source.words, source.members.len());
        let usable: Vec<_> = source
            .members
            .iter()
            .map(|(_, word, hop)| word.state() == MemberState::Up && hop.is_resolved())
            .collect();
        let mut now = vec![0; source.members.len()];
        let mut unserved = 0;
        for &word in &source.words {
            match first_usable(SlotWord(word), &usable) {
                Some(rank) => now[rank] += 1,
                None => unserved += 1,
            }
        }
        let counted = source.members.iter().zip(shares).zip(now);
        let members = counted.map(|(((backend, word, hop), slots), slots_now)| Member {
            backend: backend.clone(),
            slots,
            slots_now,
            state: word.state().name(),
            next_hop: next_hop(*hop),
        });
        Self {
            region: source.region.clone(),
            slots: source.words.len() as u32,
            checksum: format!("{:016x}", maglev::checksum(&source.words)),
            slots_unserved_now: unserved,
            members: members.collect(),
        }
    }
}

/// The first rank of a list that may have a new connection; slow start aside.
fn first_usable(word: SlotWord, usable: &[bool]) -> Option<usize> {
    (0..RANKS_PER_SLOT as u32)
        .map(|place| usize::from(word.rank(place)))
        .find(|&rank| usable.get(rank).copied().unwrap_or(false))
}

fn next_hop(hop: NextHopWord) -> Option<String> {
    let mac = hop.mac().map(|byte| format!("{byte:02x}")).join(":");
    hop.is_resolved().then(|| format!("{mac} on {}", pinned::interface(hop.interface())))
}
