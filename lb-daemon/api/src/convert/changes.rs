//! Conversion of what a change is, moves and warns of, and of references to objects.

use spillway_proto::v1::{self, object_reference::Kind as ReferenceKind};

use lb_base::conditions::{Condition, ConditionReason};
use lb_control::command::{Applied, Warning, WarningReason};
use lb_model::{
    Name, ObjectReference,
    diff::{Change, Effect, FieldChange, Kind, Movement},
    map_memory::Memory,
};

use super::responses::timestamp;

fn balancer_generation((name, generation): (&Name, &u64)) -> v1::BalancerGeneration {
    v1::BalancerGeneration { balancer: name.to_string(), generation: *generation }
}

pub(crate) fn applied(applied: &Applied) -> v1::ApplyResult {
    v1::ApplyResult {
        generation: applied.generation,
        changes: changes(&applied.changes),
        memory: applied.memory.as_ref().map(memory),
        movements: applied.movements.iter().map(movement).collect(),
        movements_unknown: applied.movements_unknown,
        balancers: applied.balancers.iter().map(balancer_generation).collect(),
        warnings: applied.warnings.iter().map(warning).collect(),
    }
}

pub(super) fn changes(changes: &[Change]) -> Vec<v1::Change> {
    let change = |change: &Change| v1::Change {
        kind: match change.kind {
            Kind::Added => v1::change::Kind::Added,
            Kind::Removed => v1::change::Kind::Removed,
            Kind::Changed => v1::change::Kind::Changed,
        }
        .into(),
        object: Some(reference(&change.object)),
        fields: change.fields.iter().map(field_change).collect(),
        slots_moved: change.slots_moved,
        text: change.object.to_string(),
    };
    changes.iter().map(change).collect()
}

fn field_change(change: &FieldChange) -> v1::FieldChange {
    v1::FieldChange {
        field: change.field.into(),
        old: change.old.clone(),
        new: change.new.clone(),
        region: change.region.as_ref().map(ToString::to_string).unwrap_or_default(),
        text: change.to_string(),
    }
}

pub(super) fn movement(movement: &Movement) -> v1::Movement {
    let effect = match movement.effect {
        Effect::Settle => v1::movement::Effect::Settle,
        Effect::AtOnce => v1::movement::Effect::AtOnce,
        Effect::End => v1::movement::Effect::End,
    };
    v1::Movement {
        object: Some(reference(&movement.object)),
        effect: effect.into(),
        share: movement.share,
        text: movement.object.to_string(),
    }
}

fn memory(memory: &Memory) -> v1::MapMemory {
    let bytes = |(map, bytes): &(String, u64)| v1::MapBytes { map: map.clone(), bytes: *bytes };
    v1::MapMemory {
        needed_bytes: memory.needed,
        peak_bytes: memory.peak,
        limit_bytes: memory.limit,
        maps: memory.maps.iter().map(bytes).collect(),
    }
}

pub(crate) fn warning(warning: &Warning) -> v1::Warning {
    use v1::WarningReason as Reason;
    let reason = match warning.reason {
        WarningReason::PoolUnserved => Reason::PoolUnserved,
        WarningReason::PoolEmpty => Reason::PoolEmpty,
        WarningReason::WithoutSlots => Reason::WithoutSlots,
        WarningReason::TunnelUnchecked => Reason::TunnelUnchecked,
        WarningReason::RemapEnded => Reason::RemapEnded,
        WarningReason::BehindGateway => Reason::BehindGateway,
        WarningReason::Overridden => Reason::Overridden,
        WarningReason::PacketPathBehind => Reason::PacketPathBehind,
        WarningReason::FileDiffers => Reason::FileDiffers,
        WarningReason::Schema => Reason::Schema,
        WarningReason::UnusableBefore => Reason::UnusableBefore,
        WarningReason::OverrideLimited => Reason::OverrideLimited,
        WarningReason::StillStopped => Reason::StillStopped,
        WarningReason::ForceRequired => Reason::ForceRequired,
    };
    v1::Warning {
        reason: reason.into(),
        object: warning.object.as_ref().map(reference),
        text: warning.text.clone(),
    }
}

