//! Limits of groups and members.

use std::{collections::BTreeSet, net::IpAddr};

use lb_common::abi::{
    limiter::{ECHOES, ERRORS, LimitWord, NO_LIMITER},
    member::{Accepts, MemberWord},
};

use super::MemberWords;
use crate::reconcile::published::{LimitTerms, PublishedGroup, PublishedMember};
use lb_maps::{Access, Maps, MapsError};
use lb_model::{
    GroupSettings, Name,
    capacity::{Capacity, GroupName, Member, Share, is_lower},
};

/// Most members of groups whose limits are written in one go; a single group is never split.
const MOST_MEMBERS: usize = 512;

impl MemberWords {
    /// Writes the limits for ICMP messages that the packet path sends.
    pub(super) fn limit_answers(&self) {
        self.maps.set_limit(ERRORS, per_second(self.settings.icmp_errors));
        self.maps.set_limit(ECHOES, per_second(self.settings.icmp_echoes));
    }

    /// Before packets see a change of a group: writes limiters that are not in use yet, `new`, and limits that get lower.
    /// Returns the number of the latter.
    pub(super) fn lower_limits(
        &mut self,
        group: &PublishedGroup,
        new: &BTreeSet<u32>,
    ) -> Result<usize, MapsError> {
        let mut lowered = 0;
        for (limiter, limit) in self.expected_limits(group) {
            if new.contains(&limiter) {
                self.maps.reset_limiter(limiter, limit);
            } else if is_lower(limit, self.maps.limit(limiter)) {
                self.maps.set_limit(limiter, limit);
                lowered += 1;
            }
        }
        if new.contains(&group.group.limiter) {
            self.maps.reset_group_connections(group.group.limiter)?;
        }
        Ok(lowered)
    }

    /// Once packets see a change of a group: writes its remaining limits, and which members have one. Returns how many
    /// limits changed.
    pub(super) fn raise_limits(&self, group: &PublishedGroup) -> usize {
        let mut raised = 0;
        for (limiter, limit) in self.expected_limits(group) {
            if self.maps.limit(limiter) != limit {
                self.maps.set_limit(limiter, limit);
                raised += 1;
            }
        }
        for (at, member) in (group.group.head.members..).zip(&group.members) {
            let Some(word) = self.maps.member(at) else { continue };
            let limiter = if word.is_limited() { self.maps.member_limiter(at) } else { NO_LIMITER };
            if limiter != member.limiter {
                self.maps.set_member(at, self.with_limiter(at, member, word));
            }
        }
        raised
    }

    /// Sets the limiter of a member, and returns its word with or without a limit.
    pub(super) fn with_limiter(
        &self,
        at: u32,
        member: &PublishedMember,
        word: MemberWord,
    ) -> MemberWord {
        if member.limiter != NO_LIMITER {
            self.maps.set_member_limiter(at, member.limiter);
        }
        word.with_limit(member.limiter != NO_LIMITER)
    }

    /// Updates a group's limit after a change of members. While other settings of the group are being
    /// published, the limit only gets lower.
    pub(super) fn update_limit(&self, at: u32) {
        for (group, terms) in self.described_groups(at) {
            if self.follows_health(terms, group) {
                self.write_limit(group.group.limiter, self.limit(terms, group), group);
            }
        }
    }

    /// Updates the limits of the groups that these members of a pool are in after a change of overrides, by the same rule.
    pub(super) fn update_limits_of(&self, pool: &Name, members: &[IpAddr]) {
        let Some(index) = self.states.pool(pool) else { return };
        let locations = members.iter().flat_map(|address| self.locations.get(address));
        let groups: BTreeSet<u32> =
            locations.filter(|at| at.pool == index).map(|at| at.group).collect();
        for (group, terms) in groups.iter().flat_map(|at| self.described_groups(*at)) {
            self.write_limit(group.group.limiter, self.limit(terms, group), group);
        }
    }

    /// Updates the limits of groups and of their members after a change of portions, by the same rule, until that has taken
    /// a millisecond or so. Returns how many of the groups are done.
    pub(super) fn update_limits_of_groups(&self, names: &[GroupName]) -> usize {
        let (mut done, mut members) = (0, 0);
        for name in names {
            let groups = self.groups_named(name);
            // Those that are not there take time too.
            let size = groups.iter().map(|group| group.members.len()).sum::<usize>().max(1);
            if done > 0 && members + size > MOST_MEMBERS {
                break;
            }
            for group in groups {
                for (limiter, limit) in self.expected_limits(group) {
                    self.write_limit(limiter, limit, group);
                }
            }
            (done, members) = (done + 1, members + size);
        }
        done
    }

