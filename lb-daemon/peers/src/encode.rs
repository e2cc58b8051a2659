//! Messages as this balancer sends them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lb_sharing::{GroupKey, GroupReport, Message, ReportedCapacity, Transfer};
use prost::{Message as _, bytes::Bytes};
use spillway_proto::peers::v1::{self, CapacityKind, ExchangeRequest};

use crate::{PROGRAM_VERSION, PROTOCOL, wall_clock::wall_clock_ms};

/// What a balancer says of its groups, as it is sent: encoded once for all its peers.
#[derive(Clone, Debug)]
pub struct EncodedReports {
    keys: Arc<[GroupKey]>,
    groups: Bytes,
    reports: Bytes,
}

impl EncodedReports {
    /// Encodes what [`Message::groups`] says.
    pub fn new(groups: &BTreeMap<GroupKey, GroupReport>) -> Self {
        let reports = v1::Reports { reports: groups.values().map(to_report).collect() };
        let keys = groups.keys().cloned().collect();
        let groups = v1::Groups { groups: groups.keys().map(to_group).collect() };
        Self {
            keys,
            groups: groups.encode_to_vec().into(),
            reports: reports.encode_to_vec().into(),
        }
    }
}

/// The message as it is sent. `reports` are those of [`Message::groups`].
pub fn to_request(message: &Message, reports: &EncodedReports) -> ExchangeRequest {
    let given = message.transfers.iter().map(|transfer| &transfer.group);
    let others: BTreeSet<&GroupKey> =
        given.filter(|group| reports.keys.binary_search(group).is_err()).collect();
    let others: Vec<&GroupKey> = others.into_iter().collect();
    let place = |group: &GroupKey| match reports.keys.binary_search(group) {
        Ok(place) => Some(place),
        Err(_) => Some(reports.keys.len() + others.binary_search(&group).ok()?),
    };
    let transfer = |transfer: &Transfer| v1::Transfer {
        number: transfer.number,
        // A message of so many groups is larger than may be sent.
        group: place(&transfer.group).and_then(|it| u32::try_from(it).ok()).unwrap_or(u32::MAX),
        parts: transfer.parts.0,
    };
    ExchangeRequest {
        protocol: PROTOCOL,
        program_version: PROGRAM_VERSION.to_owned(),
        from: message.from.as_str().to_owned(),
        incarnation: message.incarnation,
        receiver_incarnation: message.receiver_incarnation,
        sequence: message.sequence,
        epoch: message.epoch,
        sent: message.sent,
        applied: message.applied,
        transfers: message.transfers.iter().map(transfer).collect(),
        groups: reports.groups.clone(),
        reports: reports.reports.clone(),
        others: others.into_iter().map(to_group).collect(),
        silent: message.silent.iter().map(|name| name.as_str().to_owned()).collect(),
        store_is_old: message.store_is_old,
        is_leaving: message.is_leaving,
        receiver_is_leaving: message.receiver_is_leaving,
        sent_at_ms: wall_clock_ms(),
    }
}

fn to_group(group: &GroupKey) -> v1::Group {
    v1::Group {
        pool: group.pool.as_str().to_owned(),
        region: group.region.as_str().to_owned(),
        birth: group.birth,
    }
}

fn to_report(report: &GroupReport) -> v1::GroupReport {
    let (kind, per_second) = match report.capacity {
        ReportedCapacity::Closed => (CapacityKind::Closed, 0.0),
        ReportedCapacity::PerSecond(rate) => (CapacityKind::PerSecond, rate),
        ReportedCapacity::Unlimited => (CapacityKind::Unlimited, 0.0),
    };
    v1::GroupReport {
        demand_per_second: report.demand,
        owned_parts: report.owned.0,
        capacity_kind: kind.into(),
        capacity_per_second: per_second,
        may_send: report.may_send,
    }
}
