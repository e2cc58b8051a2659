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
    Name, capacity::GroupReading, ids::Named, map_memory::TableMemory, next_hop::NextHop,
    plan::Plan,
};
use lb_net::Bonds;

/// What the state loop needs of the packet path. [`Reconciler`] documents these methods in full.
pub trait PacketPath: Send {
    /// Whether a plan can be applied, and what its tables take. Changes nothing.
    fn check(&self, plan: &Plan) -> Result<TableMemory, ReconcileError>;

    /// Brings the packet path to a plan.
    ///
    /// # Errors
    /// The change may be half made; applying again completes it.
    fn apply(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError>;

    /// Numbers that packets may still meet.
    fn named(&self) -> Named;

    /// `None` if the last plan has no such member.
    fn state(&self, pool: &Name, address: IpAddr) -> Option<Accepts>;

    /// False if the last plan has no such member.
    fn set_state(&mut self, pool: &Name, address: IpAddr, state: Accepts) -> bool;

    /// Whether the member may get new connections that no other member can take. False if the last plan has
    /// no such member.
    fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) -> bool;

    /// Share of its slots' new connections that a member takes, 255 for all. False if the last plan has no
    /// such member.
    fn set_ramp(&mut self, pool: &Name, address: IpAddr, ramp: u8) -> bool;

    /// # Errors
    /// Nothing changed.
    fn set_next_hop(&mut self, backend: IpAddr, hop: Option<NextHop>)
    -> Result<(), ReconcileError>;

    /// Sets which interfaces are ports of bonds.
    fn set_bonds(&mut self, bonds: &Bonds);

    /// Digest over what the packet path decides by.
    fn checksum(&mut self) -> Result<u64, ReconcileError>;

    /// The groups of each pool in order, with their counters.
    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError>;

    /// By index of the pool.
    fn homes(&self) -> BTreeMap<u32, PoolHomes>;

    /// Whether connections at their previous home are adopted, that is, remembered one by one.
    fn set_adopting(&mut self, pool: u32, adopting: bool);

    /// Forgets the previous homes of pools.
    ///
    /// # Errors
    /// They are forgotten, but their entries in the maps are not free yet.
    fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError>;

    /// Backends that only previous versions of pools have.
    fn leaving(&self) -> BTreeSet<IpAddr>;

    /// Adoptions refused so far, because the budget was used up.
    fn adoptions_refused(&self) -> Result<u64, ReconcileError>;

    /// Interfaces with the packet program.
    fn interfaces(&self) -> Vec<InterfaceStatus>;
}

/// The packet path of this host: maps and interfaces.
#[derive(Debug)]
pub struct Packets {
    reconciler: Reconciler,
    attached: Attached,
}

impl Packets {
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

    fn readings(&self) -> Result<Vec<GroupReading>, ReconcileError> {
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
