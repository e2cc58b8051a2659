//! Conversion of answers of the state into messages.

use std::{net::IpAddr, num::NonZeroU32, time::SystemTime};

use spillway_proto::v1::{self, ErrorReason, state_reason::Cause};
use tonic::Code;
use tonic_types::FieldViolation;

use super::{
    changes::{changes, condition, movement, reference},
    error::ApiError,
    overrides::{override_messages, overrides_event},
    status::bounded_violations,
};
use crate::reload::{Refused, ReloadOutcome};
use lb_config::message::{ApiEnum, duration, to_message};
use lb_control::command::{
    Applied, BackendHistory, BackendStatus, Difference, Event, Exported, GroupStatus, Refusal,
    Regions, ServiceStatus, SettlingStatus, StateChange, Status,
};
use lb_health::Utilisation;
use lb_inspect::message::counters;
use lb_model::{
    Name, ObjectReference, StateCause, StateReason,
    capacity::{self, Rates},
};
use lb_publish::reconcile::InterfaceStatus;
use lb_store::{HistoryEntry, Unusable};

/// A stored configuration that cannot be used is exported as it is stored.
pub(crate) fn exported(exported: &Exported) -> Result<v1::ExportResponse, Refusal> {
    let Exported { generation, configuration, schema, unusable, .. } = exported;
    let in_use = to_message(configuration);
    let (schema, configuration, unusable) = match unusable {
        None => (*schema, in_use, String::new()),
        Some(Unusable { cause, message: None, .. }) => {
            return Err(Refusal::Unusable(cause.clone()));
        }
        Some(Unusable { schema, cause, message: Some(message), .. }) => {
            let mut stored = message.0.clone();
            if stored.hash_key.is_empty() {
                stored.hash_key = in_use.hash_key;
            }
            (*schema, stored, cause.clone())
        }
    };
    Ok(v1::ExportResponse {
        generation: *generation,
        configuration: Some(configuration),
        schema_revision: schema.number(),
        unusable,
        overrides: override_messages(&exported.overrides),
    })
}

/// The newest first.
pub(crate) fn generations(entries: &[HistoryEntry]) -> v1::ListGenerationsResponse {
    let generation = |(place, entry): (usize, &HistoryEntry)| v1::Generation {
        number: entry.number,
        applied_at: entry.applied_at.map(timestamp),
        who: entry.who.clone(),
        why: entry.why.clone(),
        changes: entry.changes,
        current: place == 0,
        unusable: entry.unusable.clone().unwrap_or_default(),
        before_fleet: entry.is_before_fleet,
    };
    let generations = entries.iter().rev().enumerate().map(generation).collect();
    v1::ListGenerationsResponse { generations }
}

pub(crate) fn difference(difference: &Difference) -> v1::DiffGenerationsResponse {
    v1::DiffGenerationsResponse {
        from: difference.from,
        to: difference.to,
        changes: changes(&difference.changes),
        movements: difference.movements.iter().map(movement).collect(),
    }
}

impl TryFrom<ReloadOutcome> for v1::ReloadResponse {
    type Error = tonic::Status;

    /// If anything was refused, the error lists all of it. A packet path that is behind has an error of its own, as in an
    /// `Apply`: the configuration is in force.
    fn try_from(outcome: ReloadOutcome) -> Result<Self, tonic::Status> {
        let ReloadOutcome { generation, mut refused, behind, waiting } = outcome;
        match behind {
            Some(behind) if refused.is_empty() => {
                let error = ApiError::new(Code::Internal, ErrorReason::PacketPathBehind, behind);
                Err(error.with("generation", generation.unwrap_or_default()).into())
            }
            None if refused.is_empty() => Ok(Self { generation, waiting_settings: waiting }),
            behind => {
                refused.extend(behind.map(Refused::from));
                let (code, reason) = (Code::FailedPrecondition, ErrorReason::ReloadRefused);
                let texts: Vec<_> = refused.iter().map(|it| it.text.as_str()).collect();
                let error = ApiError::new(code, reason, texts.join("; "));
                let lines: Vec<_> = refused.into_iter().flat_map(Refused::lines).collect();
                let all = lines.iter().map(|line| FieldViolation::new("", line));
                Err(error.violations(bounded_violations(all, lines.len())).into())
            }
        }
    }
}

