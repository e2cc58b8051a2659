//! Member words and all that follows from health and next hops: standbys, limits, backend states, next hops.
//!
//! Only [`MemberWords`] writes them, and it waits for nothing: for no disk, no table, no grace period. The reconciler
//! hands it changes in small steps, between which changes of health go on. The words of new groups are written before
//! packets can see them, and those of old ones are let go of before their place is used again.

mod backend_states;
mod change;
mod limits;
mod locations;
mod member_states;
mod next_hop_table;
mod next_hops;
mod pool_accepts;
mod standby;
mod steps;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    future,
    net::IpAddr,
    sync::Arc,
};

use lb_common::abi::{
    clock::{Nanoseconds, USUAL_TICK},
    member::Accepts,
};

use super::{
    ReconcileError, Settings,
    published::{Published, PublishedGroup},
};
use backend_states::SharedStates;
use lb_maps::{MapsError, MemberMaps, clock};
use lb_model::{
    Name,
    capacity::{GroupName, PortionsInForce},
    next_hop::NextHop,
    overrides::Overrides,
    plan::PlannedBackend,
};
use lb_net::{Bonds, ConfiguredInterfaces};
use locations::MemberLocations;
use member_states::MemberStates;
use next_hop_table::NextHopTable;
use pool_accepts::PoolAccepts;

pub(super) use change::{NewGroup, PoolMembers};
pub(super) use limits::reading_members;
pub(super) use steps::Steps;

/// What the member loop needs of the packet path.
pub trait MemberPath: Send {
    /// `None` if the last plan has no such member.
    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts>;

    /// Changes the states of members of a pool. Members that the last plan does not have are left out.
    fn set_states(&mut self, pool: &Name, states: &[(IpAddr, Accepts)]);

    /// Sets whether the member may get new connections that no other member can take. False if the last plan has
    /// no such member.
    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool;

    /// Sets the share of its slots' new connections that each of these members takes, 255 for all. False if the last plan
    /// does not have all of them.
    fn set_ramps(&mut self, pool: &Name, ramps: &[(IpAddr, u8)]) -> bool;

    /// Sets the overrides that limits are written under from now on.
    fn set_overrides(&mut self, overrides: Arc<Overrides>);

    /// Writes the limits of the groups that these members of a pool are in again, under the overrides.
    fn update_limits(&mut self, pool: &Name, members: &[IpAddr]);

    /// Sets the portions of capacities that limits are written under from now on.
    fn set_portions(&mut self, portions: PortionsInForce);

    /// Writes the limits of groups and of their members again, under the portions. Groups that packets do not see are left
    /// out. Changes of health wait for it, so it may stop before the end: returns how many of the groups are done, at least
    /// one.
    fn update_group_limits(&mut self, groups: &[GroupName]) -> usize;

    /// The groups whose limits it writes.
    fn groups(&self) -> Vec<GroupName>;

    /// Whether a plan has said of all groups that packets see what their limits follow from. The limits of others stay as
    /// they were found.
    fn is_described(&self) -> bool;

    /// Takes a backend's next hop away for a while, if it has one: it gets no new connections, and packets of its open ones
    /// are dropped, until it is given one again or none. Returns whether that is so now.
    fn await_next_hop(&mut self, backend: IpAddr) -> bool;

    /// Sets a backend's next hop. Without one it gets no packets, whatever its state.
    ///
    /// # Errors
    /// The interface cannot be used, or there is no room: nothing changed.
    fn set_next_hop(&mut self, backend: IpAddr, hop: Option<NextHop>)
    -> Result<(), ReconcileError>;

    /// Forgets the next hops of all other backends, unless packets may still meet them.
    fn keep_next_hops(&mut self, backends: &BTreeSet<IpAddr>);

    /// Sets the interfaces that settings name, for next hops that are set from now on.
    fn set_configured_interfaces(&mut self, interfaces: &ConfiguredInterfaces);

    /// Sets which interfaces are ports of bonds.
    fn set_bonds(&mut self, bonds: &Bonds);

    /// Waits for the next step of a change that is being published, and takes it. It may be cancelled while it waits.
    fn next_step(&mut self) -> impl Future<Output = ()> + Send {
        future::pending()
    }
}

/// The only writer of what follows from health and next hops.
#[derive(Debug)]
pub struct MemberWords {
    maps: MemberMaps,
    /// The groups that packets see or are about to see, by index.
    groups: HashMap<u32, Arc<PublishedGroup>>,
    /// Limiters of groups that change: until packets see the change, they only get lower.
    changing: HashSet<u32>,
    /// Groups that get other settings, as they are until packets see the change, by index. The lower limit of both counts.
    replaced: HashMap<u32, Arc<PublishedGroup>>,
    /// Whether a plan has described all groups.
    described: bool,
    /// Where each member's word is.
    locations: MemberLocations,
    /// The status of each member, including members without a word.
    states: MemberStates,
    /// States of backends that several pools have.
    shared: SharedStates,
    /// The most that members of each pool accept.
    pool_accepts: PoolAccepts,
    /// Which next hop each backend uses.
    next_hops: NextHopTable,
    /// What operators ask for beside the plan.
    overrides: Arc<Overrides>,
    /// This balancer's portions of the capacities.
    portions: PortionsInForce,
    /// The last plan's backends.
    backends: HashMap<IpAddr, PlannedBackend>,
    /// Step of the packet path's clock.
    tick: Nanoseconds,
    settings: Settings,
    steps: steps::Receiver,
    /// Whether a write failed, so that the maps must be read again.
    stale: bool,
}

