//! Computes the limits of the packet path from configuration and health, and the missing backends from the
//! counters. Pure: it reads and writes no map.

mod demand;
mod limit;
mod portion;
#[cfg(test)]
mod tests;

use lb_common::abi::{counter::GroupCounter, limiter::LimitWord};

use crate::{GroupSettings, Rate, Scaler};

pub use demand::{Connections, Rates, missing_backends, per_second, utilisation};
pub use limit::{Share, is_lower};
pub use portion::{
    FleetPortions, GroupChanges, GroupName, Portion, PortionChanges, Portions, PortionsInForce,
};

/// New connections a second that a group admits, over all balancers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    Unlimited,
    /// More than 0.
    PerSecond(f64),
    /// It admits none.
    Closed,
}

/// What the capacity of a group depends on in each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whether its weight is above 0. Otherwise it takes no connections and does not count.
    pub weighted: bool,
    /// Whether it can take new connections.
    pub healthy: bool,
    /// Whether it is a last resort, which counts if no member is healthy.
    pub last_resort: bool,
    /// Its own limit.
    pub rate: Option<Rate>,
}

impl Capacity {
    /// New connections a second; `None`: unlimited.
    pub fn per_second(self) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::PerSecond(rate) => Some(rate),
            Self::Closed => Some(0.0),
        }
    }

    /// The capacity of a group: the configured one, or the sum over its healthy members if every member with a
    /// weight has a limit, times the scaler.
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

    /// Whether the capacity depends on the health of members.
    pub fn follows_health(
        settings: GroupSettings,
        members: impl IntoIterator<Item = Member>,
    ) -> bool {
        settings.capacity.is_none()
            && settings.effective_scaler() != Scaler::NONE
            && sum(members).is_some()
    }
}

/// Sums the rates of healthy members, or of last resorts if no member is healthy. `None`: a member with a
/// weight has no limit, or no member has a weight.
fn sum(members: impl IntoIterator<Item = Member>) -> Option<f64> {
    let (mut healthy, mut last_resort, mut any_weight) = (0.0, 0.0, false);
    for member in members.into_iter().filter(|member| member.weighted) {
        let rate = member.rate?.per_second();
        any_weight = true;
        if member.healthy {
            healthy += rate;
        } else if member.last_resort {
            last_resort += rate;
        }
    }
    let sum = if healthy > 0.0 { healthy } else { last_resort };
    any_weight.then_some(sum)
}

/// The state of a group in the maps, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReading {
    /// Index of its pool.
    pub pool: u32,
    /// Index of its region.
    pub region: u32,
    pub settings: GroupSettings,
    /// This balancer's part of the capacity.
    pub portion: Portion,
    /// By rank.
    pub members: Vec<Member>,
    /// This balancer's limit.
    pub limit: LimitWord,
    /// Counted since the group was created.
    pub counters: GroupCounter,
}

impl GroupReading {
    pub fn capacity(&self) -> Capacity {
        Capacity::of_members(self.settings, self.members.iter().copied())
    }

    /// The capacity with all members healthy and the scaler at 1; never closed.
    pub fn configured(&self) -> Capacity {
        let settings =
            GroupSettings { capacity: self.settings.capacity, ..GroupSettings::default() };
        let healthy = |member: &Member| Member { healthy: true, ..*member };
        Capacity::of_members(settings, self.members.iter().map(healthy))
    }

    /// Mean limit a second over the members that have a weight and a limit.
    pub fn backend_rate(&self) -> Option<f64> {
        let weighted = self.members.iter().filter(|member| member.weighted);
        let rates: Vec<_> = weighted.filter_map(|m| Some(m.rate?.per_second())).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// By how much one more such member would raise this balancer's limit, a second.
    pub fn gain(&self) -> Option<f64> {
        let share = self.settings.effective_scaler().share() * self.portion.fraction();
        self.backend_rate().map(|rate| rate * share)
    }
}
