use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_common::abi::member::Accepts;

use crate::{
    command::InterfaceStatus,
    reconcile::{ApplySummary, PoolHomes, ReconcileError, Reconciler},
};
use lb_maps::{Attached, Interface};
use lb_model::{
    Name, capacity::Reading, ids::Named, map_memory::TableMemory, next_hop::NextHop, plan::Plan,
};
use lb_net::Bonds;

/// What the state needs of the packet path; [`crate::reconcile::Reconciler`] has the contracts.
pub trait PacketPath: Send {
    /// Whether a plan could be applied, and what its tables take; changes nothing.
    ///
    /// # Errors
    /// It could not.
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError>;

    /// Brings packets to a plan.
    ///
    /// # Errors
    /// They may be half-way; applying again goes on from there.
    fn apply(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError>;

    /// Numbers that packets may still meet.
    fn named(&self) -> Named;

    /// A member's state; `None`: the last plan has no such member.
    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts>;

    /// Changes a member's state; false: the last plan has no such member.
    fn set_state(&mut self, pool: &Name, address: IpAddr, state: Accepts) -> bool;

    /// Says whether a member may have new connections that nobody else may have; false: the last
    /// plan has no such member.
    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool;

    /// Changes which share of its slots' new connections a member takes, 255 for all; false: the last
    /// plan has no such member.
    fn set_ramp(&mut self, pool: &Name, address: IpAddr, ramp: u8) -> bool;

    /// Changes a backend's next hop.
    ///
    /// # Errors
    /// Nothing changed.
    fn set_next_hop(&mut self, backend: IpAddr, hop: Option<NextHop>)
    -> Result<(), ReconcileError>;

    /// Changes which interfaces are ports of bonds.
    fn set_bonds(&mut self, bonds: &Bonds);

    /// Digest over what packets are decided by.
    ///
    /// # Errors
    /// It cannot be read.
    fn checksum(&mut self) -> Result<u64, ReconcileError>;

    /// The groups of each pool in its order, with what was counted of them.
    ///
    /// # Errors
    /// They cannot be read.
    fn readings(&self) -> Result<Vec<Reading>, ReconcileError>;

    /// What home means in each pool, by index.
    fn homes(&self) -> BTreeMap<u32, PoolHomes>;

    /// Says whether connections of a pool at their previous home are remembered one by one.
    fn set_adopting(&mut self, pool: u32, adopting: bool);

    /// Forgets what home meant before in some pools.
    ///
    /// # Errors
    /// It is forgotten, but what it needed is not free yet.
    fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError>;

    /// Backends that are in no pool any more but in what home meant before.
    fn leaving(&self) -> BTreeSet<IpAddr>;

    /// Connections at their previous home that could not be remembered, so far.
    ///
    /// # Errors
    /// They cannot be read.
    fn adoptions_refused(&self) -> Result<u64, ReconcileError>;

    /// Interfaces with the packet program, as they are now.
    fn interfaces(&self) -> Vec<InterfaceStatus>;
}

/// Maps and interfaces.
#[derive(Debug)]
pub struct Packets {
    reconciler: Reconciler,
    attached: Attached,
}

impl Packets {
    /// The packet path of a balancer at work.
    pub fn new(reconciler: Reconciler, attached: Attached) -> Self {
        Self { reconciler, attached }
    }
}

impl PacketPath for Packets {
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError> {
        self.reconciler.check(plan)
    }

    fn apply(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError> {
        self.reconciler.apply(plan)
    }

    fn named(&self) -> Named {
        self.reconciler.named()
    }

    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts> {
        self.reconciler.state(pool, address)
    }

    fn set_state(&mut self, pool: &Name, address: IpAddr, state: Accepts) -> bool {
        self.reconciler.set_state(pool, address, state)
    }

    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool {
        self.reconciler.set_last_resort(pool, address, last_resort)
    }

    fn set_ramp(&mut self, pool: &Name, address: IpAddr, ramp: u8) -> bool {
        self.reconciler.set_ramp(pool, address, ramp)
    }

    fn set_next_hop(
        &mut self,
        backend: IpAddr,
        hop: Option<NextHop>,
    ) -> Result<(), ReconcileError> {
        self.reconciler.set_next_hop(backend, hop)
    }

    fn set_bonds(&mut self, bonds: &Bonds) {
        self.reconciler.set_bonds(bonds);
    }

    fn checksum(&mut self) -> Result<u64, ReconcileError> {
        self.reconciler.checksum()
    }

    fn readings(&self) -> Result<Vec<Reading>, ReconcileError> {
        Ok(self.reconciler.readings()?)
    }

    fn homes(&self) -> BTreeMap<u32, PoolHomes> {
        self.reconciler.homes()
    }

    fn set_adopting(&mut self, pool: u32, adopting: bool) {
        self.reconciler.set_adopting(pool, adopting);
    }

    fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        self.reconciler.forget_previous(pools)
    }

    fn leaving(&self) -> BTreeSet<IpAddr> {
        self.reconciler.leaving()
    }

    fn adoptions_refused(&self) -> Result<u64, ReconcileError> {
        self.reconciler.adoptions_refused()
    }

    fn interfaces(&self) -> Vec<InterfaceStatus> {
        self.attached.interfaces().into_iter().map(Into::into).collect()
    }
}

impl From<Interface> for InterfaceStatus {
    fn from(interface: Interface) -> Self {
        Self { name: interface.name, mode: interface.mode.map(|mode| mode.to_string()) }
    }
}
