use std::{collections::BTreeMap, fmt, net::IpAddr, time::Duration};

use lb_common::{abi::form::Form, wire::gue};

use super::{Name, Rate, named_value::named_values};
use crate::slots;

/// A named set of backends with its health checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Backends by address.
    pub backends: BTreeMap<IpAddr, Backend>,
    /// Checks that must all pass, in the order given; empty: active backends count as healthy.
    pub health_checks: Vec<Name>,
    /// Slots of its tables, a prime.
    pub slots: u32,
    /// Settings of its groups by region; default settings are left out.
    pub groups: BTreeMap<Name, GroupSettings>,
    /// When new connections may leave the first region of its order.
    pub isolation: Isolation,
    /// Regions that are used first; distinct.
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
    /// How long a backend is kept out of new connections when it comes back after a failure soon after a return, doubled
    /// with each such failure in a row; zero: not at all.
    pub hold_down: Duration,
    /// The bound of `hold_down`, and how long a backend must be up until its failures are forgotten.
    pub max_hold_down: Duration,
    /// How packets get to its backends.
    pub encapsulation: Encapsulation,
}

named_values! {
    /// When new connections may leave the first region of a pool's order.
    pub enum Isolation, default None {
        /// Leave if the region is full or has no usable backend
        None = "none",
        /// Leave only if the region has no usable backend
        OnFailure = "on_failure",
        /// Never leave
        Strict = "strict",
    }
}

/// Without backends, and with all defaults.
impl Default for Pool {
    fn default() -> Self {
        Self {
            backends: BTreeMap::new(),
            health_checks: Vec::new(),
            slots: slots::SIZES[0],
            groups: BTreeMap::new(),
            isolation: Isolation::None,
            preferred_regions: Vec::new(),
            panic_threshold_percent: 0,
            settle_time: Self::DEFAULT_SETTLE_TIME,
            slow_start: Duration::ZERO,
            hold_down: Self::DEFAULT_HOLD_DOWN,
            max_hold_down: Self::DEFAULT_MAX_HOLD_DOWN,
            encapsulation: Encapsulation::IpInIp,
        }
    }
}

impl Pool {
    /// Default settle time: a connection in use sends something within ten minutes.
    pub const DEFAULT_SETTLE_TIME: Duration = Duration::from_secs(600);

    /// Default hold-down: longer than the checks of a backend that restarts in a loop usually pass.
    pub const DEFAULT_HOLD_DOWN: Duration = Duration::from_secs(10);

    /// Default bound of holds.
    pub const DEFAULT_MAX_HOLD_DOWN: Duration = Duration::from_secs(300);

    /// The settings of its group in a region.
    pub fn group(&self, region: &Name) -> GroupSettings {
        self.groups.get(region).copied().unwrap_or_default()
    }
}

named_values! {
    /// Whether a backend takes traffic, as operator or configuration ask.
    pub enum AdminState, default Active {
        /// Takes traffic while it is healthy
        Active = "active",
        /// Takes no new connections; open ones stay
        Drain = "drain",
        /// Takes no traffic; open connections move
        Disabled = "disabled",
    }
}

/// One real server of a pool; its address is its key there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub region: Name,
    /// Share relative to the others of its region; 0 takes none.
    pub weight: u32,
    /// What the operator asks for.
    pub admin_state: AdminState,
    /// Largest outer packet towards it, bytes; `None`: the interface's MTU.
    pub mtu: Option<u16>,
    /// New connections it takes a second in its pool, over all balancers; `None`: no limit of its
    /// own.
    pub max_connection_rate: Option<Rate>,
}

named_values! {
    /// How packets get to a pool's backends.
    pub enum EncapsulationKind, default IpInIp {
        /// In an outer IP header
        IpInIp = "ip_in_ip",
        /// In Generic UDP Encapsulation
        Gue = "gue",
        /// Unchanged, to the MAC address of a backend on the balancer's link
        Direct = "direct",
    }
}

