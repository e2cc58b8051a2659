//! Messages that peers sent.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use lb_model::{Name, NameError};
use lb_sharing::{GroupKey, GroupReport, Message, Parts, ReportedCapacity, Transfer};
use prost::{Message as _, bytes::Bytes};
use spillway_proto::peers::v1::{self, CapacityKind, ExchangeRequest};

use crate::{PROGRAM_VERSION, PROTOCOL, wall_clock::wall_clock_ms};

/// Most bytes of a version.
const MAX_VERSION: usize = 64;

/// A message of a peer, with the version of its program.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerMessage {
    pub message: Message,
    pub program_version: String,
    /// By how many milliseconds the sender's wall clock is ahead of the receiver's, less the time on the way; `None`: it did
    /// not say.
    pub clock_ahead_ms: Option<i64>,
}

/// Why a message cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerMessageError {
    #[error(
        "it speaks protocol {theirs} (Spillway {version}), and this balancer speaks protocol {PROTOCOL} \
         (Spillway {PROGRAM_VERSION}): balancers of both cannot share capacities"
    )]
    Protocol { theirs: u32, version: String },
    #[error("the version is not one of a program")]
    Version,
    #[error("{field}: {source}")]
    Name { field: &'static str, source: NameError },
    #[error("{field}: {name} occurs twice, or not in the order of names")]
    Order { field: &'static str, name: String },
    #[error("{field}: {cause}")]
    Encoding { field: &'static str, cause: String },
    #[error("there are {groups} groups and {reports} reports of them")]
    Reports { groups: usize, reports: usize },
    #[error("pool {pool} in region {region}: kind {kind} of capacity is not known")]
    Capacity { pool: Name, region: Name, kind: i32 },
    #[error("transfer {number} names group {group}, but there are only {groups}")]
    Group { number: u64, group: u32, groups: usize },
    #[error("{0}")]
    Nonsense(String),
}

/// Reads messages of peers. It remembers the groups that they name, because most name the same ones again and again:
/// decoding these anew for each message would be most of what a fleet of a hundred balancers costs. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MessageReader(Arc<Mutex<VecDeque<KnownGroups>>>);

/// Groups as they were sent, and their keys.
#[derive(Clone, Debug)]
struct KnownGroups {
    encoded: Box<[u8]>,
    keys: Arc<[GroupKey]>,
}

/// Lists of groups that are remembered. Balancers have different ones while they change to another generation, and if they
/// have just started.
const REMEMBERED: usize = 4;

impl MessageReader {
    /// The message that was sent.
    ///
    /// # Errors
    /// [`PeerMessageError`]: nothing of it may be used.
    pub fn from_request(&self, request: ExchangeRequest) -> Result<PeerMessage, PeerMessageError> {
        let is_version = request.program_version.len() <= MAX_VERSION
            && request.program_version.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_version {
            return Err(PeerMessageError::Version);
        }
        // Of another protocol only these two are what they seem to be.
        if request.protocol != PROTOCOL {
            let (theirs, version) = (request.protocol, request.program_version);
            return Err(PeerMessageError::Protocol { theirs, version });
        }
        let keys = self.keys(&request.groups)?;
        let reports = v1::Reports::decode(request.reports).map_err(encoding("reports"))?.reports;
        if keys.len() != reports.len() {
            let (groups, reports) = (keys.len(), reports.len());
            return Err(PeerMessageError::Reports { groups, reports });
        }
        let with_report = |(key, report): (&GroupKey, &v1::GroupReport)| {
            Ok((key.clone(), from_report(key, report)?))
        };
        let groups: Result<BTreeMap<_, _>, _> =
            keys.iter().zip(&reports).map(with_report).collect();
        let others = from_groups("others", &request.others)?;
        let transfer = |transfer: v1::Transfer| {
            let (number, group) = (transfer.number, transfer.group);
            let place = usize::try_from(group).ok();
            let key = place.and_then(|place| keys.iter().chain(&others).nth(place)).cloned();
            let groups = keys.len() + others.len();
            let key = key.ok_or(PeerMessageError::Group { number, group, groups })?;
            Ok(Transfer { number, group: key, parts: Parts(transfer.parts) })
        };
        let transfers: Result<_, PeerMessageError> =
            request.transfers.into_iter().map(transfer).collect();
        let silent: Result<Vec<Name>, _> =
            request.silent.iter().map(|text| name("silent", text)).collect();
        let silent = silent?;
        if let Some(pair) = silent.windows(2).find(|pair| pair[0] >= pair[1]) {
            let name = pair[1].to_string();
            return Err(PeerMessageError::Order { field: "silent", name });
        }
        let message = Message {
            from: name("from", &request.from)?,
            incarnation: request.incarnation,
            receiver_incarnation: request.receiver_incarnation,
            sequence: request.sequence,
            epoch: request.epoch,
            sent: request.sent,
            applied: request.applied,
            transfers: transfers?,
            groups: Arc::new(groups?),
            silent: silent.into_iter().collect(),
            store_is_old: request.store_is_old,
            is_leaving: request.is_leaving,
            receiver_is_leaving: request.receiver_is_leaving,
        };
        message.check().map_err(|error| PeerMessageError::Nonsense(error.to_string()))?;
        let sent_at = Some(request.sent_at_ms).filter(|it| *it > 0);
        let ahead = |at: u64| i128::from(at) - i128::from(wall_clock_ms());
        let clock_ahead_ms = sent_at.and_then(|at| i64::try_from(ahead(at)).ok());
        Ok(PeerMessage { message, program_version: request.program_version, clock_ahead_ms })
    }

    /// The keys of encoded groups.
    fn keys(&self, encoded: &Bytes) -> Result<Arc<[GroupKey]>, PeerMessageError> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().iter().find(|it| *it.encoded == **encoded) {
            return Ok(Arc::clone(&known.keys));
        }
        let groups = v1::Groups::decode(encoded.clone()).map_err(encoding("groups"))?.groups;
        let keys: Arc<[GroupKey]> = from_groups("groups", &groups)?.into();
        let mut known = known();
        known.truncate(REMEMBERED - 1);
        known.push_front(KnownGroups { encoded: (**encoded).into(), keys: Arc::clone(&keys) });
        Ok(keys)
    }
}

fn encoding(field: &'static str) -> impl Fn(prost::DecodeError) -> PeerMessageError {
    move |error| PeerMessageError::Encoding { field, cause: error.to_string() }
}

/// Keys of groups, which have to be in their order.
fn from_groups(
    field: &'static str,
    groups: &[v1::Group],
) -> Result<Vec<GroupKey>, PeerMessageError> {
    let key = |group: &v1::Group| {
        let (pool, region) = match field {
            "groups" => ("groups: pool", "groups: region"),
            _ => ("others: pool", "others: region"),
        };
        Ok(GroupKey {
            pool: name(pool, &group.pool)?,
            region: name(region, &group.region)?,
            birth: group.birth,
        })
    };
    let keys: Vec<GroupKey> = groups.iter().map(key).collect::<Result<_, PeerMessageError>>()?;
    match keys.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => {
            let name = format!("pool {} in region {}", pair[1].pool, pair[1].region);
            Err(PeerMessageError::Order { field, name })
        }
        None => Ok(keys),
    }
}

