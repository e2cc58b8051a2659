//! Shares of new connections, as ramps of members. A member's share is smaller during slow start, if its
//! agent report asks for less, and if it is utilised more than others.

use std::{
    collections::BTreeMap,
    mem,
    net::IpAddr,
    time::{Duration, Instant},
};

use lb_common::abi::member::FULL_RAMP;

use super::{
    PacketPath, State,
    members::clock,
    members::{Member, Members},
};
use lb_health::Utilisation;
use lb_model::{
    Configuration, MemberState, Name, Pool,
    shares::{Balanced, Sharer, balance, ramps, started},
};

impl<P: PacketPath> State<P> {
    /// Updates the shares of all pools, once a second.
    pub(super) fn update_shares(&mut self) {
        let configuration = Self::in_force(&self.store);
        let now = clock();
        self.members.balance_all(configuration, now);
        self.members.write_all_ramps(configuration, &mut self.path, now);
    }
}

impl Members {
    /// Balances pools whose backends report their utilisation.
    fn balance_all(&mut self, configuration: &Configuration, now: Instant) {
        let elapsed = self.balanced_at.replace(now).map(|then| now.saturating_duration_since(then));
        for name in mem::take(&mut self.reporting) {
            let Some(pool) = configuration.pools.get(&name) else { continue };
            self.balance(&name, pool, elapsed.unwrap_or_default(), now);
            let mut members = pool.backends.keys().map(|address| (name.clone(), *address));
            let says =
                |member: &Member| !member.agent_report.is_nothing() || member.balance.is_some();
            if members.any(|key| self.get(&key).is_some_and(says)) {
                self.reporting.insert(name);
            }
        }
    }

    /// The same for one pool, each group on its own.
    fn balance(&mut self, name: &Name, pool: &Pool, elapsed: Duration, now: Instant) {
        let mut groups: BTreeMap<&Name, (Vec<IpAddr>, Vec<Balanced>)> = BTreeMap::new();
        for (address, backend) in &pool.backends {
            let Some(member) = self.get_mut(&(name.clone(), *address)) else { continue };
            if member.agent_report.utilisation.is_none() {
                // Without a reported utilisation it gets the mean of the others, if there is one.
                member.balance = None;
            }
            if member.state == MemberState::Up && backend.weight > 0 {
                let (addresses, balanced) = groups.entry(&backend.region).or_default();
                addresses.push(*address);
                balanced.push(Balanced {
                    weight: backend.weight,
                    own: member.own_share(pool, now),
                    share: member.balance,
                    utilisation: member.agent_report.utilisation.map(Utilisation::share),
                });
            }
        }
        for (addresses, mut balanced) in groups.into_values() {
            balance(&mut balanced, elapsed);
            for (address, balanced) in addresses.into_iter().zip(balanced) {
                if let Some(member) = self.get_mut(&(name.clone(), address)) {
                    member.balance = balanced.share;
                }
            }
        }
    }

    /// Writes changed ramps of all pools to the packet path.
    pub(super) fn write_all_ramps(
        &mut self,
        configuration: &Configuration,
        path: &mut impl PacketPath,
        now: Instant,
    ) {
        for (name, pool) in &configuration.pools {
            self.write_ramps(name, pool, path, now);
        }
    }

    /// The same for one pool.
    pub(super) fn write_ramps(
        &mut self,
        name: &Name,
        pool: &Pool,
        path: &mut impl PacketPath,
        now: Instant,
    ) {
        if !self.shares_differ(name, pool) {
            return;
        }
        let mut groups: BTreeMap<&Name, (Vec<IpAddr>, Vec<Sharer>)> = BTreeMap::new();
        for (address, backend) in &pool.backends {
            let Some(member) = self.get(&(name.clone(), *address)) else { continue };
            if member.state == MemberState::Up && backend.weight > 0 {
                let share = member.own_share(pool, now) * member.balance.unwrap_or(1.0);
                let (addresses, sharers) = groups.entry(&backend.region).or_default();
                addresses.push(*address);
                sharers.push(Sharer { weight: backend.weight, share });
            }
        }
        for (addresses, sharers) in groups.into_values() {
            for (address, ramp) in addresses.into_iter().zip(ramps(&sharers)) {
                let Some(member) = self.get_mut(&(name.clone(), address)) else { continue };
                if member.ramp != Some(ramp) && path.set_ramp(name, address, ramp) {
                    member.ramp = Some(ramp);
                }
            }
        }
    }

    /// Whether some member that is up has, or may need, less than its full share.
    fn shares_differ(&self, name: &Name, pool: &Pool) -> bool {
        !pool.slow_start.is_zero()
            || self.reporting.contains(name)
            || pool.backends.keys().any(|address| {
                let member = self.get(&(name.clone(), *address));
                member.is_some_and(|member| {
                    member.state == MemberState::Up && member.ramp != Some(FULL_RAMP)
                })
            })
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
