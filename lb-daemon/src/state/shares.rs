//! Shares of new connections: who came up a short time ago has less, as long as the pool says.

use std::{collections::BTreeMap, net::IpAddr, time::Instant};

use lb_common::abi::member::{FULL_RAMP, MemberState};

use super::{PacketPath, State, homes::clock, members::Members};
use crate::{
    model::{Configuration, Name, Pool},
    shares::{Sharer, ramps, started},
};

impl<P: PacketPath> State<P> {
    /// Makes the shares of all pools what they should be by now.
    pub(super) fn keep_shares(&mut self) {
        let configuration = Self::in_force(&self.store);
        self.members.share_all(configuration, &mut self.path, clock());
    }
}

impl Members {
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
            if member.state == MemberState::Up && backend.weight > 0 {
                let up = member.up_since.map(|since| now.saturating_duration_since(since));
                let share = up.map_or(1.0, |up| started(up, pool.slow_start));
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
            || pool.backends.keys().any(|address| {
                let member = self.get(&(name.clone(), *address));
                member.is_some_and(|member| {
                    member.state == MemberState::Up && member.ramp != Some(FULL_RAMP)
                })
            })
    }
}
