//! Conversion of refusals into gRPC statuses.

use spillway_proto::v1::{self, ErrorReason, object_reference::Kind};
use tonic::{Code, Status};
use tonic_types::FieldViolation;

use super::{changes::reference, error::ApiError};
use crate::access::caller;
use lb_base::error_chain;
use lb_config::{Invalid, message::hash_key};
use lb_control::command::{FleetRefusal, Refusal, Stopping};
use lb_inspect::names::NoPool;
use lb_model::{own_addresses::Takeover, removal_guard::Removal, room::TooMany};
use lb_publish::reconcile::ReconcileError;

/// A wrong field of a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {cause}")]
pub(crate) struct WrongField {
    field: String,
    cause: String,
}

impl WrongField {
    pub(crate) fn new(field: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { field: field.into(), cause: cause.into() }
    }
}

impl From<WrongField> for Status {
    fn from(wrong: WrongField) -> Self {
        let violation = FieldViolation::new(wrong.field.clone(), wrong.cause.clone());
        ApiError::new(Code::InvalidArgument, ErrorReason::InvalidField, wrong.to_string())
            .field(wrong.field)
            .violations(vec![violation])
            .into()
    }
}

pub(crate) trait IntoStatus {
    fn into_status(self) -> Status;
}

pub(crate) trait OrStatus<T> {
    fn or_status(self) -> Result<T, Status>;
}

impl<T, E: IntoStatus> OrStatus<T> for Result<T, E> {
    fn or_status(self) -> Result<T, Status> {
        self.map_err(IntoStatus::into_status)
    }
}

impl IntoStatus for Invalid {
    fn into_status(self) -> Status {
        invalid_configuration(&self, self.to_string()).into()
    }
}

fn invalid_configuration(invalid: &Invalid, message: String) -> ApiError {
    ApiError::new(Code::InvalidArgument, ErrorReason::InvalidConfiguration, message)
        .field(invalid.path())
        .violations(violations(invalid))
}

/// Bytes of mistakes in a status. Clients take 8 KiB of trailers, and they are there twice: as text, and in Base64.
const MOST_DETAILS: usize = 4 << 10;

/// All mistakes of a message.
fn violations(invalid: &Invalid) -> Vec<FieldViolation> {
    let all = invalid.mistakes().iter().map(|it| FieldViolation::new(it.path(), it.to_string()));
    bounded_violations(all, invalid.count())
}

/// All of `count` mistakes, or those for which there is room; then one without a field says how many more there are.
pub(super) fn bounded_violations(
    all: impl Iterator<Item = FieldViolation>,
    count: usize,
) -> Vec<FieldViolation> {
    let mut bytes = 0;
    let mut violations: Vec<_> = all
        .take_while(|violation| {
            bytes += violation.field.len() + violation.description.len();
            bytes <= MOST_DETAILS
        })
        .collect();
    match count - violations.len() {
        0 => {}
        1 => violations.push(FieldViolation::new("", "1 more mistake")),
        more => violations.push(FieldViolation::new("", format!("{more} more mistakes"))),
    }
    violations
}