/// Most changes in an event: nobody reads more of them, and each watcher has its own copy.
const MAX_TOLD_CHANGES: usize = 5_000;

/// The status without the backends, which may be many.
pub(crate) fn without_backends(status: &Status) -> v1::StatusResponse {
    v1::StatusResponse {
        version: status.version.into(),
        region: status.region.as_ref().map(ToString::to_string).unwrap_or_default(),
        generation: status.generation,
        applied_at: status.applied_at.map(timestamp),
        checksum: format!("{:016x}", status.checksum),
        interfaces: status.interfaces.iter().map(interface).collect(),
        backends: Vec::new(),
        services: status.services.iter().map(service).collect(),
        uptime: Some(duration(status.uptime)),
        behind: status.behind.clone().unwrap_or_default(),
        settling: status.settling.iter().map(settling_pool).collect(),
        conditions: status.conditions.iter().map(condition).collect(),
        waiting_settings: status.waiting_settings.clone(),
        overrides: override_messages(&status.overrides),
        overrides_revision: status.overrides.overrides.revision(),
        next_page_token: String::new(),
    }
}

pub(crate) fn interface(interface: &InterfaceStatus) -> v1::InterfaceStatus {
    let mode = interface.mode.clone().unwrap_or_default();
    v1::InterfaceStatus { name: interface.name.clone(), mode }
}

pub(crate) fn service(service: &ServiceStatus) -> v1::ServiceStatus {
    v1::ServiceStatus {
        name: service.name.to_string(),
        endpoint: service.endpoint.to_string(),
        protocol: service.protocol.name().into(),
        pool: service.pool.to_string(),
        backends_up: count(service.backends_up),
        backends: count(service.backends),
        encapsulation: service.encapsulation.kind().to_api().into(),
        gue_port: service.encapsulation.gue_port().map_or(0, u32::from),
        slots: service.slots,
    }
}

pub(crate) fn backend(backend: &BackendStatus) -> v1::BackendStatus {
    let (Ok(next_hop) | Err(next_hop)) = &backend.next_hop;
    v1::BackendStatus {
        pool: backend.pool.to_string(),
        address: backend.address.to_string(),
        region: backend.region.to_string(),
        state: backend.state.to_api().into(),
        reason: Some(state_reason(&backend.reason)),
        next_hop_resolved: backend.next_hop.is_ok(),
        next_hop: next_hop.clone(),
        mtu: backend.mtu.map_or(0, u32::from),
        tunnel_source: backend.tunnel_source.clone().unwrap_or_default(),
        since: Some(timestamp(backend.since)),
        weight: backend.weight,
        share: (backend.share > 0.0).then_some(backend.share),
        utilisation: backend.agent_report.utilisation.map(Utilisation::share),
        weight_percent: backend.agent_report.percent.map(Into::into),
        drain: backend.agent_report.drain.clone().unwrap_or_default(),
        report_error: backend.agent_report.report_error.clone().unwrap_or_default(),
        marked_out: backend.marked_out,
        admin_state: backend.admin_state.to_api().into(),
        hold_left: backend.hold_left.and_then(|left| left.try_into().ok()),
        overrides: backend.overrides.iter().map(ToString::to_string).collect(),
    }
}

fn state_reason(reason: &StateReason) -> v1::StateReason {
    let cause = match reason.cause {
        StateCause::NotChecked => Cause::NotChecked,
        StateCause::NoChecks => Cause::NoChecks,
        StateCause::ChecksPass => Cause::ChecksPass,
        StateCause::CheckFails => Cause::CheckFails,
        StateCause::HeldDown => Cause::HeldDown,
        StateCause::Configuration => Cause::Configuration,
        StateCause::Override => Cause::Override,
        StateCause::AgentReport => Cause::AgentReport,
    };
    v1::StateReason {
        cause: cause.into(),
        health_check: reason.health_check.as_ref().map(ToString::to_string).unwrap_or_default(),
        text: reason.text.clone(),
    }
}

pub(crate) fn history(history: &BackendHistory) -> v1::BackendHistory {
    let change = |change: &StateChange| v1::StateChange {
        at: Some(timestamp(change.at)),
        state: change.state.to_api().into(),
        reason: Some(state_reason(&change.reason)),
    };
    v1::BackendHistory {
        pool: history.pool.to_string(),
        address: history.address.to_string(),
        changes: history.changes.iter().map(change).collect(),
    }
}

