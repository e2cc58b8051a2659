use std::num::NonZeroU32;

use lb_common::abi::{counter::GroupCounter, limiter::LimitWord};

use super::{Capacity, Member};
use crate::GroupSettings;

/// A group as the packet path has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Index of its pool.
    pub pool: u32,
    /// Index of its region.
    pub region: u32,
    /// What is set of it.
    pub settings: GroupSettings,
    /// Balancers that share its capacity.
    pub balancers: NonZeroU32,
    /// Its members by rank.
    pub members: Vec<Member>,
    /// This balancer's limit.
    pub limit: LimitWord,
    /// What was counted since the group was made.
    pub counters: GroupCounter,
}

impl Reading {
    /// Its capacity now.
    pub fn capacity(&self) -> Capacity {
        Capacity::of(self.settings, self.members.iter().copied())
    }

    /// Its capacity with everybody healthy and the scaler at 1; never closed.
    pub fn configured(&self) -> Capacity {
        let settings =
            GroupSettings { capacity: self.settings.capacity, ..GroupSettings::default() };
        let healthy = |member: &Member| Member { healthy: true, ..*member };
        Capacity::of(settings, self.members.iter().map(healthy))
    }

    /// Mean limit of those of its members that have a weight and a limit, a second.
    pub fn backend_rate(&self) -> Option<f64> {
        let weighted = self.members.iter().filter(|member| member.weighted);
        let rates: Vec<_> = weighted.filter_map(|m| Some(m.rate?.per_second())).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// How much one more such member would raise this balancer's limit, a second.
    pub fn gain(&self) -> Option<f64> {
        let share = self.settings.in_use().share() / f64::from(self.balancers.get());
        self.backend_rate().map(|rate| rate * share)
    }
}
