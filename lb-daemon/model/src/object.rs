//! References to what a configuration has.

use std::{fmt, net::IpAddr};

use lb_base::Prefix;

use crate::{Name, overrides::Target};

/// What a change, a warning or a condition is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectReference {
    Region(Name),
    HealthCheck(Name),
    Pool(Name),
    /// A pool's backends in one region.
    Group {
        pool: Name,
        region: Name,
    },
    /// A backend in one pool, or without a pool in all that have it.
    Backend {
        pool: Option<Name>,
        address: IpAddr,
    },
    Service(Name),
    /// A range of VIPs.
    Vip(Prefix),
    /// `hash_key` of the configuration itself.
    HashKey,
    /// `balancers` of the configuration itself.
    Balancers,
}

impl fmt::Display for ObjectReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region(name) => write!(f, "region {name}"),
            Self::HealthCheck(name) => write!(f, "health check {name}"),
            Self::Pool(name) => write!(f, "pool {name}"),
            Self::Group { pool, region } => write!(f, "pool {pool}: region {region}"),
            Self::Backend { pool: Some(pool), address } => {
                write!(f, "pool {pool}: backend {address}")
            }
            Self::Backend { pool: None, address } => write!(f, "backend {address}"),
            Self::Service(name) => write!(f, "service {name}"),
            Self::Vip(prefix) => write!(f, "vip {prefix}"),
            Self::HashKey => f.write_str("hash key"),
            Self::Balancers => f.write_str("balancers"),
        }
    }
}

impl From<&Target> for ObjectReference {
    fn from(target: &Target) -> Self {
        match target.clone() {
            Target::Backend { address, pool } => Self::Backend { pool, address },
            Target::Pool(name) => Self::Pool(name),
            Target::Group { pool, region } => Self::Group { pool, region },
            Target::Region(name) => Self::Region(name),
        }
    }
}