pub(crate) fn settling_pool(settling: &SettlingStatus) -> v1::SettlingPool {
    v1::SettlingPool {
        pool: settling.pool.to_string(),
        since: Some(timestamp(settling.since)),
        ends_at: Some(timestamp(settling.ends_at)),
        overdue: settling.overdue,
    }
}

fn removed_backend((pool, address): &(Name, IpAddr)) -> v1::ObjectReference {
    let (pool, address) = (Some(pool.clone()), *address);
    reference(&ObjectReference::Backend { pool, address })
}

fn removed_group((pool, region): &(Name, Name)) -> v1::ObjectReference {
    reference(&ObjectReference::Group { pool: pool.clone(), region: region.clone() })
}

pub(crate) fn event(event: &Event) -> v1::watch_response::Event {
    match event {
        Event::Generation(Applied { generation, changes: list, .. }) => {
            let told = &list[..list.len().min(MAX_TOLD_CHANGES)];
            v1::watch_response::Event::Generation(v1::GenerationChange {
                generation: *generation,
                changes: changes(told),
                more_changes: (list.len() - told.len()) as u64,
            })
        }
        Event::Backends(change) => v1::watch_response::Event::Backends(v1::BackendsChange {
            removed: change.removed.iter().map(removed_backend).collect(),
            backends: change.changed.iter().map(backend).collect(),
        }),
        Event::Groups(change) => v1::watch_response::Event::Groups(v1::GroupsChange {
            removed: change.removed.iter().map(removed_group).collect(),
            groups: change.changed.iter().map(region).collect(),
        }),
        Event::Overrides(change) => v1::watch_response::Event::Overrides(overrides_event(change)),
    }
}

pub(crate) fn timestamp(time: SystemTime) -> prost_types::Timestamp {
    time.into()
}

/// Counts of a valid configuration are far below the limit of the type.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(crate) fn regions(regions: &Regions) -> v1::RegionsResponse {
    v1::RegionsResponse {
        regions: regions.regions.iter().map(region).collect(),
        window: regions.window.map(duration),
        balancers: regions.balancers.map_or(0, NonZeroU32::get),
    }
}

pub(crate) fn region(status: &GroupStatus) -> v1::GroupStatus {
    let reading = &status.reading;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    v1::GroupStatus {
        pool: status.pool.to_string(),
        region: status.region.to_string(),
        configured_per_second: reading.configured().per_second(),
        scaler: reading.settings.effective_scaler().share(),
        capacity_per_second: reading.capacity().per_second(),
        limit_per_second: capacity::per_second(reading.limit),
        backends_up: count(status.backends_up()),
        backends: count(reading.members.len()),
        backend_rate_per_second: reading.backend_rate(),
        counters: Some(counters(reading.counters.into())),
        rates: status.rates.map(rates),
        utilisation: status.utilisation(),
        missing_backends: status.missing_backends(),
        marked_out: status.marked_out,
        portion: reading.portion.fraction(),
    }
}

pub(crate) fn rates(rates: Rates) -> v1::GroupRates {
    let Rates { offered, admitted, overflow_in, overflow_out, refused, over_capacity } = rates;
    v1::GroupRates { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_that_is_in_force_but_behind_is_not_called_refused() {
        let of = |refused: &[&str], behind: Option<&str>| {
            let outcome = ReloadOutcome {
                generation: Some(7),
                refused: refused.iter().map(|text| text.to_string().into()).collect(),
                behind: behind.map(str::to_owned),
                ..ReloadOutcome::default()
            };
            v1::ReloadResponse::try_from(outcome)
                .map(|answer| answer.generation)
                .map_err(|status| (status.code(), status.message().to_owned()))
        };
        assert_eq!(of(&[], None), Ok(Some(7)));
        assert_eq!(of(&[], Some("behind")), Err((Code::Internal, "behind".into())));
        let refused = Code::FailedPrecondition;
        assert_eq!(of(&["a", "b"], None), Err((refused, "a; b".into())));
        assert_eq!(of(&["a"], Some("behind")), Err((refused, "a; behind".into())));
    }
}