impl MemberWords {
    /// Takes over the words as they are.
    pub(super) fn new(
        maps: MemberMaps,
        published: &Published,
        settings: Settings,
    ) -> Result<(Self, Steps), MapsError> {
        let (sender, steps) = steps::channel(settings.loop_counters.queue());
        let mut words = Self {
            groups: HashMap::new(),
            changing: HashSet::new(),
            replaced: HashMap::new(),
            described: false,
            locations: MemberLocations::default(),
            states: MemberStates::default(),
            shared: SharedStates::new(),
            pool_accepts: PoolAccepts::new(),
            next_hops: NextHopTable::new(),
            overrides: Arc::default(),
            portions: PortionsInForce::default(),
            backends: HashMap::new(),
            tick: clock::tick().unwrap_or(USUAL_TICK),
            settings,
            steps,
            stale: false,
            maps,
        };
        words.see_groups(&published.groups)?;
        words.recover();
        words.rewrite_member_words();
        words.settle_pool_accepts(published.groups.values().map(|group| group.pool).collect());
        words.maps.clamp_limiters();
        words.limit_answers();
        Ok((words, sender))
    }

    fn see_groups(&mut self, groups: &BTreeMap<u32, Arc<PublishedGroup>>) -> Result<(), MapsError> {
        self.shared = backend_states::read_shared(&self.maps)?;
        self.groups = groups.iter().map(|(at, group)| (*at, Arc::clone(group))).collect();
        self.changing.clear();
        self.replaced.clear();
        self.described = false;
        self.locations = MemberLocations::default();
        for (at, group) in &self.groups {
            self.locations.add(*at, group);
        }
        Ok(())
    }

    /// The maps, to read.
    pub fn maps(&self) -> &MemberMaps {
        &self.maps
    }
}

impl MemberPath for MemberWords {
    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts> {
        Some(self.states.get_planned(self.states.pool(pool)?, &address)?.state)
    }

    /// The lower limit and the word of a member that goes down come first, and its backend state last; for one that
    /// comes up it is the other way round. So no connection is where the backend state forbids it, and no limit counts a
    /// member that takes nothing. One store each, whatever the size of the pool.
    fn set_states(&mut self, pool: &Name, states: &[(IpAddr, Accepts)]) {
        self.change_members(pool, states, |status, state| status.state = state);
    }

    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool {
        let change = [(address, last_resort)];
        self.change_members(pool, &change, |status, last| status.last_resort = last) > 0
    }

    fn set_ramps(&mut self, pool: &Name, ramps: &[(IpAddr, u8)]) -> bool {
        let set = self.change_members(pool, ramps, |status, ramp| status.ramp = ramp);
        set == ramps.len()
    }

    fn set_overrides(&mut self, overrides: Arc<Overrides>) {
        self.overrides = overrides;
    }

    fn update_limits(&mut self, pool: &Name, members: &[IpAddr]) {
        self.update_limits_of(pool, members);
    }

    fn set_portions(&mut self, portions: PortionsInForce) {
        self.portions = portions;
    }

    fn update_group_limits(&mut self, groups: &[GroupName]) -> usize {
        self.update_limits_of_groups(groups)
    }

    fn groups(&self) -> Vec<GroupName> {
        let groups = self.groups.values().chain(self.replaced.values());
        let terms = groups.filter_map(|group| group.terms.as_ref());
        let names: BTreeSet<_> =
            terms.map(|terms| (terms.pool.clone(), terms.region.clone())).collect();
        names.into_iter().collect()
    }

    fn is_described(&self) -> bool {
        self.described || self.groups.is_empty()
    }

    fn await_next_hop(&mut self, backend: IpAddr) -> bool {
        self.lose_next_hop(&backend)
    }

    fn set_next_hop(
        &mut self,
        backend: IpAddr,
        hop: Option<NextHop>,
    ) -> Result<(), ReconcileError> {
        match hop {
            Some(hop) => self.point_to(backend, hop),
            None => {
                self.forget_next_hop(&backend);
                Ok(())
            }
        }
    }

    fn keep_next_hops(&mut self, backends: &BTreeSet<IpAddr>) {
        let others = self.next_hops.backends().filter(|address| !backends.contains(address));
        for address in others.copied().collect::<Vec<_>>() {
            self.forget_unneeded_next_hop(&address);
        }
    }

    fn set_configured_interfaces(&mut self, interfaces: &ConfiguredInterfaces) {
        self.settings.interfaces = interfaces.clone();
    }

    fn set_bonds(&mut self, bonds: &Bonds) {
        self.maps.set_bonds(bonds);
    }

    async fn next_step(&mut self) {
        match self.steps.recv().await {
            Some(step) => {
                let _turn = self.settings.loop_counters.turn();
                step.run(self);
            }
            // The reconciler is gone, and what it published stays.
            None => future::pending().await,
        }
    }
}
