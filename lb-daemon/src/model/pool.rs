use std::{collections::BTreeMap, net::IpAddr};

use super::{Backend, Name};

/// A named set of backends with its health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Backends by address.
    pub backends: BTreeMap<IpAddr, Backend>,
    /// Checks that must all pass, in the order given; empty: active backends count as healthy.
    pub health_checks: Vec<Name>,
    /// Slots of its tables, a prime.
    pub slots: u32,
}
