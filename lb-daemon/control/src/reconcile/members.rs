use std::net::IpAddr;

use lb_common::abi::{
    member::{Accepts, MemberWord},
    slot::StandbyWord,
};

use super::{
    Reconciler,
    member_states::MemberStatus,
    published::PublishedGroup,
    standby::{self, STANDBYS},
};
use lb_model::Name;

impl Reconciler {
    /// A member's state; `None` where the last plan has no such member.
    pub fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts> {
        Some(self.states.get_planned(self.states.pool(pool)?, &address)?.state)
    }

    /// Changes a member's state: one store, whatever the size of the pool, and one each for its host
    /// and the limit of its group where they differ. A member takes its capacity along before it
    /// goes, and brings it only when it is there. False where the last plan has no such member.
    pub fn set_state(&mut self, pool: &Name, address: IpAddr, state: Accepts) -> bool {
        self.change(pool, address, |standing| MemberStatus { state, ..standing })
    }

    /// Says whether a member may have new connections that nobody else may have: one store. False
    /// where the last plan has no such member.
    pub fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool {
        self.change(pool, address, |standing| MemberStatus { last_resort, ..standing })
    }

    /// Changes which share of its slots' new connections a member takes: one store. False where the
    /// last plan has no such member.
    pub fn set_ramp(&mut self, pool: &Name, address: IpAddr, ramp: u8) -> bool {
        self.change(pool, address, |standing| MemberStatus { ramp, ..standing })
    }

    fn change(
        &mut self,
        pool: &Name,
        address: IpAddr,
        change: impl FnOnce(MemberStatus) -> MemberStatus,
    ) -> bool {
        let Some(pool) = self.states.pool(pool) else { return false };
        let Some(before) = self.states.get_planned(pool, &address) else { return false };
        let after = change(before);
        self.states.set(pool, &address, after);
        let locations = self.locations.get(&address).iter().copied();
        let locations: Vec<_> = locations.filter(|place| place.pool == pool).collect();
        let rises = after.effective_accepts() as u8 > before.effective_accepts() as u8;
        if rises {
            self.write_backend_state(&address);
        } else {
            locations.iter().for_each(|place| self.update_limit(place.group));
        }
        for place in &locations {
            if let Some(word) = self.maps.member(place.word) {
                self.maps.set_member(place.word, after.apply_to(word));
                self.update_standbys_after(place.group, place.rank);
            }
        }
        if rises {
            locations.iter().for_each(|place| self.update_limit(place.group));
        } else {
            self.write_backend_state(&address);
        }
        true
    }

    /// Makes a group's standbys right after one of its members changed.
    pub(super) fn update_standbys_after(&self, at: u32, rank: u16) {
        let Some(group) = self.published.groups.get(&at) else { return };
        let held = |place: usize| self.maps.standby(at, place as u32).rank();
        let Some(member) = self.live(group, rank) else {
            // Others for the locations of a member that is not live.
            if (0..STANDBYS).any(|place| held(place) == Some(rank)) {
                self.write_standbys(at, group);
            }
            return;
        };
        for place in 0..STANDBYS {
            let scored = |rank| Some((standby::score(&self.live(group, rank)?, place), rank));
            if held(place).and_then(scored) < Some((standby::score(&member, place), rank)) {
                self.maps.set_standby(at, place as u32, StandbyWord::new(Some(rank)));
            }
        }
    }

    /// Makes the standbys of a published group right.
    pub(super) fn update_standbys(&self, at: u32) {
        if let Some(group) = self.published.groups.get(&at) {
            self.write_standbys(at, group);
        }
    }

    /// Points a group's standbys at its live members, as its words say them.
    pub(super) fn write_standbys(&self, at: u32, group: &PublishedGroup) {
        let ranks = 0..group.members.len() as u16;
        let live: Vec<_> = ranks.filter_map(|rank| Some((rank, self.live(group, rank)?))).collect();
        let chosen = standby::choose(live.iter().map(|(rank, address)| (*rank, address)));
        for (place, rank) in chosen.into_iter().enumerate() {
            let word = StandbyWord::new(rank);
            if self.maps.standby(at, place as u32) != word {
                self.maps.set_standby(at, place as u32, word);
            }
        }
    }

    /// The address of a member that can take what nobody else can, or `None`.
    fn live(&self, group: &PublishedGroup, rank: u16) -> Option<IpAddr> {
        let member = group.members.get(usize::from(rank))?;
        let word = self.maps.member(group.group.head.members + u32::from(rank))?;
        (is_live(word) && member.weighted != Some(false)).then_some(member.address)
    }
}

/// Whether new connections can go to a member.
fn is_live(word: MemberWord) -> bool {
    word.accepts() == Accepts::All && word.next_hop() != 0
}
