//! The configuration as the daemon holds it: validated, every default filled in, every reference
//! known to resolve. Nothing here knows protobuf, files or maps.

#[cfg(test)]
pub(crate) mod arbitrary;
mod backend;
mod health_check;
mod name;
mod pool;
mod region;
mod service;

use std::collections::BTreeMap;

pub use backend::{Backend, WantedState};
pub use health_check::{HealthCheck, HttpProbe, Probe};
pub use name::{Name, NameError};
pub use pool::Pool;
pub use region::Region;
pub use service::{Affinity, Protocol, Service};

/// A whole, valid configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
}
