use std::{fmt::Display, num::NonZeroU32};

use lb_base::Quoted;
use lb_config::{Invalid, OpenSlots};
use lb_model::{
    SourceClash,
    ids::Exhausted,
    map_memory::Memory,
    overrides::{MOST, MOST_LOCAL, Target},
    own_addresses::Takeover,
    plan::PlanError,
    removal_guard::Removal,
    room::TooMany,
};
use lb_publish::reconcile::ReconcileError;
use lb_store::{HISTORY, SchemaMismatch, StoreError};

/// Most removals or services that a refusal names.
const MOST_NAMED: usize = 3;

/// Why a valid command was not carried out, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Another change came first.
    #[error("generation {current} is in force, not {expected}")]
    Conflict { expected: u64, current: u64 },
    /// Fields that only the client, the daemon or the store knows would be lost. Nothing changed.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    /// The stored configuration cannot be used, so the daemon knows no pools.
    #[error("the stored configuration cannot be used: {0}")]
    Unusable(String),
    /// The balancer is a member of a fleet, and the change does not come from there. Nothing changed.
    #[error(
        "this balancer is a member of a fleet, and takes its configuration and overrides from there alone"
    )]
    Member,
    /// The balancer is no member of a fleet. Nothing changed.
    #[error("this balancer is no member of a fleet, so all its overrides are its own")]
    NoMember,
    /// Each of several balancers would hash with its own key. Nothing changed.
    #[error(
        "hash_key: {} need one key to choose the same backends, and none is set", sharers(*.balancers)
    )]
    NoHashKey {
        /// `None`: those of a fleet.
        balancers: Option<NonZeroU32>,
        /// This daemon's own key, used while none is configured: a secret of the fleet.
        own_key: [u64; 2],
    },
    /// The maps are too small for the configuration. Nothing changed.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// Several balancers need the same slots. Nothing changed.
    #[error(transparent)]
    OpenSlots(#[from] Box<OpenSlots>),
    /// With the slots that pools keep, the configuration is invalid. Nothing changed.
    #[error(transparent)]
    Invalid(#[from] Box<Invalid>),
    /// An address is one of those that this balancer's tunnels come from. Nothing changed.
    #[error("{0}")]
    SourcePrefix(SourceClash),
    /// Too many numbers are in use or in quarantine. Nothing changed.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// No plan can be made of the configuration. Nothing changed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The maps have no room, or other objects hold the numbers. Nothing changed.
    #[error("the packet path has no room for the configuration")]
    Room(#[source] ReconcileError),
    #[error("the maps would take {} bytes, more than the {} of map-memory-limit{}",
        .0.peak, .0.limit.unwrap_or_default(), settled(.0))]
    Memory(Box<Memory>),
    /// The change removes too much for one that is not forced. Never empty. Nothing changed.
    #[error("{}: this needs --force", joined(.0))]
    ForceRequired(Vec<Removal>),
    /// Services would get addresses of balancers, and the change is not forced, or not by a caller who may force that. Never
    /// empty. Nothing changed.
    #[error("{}", joined(.0))]
    BalancerAddress(Vec<Takeover>),
    /// Nothing changed.
    #[error("nothing was changed: the configuration cannot be stored")]
    Store(#[from] StoreError),
    /// The configuration is in force and on disk, but not yet in the packet path.
    #[error("{}", packet_path_behind(*.generation))]
    Behind { generation: u64, source: ReconcileError },
    #[error("pool {} does not exist", Quoted(.0))]
    NoPool(String),
    #[error("pool {} has no backend {}", Quoted(.0), Quoted(.1))]
    NoBackend(String, String),
    /// The target of an override.
    #[error("{}", .0.missing())]
    NoTarget(Box<Target>),
    #[error("no more overrides are allowed: there may be {MOST}, and {MOST_LOCAL} local ones")]
    TooManyOverrides,
    #[error("generation {0} is not in the history, which has the last {HISTORY} generations")]
    NoGeneration(u64),
    /// It is this balancer's own, and the fleet has none with this number.
    #[error(
        "generation {0} is this balancer's own, from before it joined its fleet: it can be used again after `spillway fleet leave`"
    )]
    BeforeFleet(u64),
    #[error("generation {number} cannot be used: {cause}")]
    UnusableGeneration { number: u64, cause: String },
    /// The store cannot be read.
    #[error("the generation cannot be read")]
    UnreadGeneration(#[source] StoreError),
    /// Nothing changed.
    #[error("nothing was changed: the configuration cannot be compared")]
    Thread(#[source] std::io::Error),
    #[error("the packet path cannot be read")]
    Unreadable(#[source] ReconcileError),
    #[error(transparent)]
    Fleet(#[from] FleetRefusal),
}

/// Why a change of what a fleet shares was not made, or not completely.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetRefusal {
    /// Nothing changed.
    #[error("the fleet takes no changes: {0}")]
    Unavailable(String),
    /// It may have been made, or may yet be.
    #[error("{0}")]
    Unknown(String),
    /// The same of overrides, or of a part of them.
    #[error("{0}")]
    UnknownOverrides(String),
    /// The fleet has removed this balancer. Nothing changed.
    #[error("{0}")]
    NotAMember(String),
    /// etcd has another past than this balancer. Nothing changed.
    #[error("this balancer does not follow what etcd has: {0}")]
    Diverged(String),
    /// The fleet cannot have it. Nothing changed.
    #[error("{0}")]
    Invalid(String),
    /// Balancers are too old for a field that the change uses. Nothing changed.
    #[error("{0}")]
    HeldBack(String),
    /// What the fleet has is newer than this balancer, which would erase what it does not know. Nothing changed.
    #[error("the fleet has something that this balancer would erase, because it is older: {0}")]
    Newer(String),
    /// The generation is the fleet's, but this balancer has not put it in force yet.
    #[error("generation {generation} is committed, but not in force at this balancer yet: {cause}")]
    Behind { generation: u64, cause: String },
}

fn sharers(balancers: Option<NonZeroU32>) -> String {
    match balancers {
        Some(balancers) => format!("{balancers} balancers"),
        None => "the balancers of a fleet".into(),
    }
}

/// An apply that could not reach the packet path and the warnings of later ones use the same words.
pub(crate) fn packet_path_behind(generation: u64) -> String {
    format!(
        "generation {generation} is in force, but not yet in the packet path, which is retried every second"
    )
}

fn joined(all: &[impl Display]) -> String {
    let named: Vec<_> = all.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    let more = all.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(", and {more} more like these") } else { String::new() };
    named.join(", ") + &more
}

fn settled(memory: &Memory) -> String {
    let fits = memory.limit.is_some_and(|limit| memory.needed <= limit);
    match fits {
        true => format!("; {} once earlier tables are gone", memory.needed),
        false => String::new(),
    }
}
