//! The configuration as the daemon holds it: validated, every default filled in, every reference
//! known to resolve. Nothing here knows protobuf, files or maps.

mod backend;
pub mod bounds;
mod encapsulation;
mod group;
mod health_check;
mod name;
mod pool;
mod ports;
pub mod rate;
mod region;
mod service;

use std::{collections::BTreeMap, num::NonZeroU32};

pub use backend::{AdminState, Backend};
pub use encapsulation::Encapsulation;
pub use group::{GroupSettings, Scaler};
pub use health_check::{
    AgentCheck, CheckTls, GrpcCheck, HealthCheck, HttpCheck, Probe, Trust, UdpCheck, Via,
};
pub use name::{Name, NameError};
pub use pool::{Isolation, Pool};
pub use ports::{Endpoint, PortList, Ports};
pub use rate::Rate;
pub use region::Region;
pub use service::{Affinity, Fragments, Protocol, Service, WhenFull};

/// A whole, valid configuration.
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
    /// One without anything.
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
