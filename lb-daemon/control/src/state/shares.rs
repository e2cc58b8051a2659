//! Shares of new connections: who came up a short time ago has less, as long as the pool says; who says
//! so of itself has less, and who is utilised more than the others.

use std::{
    collections::BTreeMap,
    mem,
    net::IpAddr,
    time::{Duration, Instant},
};

use lb_common::abi::member::{Accepts, FULL_RAMP};

use super::{
    PacketPath, State,
    homes::clock,
    members::{Member, Members},
};
use lb_health::Utilisation;
use lb_model::{
    Configuration, Name, Pool,
    shares::{Balanced, Sharer, balance, ramps, started},
};

impl<P: PacketPath> State<P> {
    /// Makes the shares of all pools what they should be by now. Asked once a second.
    pub(super) fn keep_shares(&mut self) {
        let configuration = Self::in_force(&self.store);
        let now = clock();
        self.members.balance_all(configuration, now);
        self.members.share_all(configuration, &mut self.path, now);
    }
}

impl Members {
    /// Makes shares follow utilisation in the pools whose backends say theirs.
    fn balance_all(&mut self, configuration: &Configuration, now: Instant) {
        let elapsed = self.balanced_at.replace(now).map(|then| now.saturating_duration_since(then));
        for name in mem::take(&mut self.saying) {
            let Some(pool) = configuration.pools.get(&name) else { continue };
            self.balance(&name, pool, elapsed.unwrap_or_default(), now);
            let mut members = pool.backends.keys().map(|address| (name.clone(), *address));
            let says = |member: &Member| !member.report.is_nothing() || member.balance.is_some();
            if members.any(|key| self.get(&key).is_some_and(says)) {
                self.saying.insert(name);
            }
        }
    }

    /// The same for one pool, each of its groups by itself.
    fn balance(&mut self, name: &Name, pool: &Pool, elapsed: Duration, now: Instant) {
        let mut groups: BTreeMap<&Name, (Vec<IpAddr>, Vec<Balanced>)> = BTreeMap::new();
        for (address, backend) in &pool.backends {
            let Some(member) = self.get_mut(&(name.clone(), *address)) else { continue };
            if member.report.utilisation.is_none() {
                // Whoever takes connections gets the mean of the others, if there are any.
                member.balance = None;
            }
            if member.state == Accepts::All && backend.weight > 0 {
                let (addresses, balanced) = groups.entry(&backend.region).or_default();
                addresses.push(*address);
                balanced.push(Balanced {
                    weight: backend.weight,
                    own: member.own_share(pool, now),
                    share: member.balance,
                    utilisation: member.report.utilisation.map(Utilisation::share),
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

    /// Says to the packet path which shares the members of all pools have, where that is news.
    pub(super) fn share_all(
        &mut self,
        configuration: &Configuration,
        path: &mut impl PacketPath,
        now: Instant,
    ) {
        for (name, pool) in &configuration.pools {
            self.share(name, pool, path, now);
        }
    }

    /// The same for one pool.
    pub(super) fn share(
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
            if member.state == Accepts::All && backend.weight > 0 {
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

    /// Whether some member of a pool that is up has, or may have to have, less than its whole share.
    fn shares_differ(&self, name: &Name, pool: &Pool) -> bool {
        !pool.slow_start.is_zero()
            || self.saying.contains(name)
            || pool.backends.keys().any(|address| {
                let member = self.get(&(name.clone(), *address));
                member.is_some_and(|member| {
                    member.state == Accepts::All && member.ramp != Some(FULL_RAMP)
                })
            })
    }
}

impl Member {
    /// Its share by its start and by its own wish.
    fn own_share(&self, pool: &Pool, now: Instant) -> f64 {
        let up = self.up_since.map(|since| now.saturating_duration_since(since));
        let started = up.map_or(1.0, |up| started(up, pool.slow_start));
        started * self.report.percent.map_or(1.0, |percent| f64::from(percent) / 100.0)
    }
}
