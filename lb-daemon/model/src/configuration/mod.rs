//! The configuration: validated, with all defaults filled in and all references resolved. It knows neither
//! protobuf nor files nor maps.

pub mod bounds;
mod health_check;
mod name;
pub(crate) mod named_value;
mod pool;
mod ports;
pub mod rate;
mod service;
mod vip;

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use lb_base::Prefix;

pub use health_check::{
    AgentCheck, CheckKind, CheckTls, GrpcCheck, HealthCheck, HostProbe, HttpCheck, Trust, UdpCheck,
    Via,
};
pub use name::{Name, NameError};
pub use named_value::NamedValue;
pub use pool::{
    AdminState, Backend, Encapsulation, EncapsulationKind, GroupSettings, Isolation, Pool, Scaler,
};
pub use ports::{Endpoint, PortList, Ports};
pub use rate::Rate;
pub use service::{Affinity, Fragments, Protocol, Service, UdpMode, WhenFull};
pub use vip::Unserved;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Regions by name.
    pub regions: BTreeMap<Name, Region>,
    /// Health checks by name.
    pub health_checks: BTreeMap<Name, HealthCheck>,
    /// Pools by name. Configurations share those that are equal, so that a change of one looks at no other.
    pub pools: BTreeMap<Name, Arc<Pool>>,
    /// Services by name.
    pub services: BTreeMap<Name, Service>,
    /// Key of the flow hash, or `None` for the daemon's own.
    pub hash_key: Option<[u64; 2]>,
    /// Balancers that share the capacities.
    pub balancers: NonZeroU32,
    /// What becomes of packets for VIPs in a prefix that no service takes. The longest prefix of a VIP counts.
    pub vips: BTreeMap<Prefix, Unserved>,
}

impl Configuration {
    pub const EMPTY: Self = Self {
        regions: BTreeMap::new(),
        health_checks: BTreeMap::new(),
        pools: BTreeMap::new(),
        services: BTreeMap::new(),
        hash_key: None,
        balancers: NonZeroU32::MIN,
        vips: BTreeMap::new(),
    };

    /// A pool, to be changed in this configuration alone.
    pub fn pool_mut(&mut self, name: &Name) -> Option<&mut Pool> {
        self.pools.get_mut(name).map(Arc::make_mut)
    }

    /// Replaces pools that are equal to those of another configuration by the latter, so that both share them.
    pub fn share_pools(&mut self, other: &Self) {
        for (name, pool) in &mut self.pools {
            if let Some(same) = other.pools.get(name).filter(|same| *same == pool) {
                *pool = Arc::clone(same);
            }
        }
    }
}

impl Default for Configuration {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// A place where backends are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Regions that take over, nearest first; distinct, and without loops.
    pub overflow_to: Vec<Name>,
}
