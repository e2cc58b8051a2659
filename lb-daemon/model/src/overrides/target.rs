//! What an override is about, and what it asks for.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{
    Configuration, Name, NamedValue, ObjectReference, Pool,
    configuration::named_value::named_values,
};

/// What an override is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A backend in one pool, or without a pool in all that have it.
    Backend { address: IpAddr, pool: Option<Name> },
    /// A whole pool.
    Pool(Name),
    /// A pool's backends in one region.
    Group { pool: Name, region: Name },
    /// The backends of a region in all pools.
    Region(Name),
}

named_values! {
    /// How an override changes its target. A target has one override of each kind at most.
    pub enum Kind {
        /// No new connections; open ones stay
        Drain = "drain",
        /// No packets; open connections move
        Disable = "disable",
        /// A share of the configured weight
        Weight = "weight",
        /// At most a share of the configured capacity
        Scale = "scale",
    }
}

/// A share in percent, 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Percent(u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 0 to 100")]
pub struct PercentError;

impl Percent {
    pub const NONE: Self = Self(0);

    /// The share, 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl TryFrom<u8> for Percent {
    type Error = PercentError;

    fn try_from(percent: u8) -> Result<Self, PercentError> {
        if percent <= 100 { Ok(Self(percent)) } else { Err(PercentError) }
    }
}

impl From<Percent> for u8 {
    fn from(percent: Percent) -> Self {
        percent.0
    }
}

/// What an override asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// No new connections; open ones stay.
    Drain,
    /// No packets; open connections move.
    Disable,
    /// A share of the configured weight; 0 is a drain.
    Weight(Percent),
    /// At most this share of the configured capacity: 0, which is a drain, or 10 to 100.
    Scale(Percent),
}

/// An action that its target does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    #[error("a backend has no capacity to scale; set its weight")]
    BackendScale,
    #[error("only single backends can be disabled; drain it")]
    GroupDisable,
    #[error("only single backends have a weight; set its scale")]
    GroupWeight,
    #[error("must be 0 or 10 to 100 for a scale")]
    Scale,
    #[error("only a drain or a disable can be local")]
    Local,
}

impl Action {
    pub const fn kind(self) -> Kind {
        match self {
            Self::Drain => Kind::Drain,
            Self::Disable => Kind::Disable,
            Self::Weight(_) => Kind::Weight,
            Self::Scale(_) => Kind::Scale,
        }
    }

    pub const fn percent(self) -> Option<Percent> {
        match self {
            Self::Drain | Self::Disable => None,
            Self::Weight(percent) | Self::Scale(percent) => Some(percent),
        }
    }

    /// Whether it stops all new connections.
    pub fn stops(self) -> bool {
        self.percent().is_none_or(|percent| percent == Percent::NONE)
    }

    /// # Errors
    /// The target does not allow the action, or a scale is between 0 and 10 %.
    pub fn check(self, target: &Target) -> Result<(), ActionError> {
        let is_backend = matches!(target, Target::Backend { .. });
        match self {
            Self::Scale(_) if is_backend => Err(ActionError::BackendScale),
            Self::Disable if !is_backend => Err(ActionError::GroupDisable),
            Self::Weight(_) if !is_backend => Err(ActionError::GroupWeight),
            Self::Scale(Percent(1..10)) => Err(ActionError::Scale),
            _ => Ok(()),
        }
    }
}

/// Like `drain` or `weight 30 %`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())?;
        self.percent().map_or(Ok(()), |percent| write!(f, " {} %", percent.0))
    }
}

impl Target {
    /// Whether a configuration has it. For a backend without a pool every pool is looked at.
    pub fn exists(&self, configuration: &Configuration) -> bool {
        let pools = &configuration.pools;
        match self {
            Self::Backend { address, pool: Some(pool) } => {
                pools.get(pool).is_some_and(|pool| pool.backends.contains_key(address))
            }
            Self::Backend { address, pool: None } => {
                pools.values().any(|pool| pool.backends.contains_key(address))
            }
            Self::Pool(name) => pools.contains_key(name),
            Self::Group { pool, region } => pools.get(pool).is_some_and(|pool| {
                pool.backends.values().any(|backend| backend.region == *region)
            }),
            Self::Region(name) => configuration.regions.contains_key(name),
        }
    }

