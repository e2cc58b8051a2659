//! From what is configured and who is healthy to the limits that the packet path keeps to, and from
//! what it counted to what is missing. Pure: no map is read or written here.

mod demand;
mod limit;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use lb_common::abi::{counter::GroupCounter, limiter::LimitWord};

use crate::{GroupSettings, Rate, Scaler};

pub use demand::{Connections, Rates, missing_backends, per_second, utilisation};
pub use limit::{Share, budget, is_lower, shares};

/// How many new connections a second a group takes, over all balancers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// As many as come.
    Unlimited,
    /// So many; more than 0.
    PerSecond(f64),
    /// None.
    Closed,
}

/// What counts of a member for the capacity of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whether it has a weight: who has none takes nothing and counts for nothing.
    pub weighted: bool,
    /// Whether it can have new connections.
    pub healthy: bool,
    /// Whether it is a last resort: it counts where nobody is healthy.
    pub last_resort: bool,
    /// Its own limit.
    pub rate: Option<Rate>,
}

impl Capacity {
    /// New connections a second, 0 where it takes none; `None`: as many as come.
    pub fn per_second(self) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::PerSecond(rate) => Some(rate),
            Self::Closed => Some(0.0),
        }
    }

    /// The capacity of a group with these settings and members: what is set, or else the sum over
    /// its healthy members where every one with a weight has a limit of its own, times the scaler.
    pub fn of_members(settings: GroupSettings, members: impl IntoIterator<Item = Member>) -> Self {
        if settings.effective_scaler() == Scaler::NONE {
            return Self::Closed;
        }
        let whole = match settings.capacity {
            Some(rate) => rate.per_second(),
            None => match sum(members) {
                Some(0.0) => return Self::Closed,
                Some(sum) => sum,
                None => return Self::Unlimited,
            },
        };
        Self::PerSecond(whole * settings.effective_scaler().share())
    }

    /// Whether the health of members makes a difference.
    pub fn follows_health(
        settings: GroupSettings,
        members: impl IntoIterator<Item = Member>,
    ) -> bool {
        settings.capacity.is_none()
            && settings.effective_scaler() != Scaler::NONE
            && sum(members).is_some()
    }
}

/// The rates of the healthy, or where nobody is, of those that are the last resort; `None` where one
/// with a weight has no limit, or nobody has a weight.
fn sum(members: impl IntoIterator<Item = Member>) -> Option<f64> {
    let (mut healthy, mut last_resort, mut anybody) = (0.0, 0.0, false);
    for member in members.into_iter().filter(|member| member.weighted) {
        let rate = member.rate?.per_second();
        anybody = true;
        if member.healthy {
            healthy += rate;
        } else if member.last_resort {
            last_resort += rate;
        }
    }
    let sum = if healthy > 0.0 { healthy } else { last_resort };
    anybody.then_some(sum)
}

/// A group as the packet path has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReading {
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

impl GroupReading {
    /// Its capacity now.
    pub fn capacity(&self) -> Capacity {
        Capacity::of_members(self.settings, self.members.iter().copied())
    }

    /// Its capacity with everybody healthy and the scaler at 1; never closed.
    pub fn configured(&self) -> Capacity {
        let settings =
            GroupSettings { capacity: self.settings.capacity, ..GroupSettings::default() };
        let healthy = |member: &Member| Member { healthy: true, ..*member };
        Capacity::of_members(settings, self.members.iter().map(healthy))
    }

    /// Mean limit of those of its members that have a weight and a limit, a second.
    pub fn backend_rate(&self) -> Option<f64> {
        let weighted = self.members.iter().filter(|member| member.weighted);
        let rates: Vec<_> = weighted.filter_map(|m| Some(m.rate?.per_second())).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// How much one more such member would raise this balancer's limit, a second.
    pub fn gain(&self) -> Option<f64> {
        let share = self.settings.effective_scaler().share() / f64::from(self.balancers.get());
        self.backend_rate().map(|rate| rate * share)
    }
}
