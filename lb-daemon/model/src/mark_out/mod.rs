//! Marks members and regions out of home once they were out of service for a settle time. Pure: the caller
//! passes the time.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use crate::{Configuration, Name, plan::MarkedOut};

/// Whether a member or region can take new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Available,
    /// It cannot: unhealthy, unreachable, draining, disabled, or without a resolved next hop.
    Unavailable,
    /// Not checked yet.
    Unknown,
}

/// A pool's members with a weight in one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionAvailability {
    /// The region takes no new connections, whatever the state of its members.
    pub closed: bool,
    pub members: BTreeMap<IpAddr, Availability>,
}

impl RegionAvailability {
    fn any(&self, availability: Availability) -> bool {
        self.members.values().any(|member| *member == availability)
    }

    fn overall(&self) -> Availability {
        if self.closed {
            Availability::Unavailable
        } else if self.any(Availability::Available) {
            Availability::Available
        } else if self.any(Availability::Unknown) {
            Availability::Unknown
        } else {
            Availability::Unavailable
        }
    }
}

/// The unavailable members and regions of each pool: since when, and whether marked out. Available ones have
/// no entry, because this is computed every second and nearly all are available.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkOuts(BTreeMap<Name, PoolAbsences>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PoolAbsences {
    members: BTreeMap<IpAddr, Absence>,
    regions: BTreeMap<Name, Absence>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Absence {
    since: Option<Instant>,
    out: bool,
}

impl MarkOuts {
    /// The members and regions that an earlier daemon marked out, found in the maps.
    pub fn recovered(out: BTreeMap<Name, MarkedOut>) -> Self {
        let gone = Absence { since: None, out: true };
        let pools = out.into_iter().map(|(pool, out)| {
            let members = out.members.into_iter().map(|member| (member, gone)).collect();
            let regions = out.regions.into_iter().map(|region| (region, gone)).collect();
            (pool, PoolAbsences { members, regions })
        });
        Self(pools.collect())
    }

    /// The same absences, of which exactly these members and regions are marked out.
    #[must_use]
    pub fn with_out(&self, out: &BTreeMap<Name, MarkedOut>) -> Self {
        let mut next = self.clone();
        for absences in next.0.values_mut() {
            let members = absences.members.values_mut();
            members.chain(absences.regions.values_mut()).for_each(|absence| absence.out = false);
        }
        for (pool, out) in out {
            let absences = next.0.entry(pool.clone()).or_default();
            for member in &out.members {
                absences.members.entry(*member).or_default().out = true;
            }
            for region in &out.regions {
                absences.regions.entry(region.clone()).or_default().out = true;
            }
        }
        next
    }

    /// Only what a configuration has: its pools, their members with a weight, and the regions of these.
    #[must_use]
    pub fn within(&self, configuration: &Configuration) -> Self {
        let pools = self.0.iter().filter_map(|(name, absences)| {
            let pool = configuration.pools.get(name)?;
            let weighted = || pool.backends.iter().filter(|(_, backend)| backend.weight > 0);
            let has_member = |address: &IpAddr| {
                pool.backends.get(address).is_some_and(|backend| backend.weight > 0)
            };
            let has_region =
                |region: &Name| weighted().any(|(_, backend)| backend.region == *region);
            let members = absences.members.iter().filter(|(address, _)| has_member(address));
            let regions = absences.regions.iter().filter(|(region, _)| has_region(region));
            let absences = PoolAbsences {
                members: members.map(|(address, absence)| (*address, *absence)).collect(),
                regions: regions.map(|(region, absence)| (region.clone(), *absence)).collect(),
            };
            (absences != PoolAbsences::default()).then(|| (name.clone(), absences))
        });
        Self(pools.collect())
    }

    /// Adds to `next` what follows from the current availability of a pool with a settle time.
    pub fn observe(
        &self,
        next: &mut Self,
        pool: &Name,
        regions: &BTreeMap<Name, RegionAvailability>,
        (settle_time, now): (Duration, Instant),
    ) {
        let none = PoolAbsences::default();
        let before = self.0.get(pool).unwrap_or(&none);
        let mut after = PoolAbsences::default();
        let elsewhere = regions.values().any(|region| region.overall() == Availability::Available);
        for (name, region) in regions {
            let absence = before.regions.get(name).copied().unwrap_or_default();
            let absence = absence.after(region.overall(), elsewhere, (settle_time, now));
            if absence != Absence::default() {
                after.regions.insert(name.clone(), absence);
            }
            let available = region.any(Availability::Available);
            for (address, availability) in &region.members {
                let absence = before.members.get(address).copied().unwrap_or_default();
                let absence = absence.after(*availability, available, (settle_time, now));
                if absence != Absence::default() {
                    after.members.insert(*address, absence);
                }
            }
        }
        if after != none {
            next.0.insert(pool.clone(), after);
        }
    }

    /// What is marked out, by pool; pools with nothing marked out are left out.
    pub fn out(&self) -> BTreeMap<Name, MarkedOut> {
        let out = |(name, pool): (&Name, &PoolAbsences)| {
            let members = pool.members.iter().filter(|(_, absence)| absence.out);
            let regions = pool.regions.iter().filter(|(_, absence)| absence.out);
            let out = MarkedOut {
                members: members.map(|(address, _)| *address).collect(),
                regions: regions.map(|(region, _)| region.clone()).collect(),
            };
            (out != MarkedOut::default()).then(|| (name.clone(), out))
        };
        self.0.iter().filter_map(out).collect()
    }

    /// Whether a pool has members or regions that are unavailable or marked out.
    pub fn has(&self, pool: &Name) -> bool {
        self.0.contains_key(pool)
    }

    /// Whether a member is marked out.
    pub fn is_out(&self, pool: &Name, address: &IpAddr) -> bool {
        self.0.get(pool).and_then(|pool| pool.members.get(address)).is_some_and(|member| member.out)
    }

    /// Whether a region is marked out.
    pub fn is_region_out(&self, pool: &Name, region: &Name) -> bool {
        self.0.get(pool).and_then(|pool| pool.regions.get(region)).is_some_and(|region| region.out)
    }
}

impl Absence {
    /// `others`: another one is available to be home instead. Otherwise a change would gain nothing.
    fn after(
        self,
        availability: Availability,
        others: bool,
        (settle_time, now): (Duration, Instant),
    ) -> Self {
        match availability {
            Availability::Available => Self::default(),
            Availability::Unknown => Self { since: None, ..self },
            Availability::Unavailable => {
                let since = self.since.unwrap_or(now);
                let long = now.saturating_duration_since(since) >= settle_time;
                Self { since: Some(since), out: self.out || long && others }
            }
        }
    }
}