pub(super) fn condition(condition: &Condition) -> v1::Condition {
    use v1::ConditionReason as Reason;
    let reason = match condition.reason {
        ConditionReason::PacketPath => Reason::PacketPath,
        ConditionReason::Store => Reason::Store,
        ConditionReason::StoredConfiguration => Reason::StoredConfiguration,
        ConditionReason::Overrides => Reason::Overrides,
        ConditionReason::OverrideWeights => Reason::OverrideWeights,
        ConditionReason::File => Reason::File,
        ConditionReason::Settings => Reason::Settings,
        ConditionReason::MapSizes => Reason::MapSizes,
        ConditionReason::CertificateExpires => Reason::CertificateExpires,
        ConditionReason::AuthoritiesExpire => Reason::AuthoritiesExpire,
        ConditionReason::TlsFiles => Reason::TlsFiles,
        ConditionReason::HttpFiles => Reason::HttpFiles,
        ConditionReason::Audit => Reason::Audit,
        ConditionReason::Log => Reason::Log,
        ConditionReason::HealthState => Reason::HealthState,
        ConditionReason::Names => Reason::Names,
        ConditionReason::SourceAddress => Reason::SourceAddress,
        ConditionReason::SourcePrefix => Reason::SourcePrefix,
        ConditionReason::HashKey => Reason::HashKey,
        ConditionReason::Slots => Reason::Slots,
        ConditionReason::Region => Reason::Region,
        ConditionReason::NarrowPath => Reason::NarrowPath,
        ConditionReason::Interface => Reason::Interface,
        ConditionReason::HostAddress => Reason::HostAddress,
        ConditionReason::FlowTableFull => Reason::FlowTableFull,
        ConditionReason::Etcd => Reason::Etcd,
        ConditionReason::FleetConflict => Reason::FleetConflict,
        ConditionReason::FleetConfiguration => Reason::FleetConfiguration,
        ConditionReason::FleetShares => Reason::FleetShares,
        ConditionReason::FleetInsecure => Reason::FleetInsecure,
    };
    let pool = condition.pool.as_ref();
    v1::Condition {
        subject: condition.subject.clone(),
        text: condition.cause.clone(),
        since: Some(timestamp(condition.since)),
        reason: reason.into(),
        object: pool.map(|name| message(ReferenceKind::Pool, name.clone(), None)),
    }
}

pub(super) fn reference(object: &ObjectReference) -> v1::ObjectReference {
    let (kind, name, pool) = match object {
        ObjectReference::Region(name) => (ReferenceKind::Region, name.to_string(), None),
        ObjectReference::HealthCheck(name) => (ReferenceKind::HealthCheck, name.to_string(), None),
        ObjectReference::Pool(name) => (ReferenceKind::Pool, name.to_string(), None),
        ObjectReference::Group { pool, region } => {
            (ReferenceKind::Group, region.to_string(), Some(pool))
        }
        ObjectReference::Backend { pool, address } => {
            (ReferenceKind::Backend, address.to_string(), pool.as_ref())
        }
        ObjectReference::Service(name) => (ReferenceKind::Service, name.to_string(), None),
        ObjectReference::Vip(prefix) => (ReferenceKind::Vip, prefix.to_string(), None),
        ObjectReference::HashKey | ObjectReference::Balancers => {
            (ReferenceKind::Configuration, String::new(), None)
        }
    };
    message(kind, name, pool)
}

fn message(kind: ReferenceKind, name: String, pool: Option<&Name>) -> v1::ObjectReference {
    let pool = pool.map(ToString::to_string).unwrap_or_default();
    v1::ObjectReference { kind: kind.into(), name, pool }
}
