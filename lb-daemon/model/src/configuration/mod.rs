//! The configuration: validated, with all defaults filled in and all references resolved. It knows neither
//! protobuf nor files nor maps.

pub mod bounds;
mod health_check;
mod name;
mod named_value;
mod pool;
mod ports;
pub mod rate;
mod service;

use std::{collections::BTreeMap, num::NonZeroU32};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Regions by name.
    pub regions: BTreeMap<Name, Region>,
    /// Health checks by name.
    pub health_checks: BTreeMap<Name, HealthCheck>,
    /// Pools by name.
    pub pools: BTreeMap<Name, Pool>,
    /// Services by name.
    pub services: BTreeMap<Name, Service>,
    /// Key of the flow hash, or `None` for the daemon's own.
    pub hash_key: Option<[u64; 2]>,
    /// Balancers that share the capacities.
    pub balancers: NonZeroU32,
}

impl Configuration {
    pub const EMPTY: Self = Self {
        regions: BTreeMap::new(),
        health_checks: BTreeMap::new(),
        pools: BTreeMap::new(),
        services: BTreeMap::new(),
        hash_key: None,
        balancers: NonZeroU32::MIN,
    };
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
