//! Remaps: when what home meant before is forgotten, and who is marked out.
//!
//! The packet path keeps what a remap replaced until it is told to forget it. Which pools have
//! something to forget is asked of it each time, so nothing is lost with the daemon but the time that
//! had passed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Instant, SystemTime},
};

use super::{PacketPath, State, members::Member};
use crate::{
    command::SettlingStatus,
    reconcile::{Home, Homes},
};
use lb_base::error_chain;
use lb_model::{
    Configuration, MemberState, Name, Scaler,
    ids::Ids,
    mark_out::{Availability, MarkOuts, RegionAvailability},
    plan::{self, MarkedOut},
    remap::{Phase, Settling},
};

/// Homes of all pools.
#[derive(Debug, Default)]
pub(super) struct HomeKeeper {
    pub(super) mark_outs: MarkOuts,
    /// Pools in a remap by index, with what their home is.
    settling: BTreeMap<u32, (Option<Home>, Settling)>,
    /// Adoptions that were refused until the last look.
    refused: Option<u64>,
    /// Why who is away cannot be marked out.
    stuck: Option<String>,
}

impl HomeKeeper {
    /// One that goes on where an earlier daemon stopped: its members and regions marked out are.
    pub(super) fn found(
        configuration: &Configuration,
        own: Option<&Name>,
        ids: &Ids,
        homes: &BTreeMap<u32, Homes>,
    ) -> Self {
        let found = configuration.pools.iter().filter_map(|(name, pool)| {
            let homes = homes.get(&ids.pool(name)?)?;
            let order = plan::regions(configuration, own, pool);
            let index = |region: &&Name| ids.region(region);
            let regions = displaced(&order.iter().filter_map(index).collect::<Vec<_>>(), homes);
            let regions =
                order.into_iter().filter(|r| index(r).is_some_and(|r| regions.contains(&r)));
            let out = MarkedOut { members: homes.out.clone(), regions: regions.cloned().collect() };
            Some((name.clone(), out))
        });
        Self { mark_outs: MarkOuts::recovered(found.collect()), ..Self::default() }
    }

    /// Takes in what home means now.
    pub(super) fn see(&mut self, homes: &BTreeMap<u32, Homes>, now: Instant) {
        self.settling.retain(|pool, _| homes.get(pool).is_some_and(|homes| homes.has_previous));
        for (pool, homes) in homes.iter().filter(|(_, homes)| homes.has_previous) {
            let begun = (homes.current, Settling::begin(now));
            let (home, settling) = self.settling.entry(*pool).or_insert(begun);
            if *home != homes.current {
                *home = homes.current;
                settling.change(now);
            }
        }
    }
}

/// The regions that come last though they should not, where an order was found and another wanted: the
/// found one is that of those which are not among them, and then that of those which are.
fn displaced(wanted: &[u32], found: &Homes) -> BTreeSet<u32> {
    let place = |region: &u32| wanted.iter().position(|other| other == region);
    let places: Vec<_> = found.regions.iter().filter_map(|r| Some((place(r)?, *r))).collect();
    let kept = places.windows(2).take_while(|pair| pair[0].0 < pair[1].0).count() + 1;
    places.into_iter().skip(kept).map(|(_, region)| region).collect()
}

impl<P: PacketPath> State<P> {
    /// Looks after remaps: once a second.
    pub(super) fn keep_homes(&mut self) {
        if self.plan.is_none() {
            return;
        }
        // Also where the packet path is behind: it may be for want of what this gives back.
        self.settle_homes(clock());
        if self.behind.is_none() {
            self.mark_out(clock());
        }
    }

    /// Lets remaps go on.
    fn settle_homes(&mut self, now: Instant) {
        let homes = self.path.homes();
        self.homes.see(&homes, now);
        if self.homes.settling.is_empty() {
            return;
        }
        let refused = self.are_adoptions_refused();
        let mut over = BTreeSet::new();
        let configuration = Self::in_force(&self.store);
        for (name, pool) in &configuration.pools {
            let Some(index) = self.ids.pool(name) else { continue };
            let Some((_, settling)) = self.homes.settling.get_mut(&index) else { continue };
            let adopting = homes.get(&index).is_some_and(|homes| homes.adopting);
            if refused && adopting {
                settling.refuse(now);
            }
            match settling.phase(pool.settle_time, now) {
                Phase::Over => drop(over.insert(index)),
                phase if adopting != (phase == Phase::Adopting) => {
                    tracing::info!(pool = %name, ?phase, "pool {name}: its remap is {phase:?}");
                    self.path.set_adopting(index, !adopting);
                }
                _ => {}
            }
        }
        if !over.is_empty() {
            self.forget_previous(&over);
        }
    }

    fn forget_previous(&mut self, pools: &BTreeSet<u32>) {
        match self.path.forget_previous(pools) {
            Ok(()) => tracing::info!(pools = pools.len(), "remaps are over: {} pools", pools.len()),
            Err(error) => {
                tracing::error!(
                    error = error_chain::message(&error),
                    "what home meant before is not freed"
                );
            }
        }
        self.homes.see(&self.path.homes(), clock());
        self.rests.settle(&self.ids, &self.path.named(), Instant::now());
        self.point_sensors();
    }