impl IntoStatus for Refusal {
    fn into_status(self) -> Status {
        let message = error_chain::message(&self);
        let error = |code, reason| ApiError::new(code, reason, message.clone());
        match &self {
            Refusal::Conflict { expected, current } => {
                error(Code::Aborted, ErrorReason::GenerationConflict)
                    .with("expected", expected)
                    .with("current", current)
            }
            Refusal::Schema(mismatch) => {
                error(Code::FailedPrecondition, ErrorReason::SchemaMismatch).hint(mismatch.hint())
            }
            Refusal::Unusable(_) => {
                error(Code::FailedPrecondition, ErrorReason::ConfigurationUnusable)
                    .hint(UNUSABLE_HINT)
            }
            Refusal::Member => {
                error(Code::FailedPrecondition, ErrorReason::FleetMembership).hint(MEMBER_HINT)
            }
            Refusal::NoMember => {
                error(Code::FailedPrecondition, ErrorReason::FleetMembership).hint(NO_MEMBER_HINT)
            }
            Refusal::NoHashKey { own_key, .. } => {
                error(Code::InvalidArgument, ErrorReason::HashKeyUnset)
                    .field("hash_key")
                    .violations(vec![FieldViolation::new("hash_key", message.clone())])
                    .hint(key_hint(*own_key))
            }
            Refusal::TooMany(too_many) => {
                let error = error(Code::ResourceExhausted, ErrorReason::MapsFull);
                let error = match too_many {
                    TooMany::Objects { size, number, .. } if *number <= size.most() as usize => {
                        error.with("setting", size.setting())
                    }
                    _ => error,
                };
                error.hint(too_many.hint())
            }
            Refusal::OpenSlots(open) => error(Code::InvalidArgument, ErrorReason::SlotsUnset)
                .field(open.invalid.path())
                .violations(violations(&open.invalid))
                .hint(open.hint.clone()),
            Refusal::Invalid(invalid) => invalid_configuration(invalid, message.clone()),
            Refusal::SourcePrefix(_) => {
                error(Code::FailedPrecondition, ErrorReason::SourcePrefixClash)
                    .hint(SOURCE_PREFIX_HINT)
            }
            Refusal::Exhausted(_) => error(Code::ResourceExhausted, ErrorReason::QuarantineFull),
            Refusal::Room(ReconcileError::Full(full)) => {
                let error = error(Code::ResourceExhausted, ErrorReason::MapsFull);
                let error = match full.map.size {
                    Some(size) => error.with("setting", size.setting()),
                    None => error,
                };
                match full.hint() {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            }
            Refusal::ForceRequired(removals) => force_required(
                error(Code::FailedPrecondition, ErrorReason::ForceRequired),
                removals,
            ),
            Refusal::BalancerAddress(takeovers) => balancer_address(
                error(Code::FailedPrecondition, ErrorReason::BalancerAddress),
                takeovers,
            ),
            Refusal::Memory(_) => error(Code::ResourceExhausted, ErrorReason::MemoryLimit),
            Refusal::TooManyOverrides => {
                error(Code::ResourceExhausted, ErrorReason::TooManyOverrides).hint(OVERRIDES_HINT)
            }
            Refusal::Store(store) | Refusal::UnreadGeneration(store) => {
                error(Code::Internal, ErrorReason::StoreFailed).hint(store.hint())
            }
            Refusal::Behind { generation, .. } => {
                error(Code::Internal, ErrorReason::PacketPathBehind).with("generation", generation)
            }
            Refusal::NoPool(pool) => ApiError::not_found(&*message, "pool", pool, ""),
            Refusal::NoBackend(pool, address) => {
                ApiError::not_found(&*message, "backend", address, pool)
            }
            Refusal::NoTarget(target) => {
                let target = reference(&(&**target).into());
                let kind = target.kind().as_str_name().trim_start_matches("KIND_");
                ApiError::not_found(&*message, kind, &target.name, &target.pool).hint(TARGET_HINT)
            }
            Refusal::NoGeneration(number) => error(Code::NotFound, ErrorReason::GenerationNotFound)
                .with("generation", number)
                .hint(HISTORY_HINT),
            Refusal::BeforeFleet(number) => {
                error(Code::FailedPrecondition, ErrorReason::GenerationBeforeFleet)
                    .with("generation", number)
                    .hint(HISTORY_HINT)
            }
            Refusal::UnusableGeneration { number, .. } => {
                error(Code::FailedPrecondition, ErrorReason::GenerationUnusable)
                    .with("generation", number)
                    .hint(HISTORY_HINT)
            }
            Refusal::Unreadable(_) => error(Code::Unavailable, ErrorReason::MapsUnreadable),
            Refusal::Fleet(FleetRefusal::Unavailable(_)) => {
                error(Code::Unavailable, ErrorReason::FleetUnavailable)
            }
            Refusal::Fleet(FleetRefusal::Unknown(_)) => {
                error(Code::Unknown, ErrorReason::FleetUnknown).hint(FLEET_UNKNOWN_HINT)
            }
            Refusal::Fleet(FleetRefusal::UnknownOverrides(_)) => {
                error(Code::Unknown, ErrorReason::FleetUnknown).hint(FLEET_UNKNOWN_OVERRIDES_HINT)
            }
            Refusal::Fleet(FleetRefusal::NotAMember(_)) => {
                error(Code::FailedPrecondition, ErrorReason::FleetMembership)
                    .hint("nothing was changed")
            }
            Refusal::Fleet(FleetRefusal::Diverged(_)) => {
                error(Code::FailedPrecondition, ErrorReason::FleetConflict)
                    .hint(FLEET_CONFLICT_HINT)
            }
            Refusal::Fleet(FleetRefusal::Invalid(_)) => {
                error(Code::InvalidArgument, ErrorReason::InvalidConfiguration)
            }
            Refusal::Fleet(FleetRefusal::HeldBack(_)) => {
                error(Code::FailedPrecondition, ErrorReason::SchemaMismatch).hint(HELD_BACK_HINT)
            }
            Refusal::Fleet(FleetRefusal::Newer(_)) => {
                error(Code::FailedPrecondition, ErrorReason::SchemaMismatch).hint(NEWER_FLEET_HINT)
            }
            Refusal::Fleet(FleetRefusal::Behind { generation, .. }) => {
                error(Code::Internal, ErrorReason::FleetBehind)
                    .with("generation", generation)
                    .hint("`spillway fleet status` shows what each balancer has in force")
            }
            Refusal::Plan(_) | Refusal::Room(_) | Refusal::Thread(_) => {
                error(Code::Internal, ErrorReason::Internal)
            }
        }
        .into()
    }
}

fn force_required(error: ApiError, removals: &[Removal]) -> ApiError {
    let error = error.hint(FORCE_HINT);
    let Some(first) = removals.first() else { return error };
    let (removed, backends) = first.numbers();
    let object = first.object().as_ref().map(reference);
    let kind = object.as_ref().map_or(Kind::Configuration, v1::ObjectReference::kind);
    let v1::ObjectReference { name, pool, .. } = object.unwrap_or_default();
    let kind = kind.as_str_name().trim_start_matches("KIND_");
    error.about(kind, &name, &pool).with("removed", removed).with("backends", backends)
}

fn balancer_address(error: ApiError, takeovers: &[Takeover]) -> ApiError {
    let hint = match caller().scope {
        None => BALANCER_ADDRESS_HINT,
        Some(_) => BALANCER_ADDRESS_SCOPED_HINT,
    };
    let error = error.hint(hint);
    let Some(Takeover { service, address, .. }) = takeovers.first() else { return error };
    error.about("SERVICE", service.as_str(), "").with("address", address)
}

impl IntoStatus for NoPool {
    fn into_status(self) -> Status {
        ApiError::not_found(self.to_string(), "pool", &self.name, "").hint(self.hint()).into()
    }
}

const TARGET_HINT: &str = "`spillway status` lists the backends, pools and regions that there are";

const FORCE_HINT: &str = "nothing was changed; look at it with --dry-run, and if that is meant, make the change again with --force";

const BALANCER_ADDRESS_HINT: &str = "nothing was changed; the balancer itself would get no more packets for the ports of that service; give it another \
     address, or, if that is meant, make the change again with --force";

const BALANCER_ADDRESS_SCOPED_HINT: &str = "nothing was changed; give the service another address; only a client whose role is for all pools may force this one";

const MEMBER_HINT: &str = "nothing was changed; change the fleet, at any balancer that reaches its etcd, or take this balancer out of it: \
     `spillway fleet leave`";

const NO_MEMBER_HINT: &str = "nothing was changed; leave --local out";

const OVERRIDES_HINT: &str =
    "`spillway override list` shows them; drain a pool or a region instead of its backends";

const FLEET_UNKNOWN_HINT: &str =
    "`spillway history` shows whether it came into force; to make the change again is safe";

const FLEET_UNKNOWN_OVERRIDES_HINT: &str =
    "`spillway override list` shows what came into force; to make the change again is safe";

const FLEET_CONFLICT_HINT: &str = "`spillway fleet status` says why; if another balancer follows etcd, leave by `spillway fleet leave --abandon` and join \
     again; if none does, `spillway fleet restore` decides: `--from etcd --dry-run` shows what it would change here, and \
     `--from this --dry-run` what it would change in etcd";

const HELD_BACK_HINT: &str = "nothing was changed; upgrade spillwayd there first; `spillway fleet remove` takes a balancer that is gone for good \
     out of the fleet";

const NEWER_FLEET_HINT: &str = "nothing was changed; upgrade spillwayd of this balancer, or make the change at one that `spillway fleet status` shows \
     with a newer version";

const HISTORY_HINT: &str =
    "`spillway history` lists the generations that are kept, and which of them cannot be used";

const UNUSABLE_HINT: &str =
    "`spillway export` shows the stored configuration; correct and apply it";

const SOURCE_PREFIX_HINT: &str = "no other host has an address of that prefix: give another address, or set another `tunnel-source-prefix` and \
     restart the daemon";

/// Hint for several balancers without a common key.
fn key_hint(key: [u64; 2]) -> String {
    if !caller().sees_hash_key() {
        return "set hash_key in the configuration of all of them; `spillway export` of an admin shows the one that this \
                daemon has in force"
            .into();
    }
    format!(
        "set hash_key in the configuration of all of them; with \"{}\", which this daemon has in force, none of its \
         connections moves",
        hash_key(key)
    )
}

impl IntoStatus for Stopping {
    fn into_status(self) -> Status {
        ApiError::new(Code::Unavailable, ErrorReason::Stopping, self.to_string()).into()
    }
}