    /// The groups of this name that a plan has described, in all versions of the pool.
    fn groups_named(&self, (pool, region): &GroupName) -> Vec<&PublishedGroup> {
        let Some(index) = self.states.pool(pool) else { return Vec::new() };
        let groups = self.locations.groups(index).flat_map(|at| self.described_groups(at));
        groups.filter(|(_, terms)| terms.region == *region).map(|(group, _)| group).collect()
    }

    /// A group, and while it gets other settings also as it was, as far as a plan has described them.
    fn described_groups(&self, at: u32) -> impl Iterator<Item = (&PublishedGroup, &LimitTerms)> {
        let groups = [self.groups.get(&at), self.replaced.get(&at)].into_iter().flatten();
        groups.filter_map(|group| Some((&**group, group.terms.as_ref()?)))
    }

    /// Changes the limit of a group, or of a member of it.
    fn write_limit(&self, limiter: u32, limit: LimitWord, group: &PublishedGroup) {
        let is_changing = self.changing.contains(&group.group.limiter);
        if is_due(limit, self.maps.limit(limiter), is_changing) {
            self.maps.set_limit(limiter, limit);
        }
    }

    /// The limiters of a group and of its members, with their limits, if a plan has set them.
    fn expected_limits(&self, group: &PublishedGroup) -> impl Iterator<Item = (u32, LimitWord)> {
        let terms = group.terms.iter();
        terms.flat_map(move |terms| {
            let share = self.share(terms);
            let limited =
                group.members.iter().filter_map(|member| Some((member.limiter, member.rate?)));
            let members = limited.map(move |(limiter, rate)| (limiter, share.member_limit(rate)));
            members.chain([(group.group.limiter, self.limit(terms, group))])
        })
    }

    fn limit(&self, terms: &LimitTerms, group: &PublishedGroup) -> LimitWord {
        let capacity = Capacity::of_members(self.settings_of(terms), self.capacity_members(group));
        self.share(terms).group_limit(capacity)
    }

    fn follows_health(&self, terms: &LimitTerms, group: &PublishedGroup) -> bool {
        Capacity::follows_health(self.settings_of(terms), self.capacity_members(group))
    }

    /// A group's settings under its overrides.
    fn settings_of(&self, terms: &LimitTerms) -> GroupSettings {
        self.overrides.group(&terms.pool, &terms.region).apply_to(terms.settings)
    }

    fn share(&self, terms: &LimitTerms) -> Share {
        let LimitTerms { pool, region, balancers, .. } = terms;
        Share { portion: self.portions.of(pool, region, *balancers), tick: self.tick }
    }

    /// The group's members, as far as they count for its capacity.
    fn capacity_members(&self, group: &PublishedGroup) -> impl Iterator<Item = Member> {
        group.members.iter().map(|member| {
            let known = self.states.get(group.pool, &member.address);
            let reachable = self.next_hops.index_of(&member.address) != 0;
            Member {
                weighted: member.weighted != Some(false),
                healthy: reachable && known.is_some_and(|known| known.state == Accepts::All),
                last_resort: reachable && known.is_some_and(|known| known.last_resort),
                rate: member.rate,
            }
        })
    }
}

/// The same members of a group as the maps show them.
pub(in crate::reconcile) fn reading_members<M: Access>(
    maps: &Maps<M>,
    group: &PublishedGroup,
) -> Vec<Member> {
    let words = group.group.head.members..;
    let members = words.zip(&group.members).map(|(at, member)| {
        let word = maps.member(at).filter(|word| word.has_next_hop());
        Member {
            weighted: member.weighted != Some(false),
            healthy: word.is_some_and(|word| word.accepts() == Accepts::All),
            last_resort: word.is_some_and(MemberWord::is_last_resort),
            rate: member.rate,
        }
    });
    members.collect()
}

/// Whether a limit is to be written where another one may be `there`: while packets may see two settings of a group, only
/// if it is lower.
fn is_due(limit: LimitWord, there: LimitWord, is_changing: bool) -> bool {
    limit != there && (is_lower(limit, there) || !is_changing)
}

/// So many per second, a tenth of them in a burst.
fn per_second(number: u32) -> LimitWord {
    const SECOND: u64 = 1_000_000_000 * LimitWord::PER_NANOSECOND;
    match number {
        0 => LimitWord::CLOSED,
        number => LimitWord::new(SECOND / u64::from(number), number / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::MOST_ANSWERS;

    #[test]
    fn a_rate_is_an_interval_and_a_burst_of_a_tenth() {
        let thousand = per_second(1_000);
        assert_eq!((thousand.interval(), thousand.burst()), (16_000_000, 100));
        let most = per_second(MOST_ANSWERS);
        assert_eq!((most.interval(), most.burst()), (16_000, 100_000));
        let one = per_second(1);
        assert_eq!((one.interval(), one.burst()), (16_000_000_000, 1), "one may always come");
        assert!(per_second(0).is_closed());
    }
}
