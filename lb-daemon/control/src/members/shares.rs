//! Shares of new connections, as ramps of members. A member's share is smaller during slow start, if its
//! agent report asks for less, if it is utilised more than others, and if an override lowers its weight.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use super::{Cause, clock, member::Member, table::Members};
use lb_model::{
    Configuration, MemberState, Name, Pool,
    shares::{Balanced, Sharer, balance, ramps, started},
};
use lb_publish::reconcile::MemberPath;

/// How much longer than its slow start a member is looked at.
const SLACK: Duration = Duration::from_secs(2);

impl Members {
    /// Updates the shares of all pools in which they may have changed, once a second.
    pub(super) fn update_shares(
        &mut self,
        configuration: &Configuration,
        path: &mut impl MemberPath,
    ) {
        let now = clock();
        let elapsed = self.balanced_at.replace(now).map(|then| now.saturating_duration_since(then));
        for (name, pool) in &configuration.pools {
            if self.pool(name).is_some_and(|members| members.counts().reporting > 0) {
                self.balance(name, pool, elapsed.unwrap_or_default(), now);
            }
            self.write_ramps(name, pool, path);
        }
    }

    /// Balances a pool whose backends report their utilisation, each group on its own.
    fn balance(&mut self, name: &Name, pool: &Pool, elapsed: Duration, now: Instant) {
        let Some(members) = self.pool_mut(name) else { return };
        let mut groups: BTreeMap<&Name, (Vec<IpAddr>, Vec<Balanced>)> = BTreeMap::new();
        for (address, backend) in &pool.backends {
            let Some(member) = members.get(address) else { continue };
            if member.agent_report.utilisation.is_none() && member.balance.is_some() {
                // Without a reported utilisation it gets the mean of the others, if there is one.
                members.change(address, |member| member.balance = None);
            }
            let Some(member) = members.get(address) else { continue };
            if member.state == MemberState::Up && backend.weight > 0 {
                let (addresses, balanced) = groups.entry(&backend.region).or_default();
                addresses.push(*address);
                balanced.push(Balanced {
                    weight: backend.weight,
                    own: member.own_share(pool, now) * member.asked_weight(),
                    share: member.balance,
                    utilisation: member
                        .agent_report
                        .utilisation
                        .map(|it| it.share() / member.asked_weight()),
                });
            }
        }
        for (addresses, mut balanced) in groups.into_values() {
            balance(&mut balanced, elapsed);
            for (address, balanced) in addresses.into_iter().zip(balanced) {
                members.change(&address, |member| member.balance = balanced.share);
            }
        }
    }

    /// A member of a pool came up: its share may rise for a while.
    pub(super) fn begin_slow_start(&mut self, name: &Name, pool: &Pool) {
        if let Some(members) = self.pool_mut(name)
            && !pool.slow_start.is_zero()
        {
            members.starting_until = Some(clock() + pool.slow_start + SLACK);
        }
    }

    /// Writes changed ramps of a pool to the packet path.
    pub(super) fn write_ramps(&mut self, name: &Name, pool: &Pool, path: &mut impl MemberPath) {
        let now = clock();
        let Some(members) = self.pool_mut(name) else { return };
        members.starting_until = members.starting_until.filter(|until| now < *until);
        let counts = members.counts();
        if counts.uneven + counts.reporting == 0 && members.starting_until.is_none() {
            return;
        }
        let mut groups: BTreeMap<&Name, (Vec<IpAddr>, Vec<Sharer>)> = BTreeMap::new();
        for (address, backend) in &pool.backends {
            let Some(member) = members.get(address) else { continue };
            if member.state == MemberState::Up && backend.weight > 0 {
                let share = member.own_share(pool, now) * member.balance.unwrap_or(1.0);
                let (addresses, sharers) = groups.entry(&backend.region).or_default();
                addresses.push(*address);
                let asked = member.asked_weight();
                sharers.push(Sharer { weight: backend.weight, share, asked });
            }
        }
        let mut written = Vec::new();
        for (addresses, sharers) in groups.into_values() {
            let is_other = |(address, ramp): &(IpAddr, u8)| {
                members.get(address).is_some_and(|member| member.ramp != Some(*ramp))
            };
            let changed: Vec<_> =
                addresses.into_iter().zip(ramps(&sharers)).filter(is_other).collect();
            if !changed.is_empty() && path.set_ramps(name, &changed) {
                for (address, ramp) in changed {
                    members.change(&address, |member| member.ramp = Some(ramp));
                    written.push(address);
                }
            }
        }
        written.into_iter().for_each(|address| self.note(name, address, Cause::Share));
    }
}

impl Member {
    /// The member's share by slow start and agent report.
    fn own_share(&self, pool: &Pool, now: Instant) -> f64 {
        let up = self.up_since.map(|since| now.saturating_duration_since(since));
        let started = up.map_or(1.0, |up| started(up, pool.slow_start));
        started * self.agent_report.percent.map_or(1.0, |percent| f64::from(percent) / 100.0)
    }
}