    /// The sentence that a configuration does not have it.
    pub fn missing(&self) -> String {
        match self {
            Self::Group { pool, region } => {
                format!("pool {pool} has no backends in region {region}")
            }
            target => format!("{target} does not exist"),
        }
    }

    /// Whether it has to do with a pool that a configuration has.
    pub fn concerns(&self, name: &Name, pool: &Pool) -> bool {
        match self {
            Self::Backend { address, pool: only } => {
                only.as_ref().is_none_or(|only| only == name) && pool.backends.contains_key(address)
            }
            Self::Pool(only) => only == name,
            Self::Group { pool: only, .. } => only == name,
            Self::Region(region) => pool.backends.values().any(|backend| backend.region == *region),
        }
    }

    /// The one pool that it has to do with; `None`: there may be several.
    pub const fn pool(&self) -> Option<&Name> {
        match self {
            Self::Backend { pool, .. } => pool.as_ref(),
            Self::Pool(pool) | Self::Group { pool, .. } => Some(pool),
            Self::Region(_) => None,
        }
    }
}

/// In the words of the list of changes: `pool web: backend 192.0.2.1`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ObjectReference::from(self).fmt(f)
    }
}

/// Where an override is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// At all balancers of the fleet; outside of one, at this balancer.
    #[default]
    Shared,
    /// At this balancer alone, beside those of its fleet.
    Local,
}

impl Scope {
    pub(super) const ALL: [Self; 2] = [Self::Shared, Self::Local];

    /// # Errors
    /// [`ActionError::Local`]
    pub const fn check(self, kind: Kind) -> Result<(), ActionError> {
        match (self, kind) {
            (Self::Local, Kind::Weight | Kind::Scale) => Err(ActionError::Local),
            _ => Ok(()),
        }
    }
}

/// The key of an override. As text it is a path, such as `pools/web/backends/192.0.2.1/drain`, or `local/regions/eu/drain` of
/// a local one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub target: Target,
    pub kind: Kind,
    pub scope: Scope,
}

/// What the text of local ones begins with.
const LOCAL: &str = "local/";

impl Key {
    /// That of a shared override.
    pub const fn new(target: Target, kind: Kind) -> Self {
        Self { target, kind, scope: Scope::Shared }
    }

    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    pub fn is_local(&self) -> bool {
        self.scope == Scope::Local
    }
}

/// A text that names no override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be backends/ADDRESS, pools/NAME/backends/ADDRESS, pools/NAME, pools/NAME/regions/NAME or regions/NAME, then \
     /drain, /disable, /weight or /scale; or local/, then such a name of a drain or disable"
)]
pub struct KeyError;

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_local() {
            f.write_str(LOCAL)?;
        }
        match &self.target {
            Target::Backend { address, pool: None } => write!(f, "backends/{address}")?,
            Target::Backend { address, pool: Some(pool) } => {
                write!(f, "pools/{pool}/backends/{address}")?;
            }
            Target::Pool(name) => write!(f, "pools/{name}")?,
            Target::Group { pool, region } => write!(f, "pools/{pool}/regions/{region}")?,
            Target::Region(name) => write!(f, "regions/{name}")?,
        }
        write!(f, "/{}", self.kind.name())
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (scope, text) = match text.strip_prefix(LOCAL) {
            Some(text) => (Scope::Local, text),
            None => (Scope::Shared, text),
        };
        let parts: Vec<_> = text.split('/').collect();
        let (kind, target) = parts.split_last().ok_or(KeyError)?;
        let kind = Kind::from_name(kind).ok_or(KeyError)?;
        scope.check(kind).map_err(|_| KeyError)?;
        let name = |text: &str| Name::new(text).map_err(|_| KeyError);
        let address = |text: &str| text.parse().map_err(|_| KeyError);
        let target = match *target {
            ["backends", it] => Target::Backend { address: address(it)?, pool: None },
            ["pools", pool, "backends", it] => {
                Target::Backend { address: address(it)?, pool: Some(name(pool)?) }
            }
            ["pools", pool] => Target::Pool(name(pool)?),
            ["pools", pool, "regions", it] => {
                Target::Group { pool: name(pool)?, region: name(it)? }
            }
            ["regions", it] => Target::Region(name(it)?),
            _ => return Err(KeyError),
        };
        Ok(Self { target, kind, scope })
    }
}