    fn are_adoptions_refused(&mut self) -> bool {
        match self.path.adoptions_refused() {
            Ok(refused) => {
                let before = self.homes.refused.replace(refused);
                before.is_some_and(|before| before < refused)
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain::message(&error),
                    "the counters of adoptions cannot be read"
                );
                false
            }
        }
    }

    /// Marks out who was away for long, and back who came back, by one remap a pool.
    fn mark_out(&mut self, now: Instant) {
        let mark_outs = self.mark_outs_in(self.configuration(), now);
        if mark_outs.out() == self.homes.mark_outs.out() {
            self.homes.mark_outs = mark_outs;
            return;
        }
        let plan = match self.plan_of(self.configuration(), &self.ids, &mark_outs) {
            Ok(plan) => plan,
            Err(error) => return self.be_stuck(error_chain::message(&error)),
        };
        if let Err(error) = self.path.check(&plan) {
            return self.be_stuck(error_chain::message(&error));
        }
        self.homes.stuck = None;
        self.homes.mark_outs = mark_outs;
        let out = self.homes.mark_outs.out();
        tracing::info!(?out, "backends and regions marked out: {out:?}");
        if self.plan.as_ref() == Some(&plan) {
            return;
        }
        self.plan = Some(plan);
        if let Err(error) = self.bring_along() {
            tracing::error!(error = error_chain::message(&error), "the packet path is behind");
        }
        self.point_sensors();
    }

    fn be_stuck(&mut self, why: String) {
        if self.homes.stuck.as_ref() != Some(&why) {
            tracing::warn!(why, "backends that are away cannot be marked out yet: {why}");
        }
        self.homes.stuck = Some(why);
    }

    /// Who of a configuration's pools is away, now.
    pub(super) fn mark_outs_in(&self, configuration: &Configuration, now: Instant) -> MarkOuts {
        let mut next = MarkOuts::default();
        for (name, pool) in &configuration.pools {
            let order = plan::regions(configuration, self.settings.region.as_ref(), pool);
            let region = |name: &Name| {
                let closed = pool.group(name).effective_scaler() == Scaler::NONE;
                (name.clone(), RegionAvailability { closed, members: BTreeMap::new() })
            };
            let mut regions: BTreeMap<Name, _> = order.into_iter().map(region).collect();
            let members = self.members.of_pool(name);
            for (address, backend) in pool.backends.iter().filter(|(_, b)| b.weight > 0) {
                let Some(region) = regions.get_mut(&backend.region) else { continue };
                let member = members.and_then(|members| members.get(address));
                let presence = match (member, self.hops.get(address)) {
                    (Some(Member { judged: true, .. }), Some(Err(_))) => Availability::Unavailable,
                    (Some(member), _) => presence(member),
                    (None, _) => Availability::Unknown,
                };
                region.members.insert(*address, presence);
            }
            let time = (pool.settle_time, now);
            self.homes.mark_outs.observe(&mut next, name, &regions, time);
        }
        next
    }

    /// The pools in a remap, by name.
    pub(super) fn settling(&self) -> Vec<SettlingStatus> {
        let (now, wall) = (clock(), SystemTime::now());
        let at = |moment: Instant| match moment.checked_duration_since(now) {
            Some(ahead) => wall + ahead,
            None => wall - now.duration_since(moment),
        };
        let pools = self.configuration().pools.iter().filter_map(|(name, pool)| {
            let (_, settling) = self.homes.settling.get(&self.ids.pool(name)?)?;
            Some(SettlingStatus {
                pool: name.clone(),
                since: at(settling.since()),
                adopts_at: at(settling.adopts_at(pool.settle_time)),
                ends_at: at(settling.ends_at(pool.settle_time)),
                adopting: settling.phase(pool.settle_time, now) > Phase::Settling,
            })
        });
        pools.collect()
    }
}

fn presence(member: &Member) -> Availability {
    match member.state {
        _ if !member.judged => Availability::Unknown,
        MemberState::Up => Availability::Available,
        _ => Availability::Unavailable,
    }
}

/// Now, as the time of changes counts.
pub(super) fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(regions: &[u32]) -> Homes {
        Homes {
            current: None,
            has_previous: false,
            adopting: false,
            regions: regions.to_vec(),
            out: BTreeSet::new(),
        }
    }

    #[test]
    fn what_stands_last_against_the_order_was_taken_out() {
        let displaced = |regions: &[u32]| displaced(&[1, 2, 3, 4], &found(regions));
        assert_eq!(displaced(&[1, 2, 3, 4]), [].into());
        assert_eq!(displaced(&[2, 3, 4, 1]), [1].into());
        assert_eq!(displaced(&[3, 4, 1, 2]), [1, 2].into());
        assert_eq!(displaced(&[1, 4, 2, 3]), [2, 3].into());
        assert_eq!(displaced(&[1, 2, 4, 3]), [3].into());
        // Others are of a configuration that the packet path does not have yet.
        assert_eq!(displaced(&[9, 2, 3, 4, 1]), [1].into());
        assert_eq!(displaced(&[]), [].into());
    }
}
