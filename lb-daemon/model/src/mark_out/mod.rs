#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use crate::{Name, plan::MarkedOut};

/// Whether somebody can have new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// He can.
    Here,
    /// He cannot: dead, unfit, drained, disabled, or behind no next hop.
    Away,
    /// Nobody has asked yet.
    Unknown,
}

/// A pool's members with a weight in one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionPresence {
    /// It takes nothing, whoever is there.
    pub closed: bool,
    /// Its members.
    pub members: BTreeMap<IpAddr, Presence>,
}

impl RegionPresence {
    fn anybody(&self, presence: Presence) -> bool {
        self.members.values().any(|member| *member == presence)
    }

    fn whole(&self) -> Presence {
        if self.closed {
            Presence::Away
        } else if self.anybody(Presence::Here) {
            Presence::Here
        } else if self.anybody(Presence::Unknown) {
            Presence::Unknown
        } else {
            Presence::Away
        }
    }
}

/// Who of each pool is away, since when, and who for so long that he was marked out. Who is here has
/// no entry: that is nearly everybody, and it is asked every second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkOuts(BTreeMap<Name, OfPool>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfPool {
    members: BTreeMap<IpAddr, Absence>,
    regions: BTreeMap<Name, Absence>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Absence {
    since: Option<Instant>,
    out: bool,
}

impl MarkOuts {
    /// What an earlier daemon marked out.
    pub fn found(out: BTreeMap<Name, MarkedOut>) -> Self {
        let gone = Absence { since: None, out: true };
        let pools = out.into_iter().map(|(pool, out)| {
            let members = out.members.into_iter().map(|member| (member, gone)).collect();
            let regions = out.regions.into_iter().map(|region| (region, gone)).collect();
            (pool, OfPool { members, regions })
        });
        Self(pools.collect())
    }

    /// The same, with what is known now of a pool with a settle time.
    pub fn observe(
        &self,
        next: &mut Self,
        pool: &Name,
        regions: &BTreeMap<Name, RegionPresence>,
        (settle_time, now): (Duration, Instant),
    ) {
        let nobody = OfPool::default();
        let before = self.0.get(pool).unwrap_or(&nobody);
        let mut after = OfPool::default();
        let elsewhere = regions.values().any(|region| region.whole() == Presence::Here);
        for (name, region) in regions {
            let absent = before.regions.get(name).copied().unwrap_or_default();
            let absent = absent.after(region.whole(), elsewhere, (settle_time, now));
            if absent != Absence::default() {
                after.regions.insert(name.clone(), absent);
            }
            let here = region.anybody(Presence::Here);
            for (address, presence) in &region.members {
                let absent = before.members.get(address).copied().unwrap_or_default();
                let absent = absent.after(*presence, here, (settle_time, now));
                if absent != Absence::default() {
                    after.members.insert(*address, absent);
                }
            }
        }
        if after != nobody {
            next.0.insert(pool.clone(), after);
        }
    }

    /// What is marked out, of pools of which anything is.
    pub fn out(&self) -> BTreeMap<Name, MarkedOut> {
        let out = |(name, pool): (&Name, &OfPool)| {
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

    /// Whether a member is.
    pub fn is_out(&self, pool: &Name, address: &IpAddr) -> bool {
        self.0.get(pool).and_then(|pool| pool.members.get(address)).is_some_and(|member| member.out)
    }

    /// Whether a region is.
    pub fn is_region_out(&self, pool: &Name, region: &Name) -> bool {
        self.0.get(pool).and_then(|pool| pool.regions.get(region)).is_some_and(|region| region.out)
    }
}

impl Absence {
    /// `others`: somebody can be home instead. Without, nothing is gained by a change.
    fn after(
        self,
        presence: Presence,
        others: bool,
        (settle_time, now): (Duration, Instant),
    ) -> Self {
        match presence {
            Presence::Here => Self::default(),
            Presence::Unknown => Self { since: None, ..self },
            Presence::Away => {
                let since = self.since.unwrap_or(now);
                let long = now.saturating_duration_since(since) >= settle_time;
                Self { since: Some(since), out: self.out || long && others }
            }
        }
    }
}
