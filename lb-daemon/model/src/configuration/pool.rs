use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use lb_common::abi::limits::DEFAULT_SLOTS;

use super::{Backend, Encapsulation, GroupSettings, Name};

/// A named set of backends with its health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Backends by address.
    pub backends: BTreeMap<IpAddr, Backend>,
    /// Checks that must all pass, in the order given; empty: active backends count as healthy.
    pub health_checks: Vec<Name>,
    /// Slots of its tables, a prime.
    pub slots: u32,
    /// What is set of its groups, by regions it has backends in; none that says only the default.
    pub groups: BTreeMap<Name, GroupSettings>,
    /// When new connections may leave the first region of its order.
    pub isolation: Isolation,
    /// Regions that are asked first; distinct.
    pub preferred_regions: Vec<Name>,
    /// Share of its active backends, percent: while fewer are healthy, the others are the last
    /// resort. 0: never.
    pub panic_threshold_percent: u32,
    /// How long open connections stay where they are after a remap, and after which whatever
    /// is out of service is marked out.
    pub settle_time: Duration,
    /// How long a backend that comes up takes until it has its whole share of new connections; zero: it
    /// has it at once.
    pub slow_start: Duration,
    /// How packets get to its backends.
    pub encapsulation: Encapsulation,
}

/// When new connections may leave the first region of a pool's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// When it is full, and when nobody there can have them.
    #[default]
    None,
    /// When nobody there can have them.
    OnFailure,
    /// Never.
    Strict,
}

impl Isolation {
    /// `none`, `on_failure` or `strict`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OnFailure => "on_failure",
            Self::Strict => "strict",
        }
    }
}

/// One without backends, and all else as where it is left out.
impl Default for Pool {
    fn default() -> Self {
        Self {
            backends: BTreeMap::new(),
            health_checks: Vec::new(),
            slots: DEFAULT_SLOTS,
            groups: BTreeMap::new(),
            isolation: Isolation::None,
            preferred_regions: Vec::new(),
            panic_threshold_percent: 0,
            settle_time: Self::DEFAULT_SETTLE_TIME,
            slow_start: Duration::ZERO,
            encapsulation: Encapsulation::IpInIp,
        }
    }
}

impl Pool {
    /// Settle time where the configuration says none: within ten minutes a connection that is in use
    /// sends something.
    pub const DEFAULT_SETTLE_TIME: Duration = Duration::from_secs(600);

    /// What is set of its group in a region.
    pub fn group(&self, region: &Name) -> GroupSettings {
        self.groups.get(region).copied().unwrap_or_default()
    }
}