fn from_report(
    group: &GroupKey,
    report: &v1::GroupReport,
) -> Result<GroupReport, PeerMessageError> {
    let capacity = match CapacityKind::try_from(report.capacity_kind) {
        Ok(CapacityKind::Closed) => ReportedCapacity::Closed,
        Ok(CapacityKind::PerSecond) => ReportedCapacity::PerSecond(report.capacity_per_second),
        Ok(CapacityKind::Unlimited) => ReportedCapacity::Unlimited,
        Ok(CapacityKind::Unspecified) | Err(_) => {
            let GroupKey { pool, region, .. } = group.clone();
            return Err(PeerMessageError::Capacity { pool, region, kind: report.capacity_kind });
        }
    };
    Ok(GroupReport {
        demand: report.demand_per_second,
        owned: Parts(report.owned_parts),
        capacity,
        may_send: report.may_send,
    })
}

fn name(field: &'static str, text: &str) -> Result<Name, PeerMessageError> {
    Name::new(text).map_err(|source| PeerMessageError::Name { field, source })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{EncodedReports, to_request};

    /// Messages that name other groups, or the same ones again, and more lists than are remembered.
    #[test]
    fn groups_that_are_remembered_are_those_that_were_sent() {
        let reader = MessageReader::default();
        let keys = |round: usize| {
            let number = round % (REMEMBERED + 2);
            let key = |pool: usize| GroupKey {
                pool: Name::new(&format!("pool{pool}")).unwrap(),
                region: Name::new("eu").unwrap(),
                birth: number as u64,
            };
            (0..=number).map(key).collect::<Vec<_>>()
        };
        for round in [0, 0, 1, 2, 0, 3, 4, 5, 5, 0, 1, 6, 7, 8] {
            let report = GroupReport {
                demand: round as f64,
                owned: Parts(round as u64),
                capacity: ReportedCapacity::Unlimited,
                may_send: true,
            };
            let groups: BTreeMap<_, _> = keys(round).into_iter().map(|key| (key, report)).collect();
            let mut request = to_request(&empty_message(), &EncodedReports::new(&groups));
            request.transfers = vec![v1::Transfer { number: 1, group: 0, parts: 1 }];
            request.sent = 1;
            let taken = reader.from_request(request).unwrap().message;
            assert_eq!(*taken.groups, groups, "{round}");
            assert_eq!(taken.transfers[0].group, keys(round)[0], "{round}");
            assert!(reader.0.lock().unwrap().len() <= REMEMBERED);
        }
    }

    fn empty_message() -> Message {
        Message {
            from: Name::new("a").unwrap(),
            incarnation: 1,
            receiver_incarnation: 1,
            sequence: 1,
            epoch: 0,
            sent: 0,
            applied: 0,
            transfers: Vec::new(),
            groups: Arc::default(),
            silent: BTreeSet::new(),
            store_is_old: false,
            is_leaving: false,
            receiver_is_leaving: false,
        }
    }
}