/// How packets get to a pool's backends, with the port of GUE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encapsulation {
    /// In an IP header alone.
    #[default]
    IpInIp,
    /// In GUE, to this UDP port.
    Gue(u16),
    /// As they are, to the backend's own MAC: it has to be on a link of the balancer's.
    Direct,
}

impl Encapsulation {
    pub const DEFAULT_GUE_PORT: u16 = gue::PORT;

    /// The setting that asks for it.
    pub const fn kind(self) -> EncapsulationKind {
        match self {
            Self::IpInIp => EncapsulationKind::IpInIp,
            Self::Gue(_) => EncapsulationKind::Gue,
            Self::Direct => EncapsulationKind::Direct,
        }
    }

    /// `ip_in_ip`, `gue` or `direct`.
    pub const fn name(self) -> &'static str {
        self.kind().name()
    }

    /// The UDP port that packets go to, if any.
    pub const fn gue_port(self) -> Option<u16> {
        match self {
            Self::IpInIp | Self::Direct => None,
            Self::Gue(port) => Some(port),
        }
    }

    /// The form in the maps.
    pub const fn form(self) -> Form {
        match self {
            Self::IpInIp => Form::IP_IN_IP,
            Self::Gue(port) => Form::gue(port),
            Self::Direct => Form::DIRECT,
        }
    }

    /// The encapsulation of a form in the maps.
    pub const fn from_form(form: Form) -> Self {
        match form {
            form if form.is_gue() => Self::Gue(form.port()),
            form if form.is_direct() => Self::Direct,
            _ => Self::IpInIp,
        }
    }

    /// Bytes that a packet grows by on its way to a backend.
    pub const fn overhead(self, backend: IpAddr) -> u16 {
        self.form().overhead(backend.is_ipv4())
    }

    /// Smallest MTU towards a backend that lets IPv6 through its tunnel, bytes: IPv6's minimum (RFC 8200, 5) and the
    /// outer headers.
    pub const fn least_mtu(self, backend: IpAddr) -> u16 {
        1280 + self.overhead(backend)
    }
}

/// `ip_in_ip`, `gue to port 6080` or `direct`.
impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.gue_port().map_or(Ok(()), |port| write!(f, " to port {port}"))
    }
}

/// Settings of a pool's backends in one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// New connections a second over all balancers; `None`: the sum over its healthy backends, where
    /// each has a limit of its own, else no limit.
    pub capacity: Option<Rate>,
    /// Share of the capacity in use, unless it is drained.
    pub scaler: Scaler,
    /// Whether it takes no new connections, whatever the scaler.
    pub drained: bool,
}

impl GroupSettings {
    /// The scaler, or 0 if the group is drained.
    pub fn effective_scaler(&self) -> Scaler {
        if self.drained { Scaler::NONE } else { self.scaler }
    }
}

/// A share: 0, or 0.1 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Scaler(f64);

// Never NaN.
impl Eq for Scaler {}

impl Scaler {
    /// Nothing.
    pub const NONE: Self = Self(0.0);
    pub const WHOLE: Self = Self(1.0);
    const LOWEST: f64 = 0.1;

    /// The share; `None`: it is neither 0 nor within 0.1 to 1.
    pub fn new(share: f64) -> Option<Self> {
        // Turns minus zero into zero.
        let share = share + 0.0;
        (share == 0.0 || (Self::LOWEST..=1.0).contains(&share)).then_some(Self(share))
    }

    pub fn share(self) -> f64 {
        self.0
    }
}

impl Default for Scaler {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Scaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Scaler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scaler_is_nothing_or_a_tenth_to_the_whole() {
        for good in [0.0, 0.1, 0.5, 1.0] {
            assert_eq!(Scaler::new(good).unwrap().share(), good);
        }
        assert_eq!(Scaler::new(-0.0).unwrap().to_string(), "0");
        for bad in [0.05, 0.099, 1.001, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Scaler::new(bad), None, "{bad}");
        }
    }
}
