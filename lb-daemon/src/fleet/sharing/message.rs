//! Messages between balancers as they are sent. What a peer sent is the input of a stranger: it is taken whole, or refused
//! with a sentence.

use std::collections::{BTreeMap, BTreeSet};

use lb_model::{Name, NameError};
use lb_sharing::{GroupKey, GroupReport, Message, Parts, ReportedCapacity, Transfer};
use spillway_proto::peers::v1::{self, CapacityKind, ExchangeRequest};

/// The protocol that this program speaks. It rises with each change that a balancer of the protocol before would
/// misunderstand.
pub(crate) const PROTOCOL: u32 = 1;

/// This program's version.
pub(crate) const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Most bytes of a version.
const MAX_VERSION: usize = 64;

/// A message of a peer, with the version of its program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PeerMessage {
    pub(crate) message: Message,
    pub(crate) program_version: String,
}

/// Why a message cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerMessageError {
    #[error(
        "it speaks protocol {theirs} (Spillway {version}), and this balancer speaks protocol {PROTOCOL} \
         (Spillway {PROGRAM_VERSION}): balancers of both cannot share capacities"
    )]
    Protocol { theirs: u32, version: String },
    #[error("the version is not one of a program")]
    Version,
    #[error("{field}: {source}")]
    Name { field: &'static str, source: NameError },
    #[error("{field}: {name} occurs twice")]
    Twice { field: &'static str, name: String },
    #[error("pool {pool} in region {region}: kind {kind} of capacity is not known")]
    Capacity { pool: Name, region: Name, kind: i32 },
    #[error("transfer {number} names group {group}, but there are only {groups}")]
    Group { number: u64, group: u32, groups: usize },
    #[error("{0}")]
    Nonsense(String),
}

/// The message as it is sent.
pub(crate) fn to_request(message: &Message) -> ExchangeRequest {
    let mut places: BTreeMap<&GroupKey, u32> = BTreeMap::new();
    let mut groups = Vec::with_capacity(message.groups.len());
    let reported = message.groups.iter().map(|(group, report)| (group, Some(report)));
    let given = message.transfers.iter().map(|transfer| (&transfer.group, None));
    for (group, report) in reported.chain(given) {
        places.entry(group).or_insert_with(|| {
            groups.push(v1::Group {
                pool: group.pool.as_str().to_owned(),
                region: group.region.as_str().to_owned(),
                birth: group.birth,
                report: report.map(to_report),
            });
            // A message of so many groups is larger than may be sent.
            u32::try_from(groups.len() - 1).unwrap_or(u32::MAX)
        });
    }
    let transfer = |transfer: &Transfer| v1::Transfer {
        number: transfer.number,
        group: places.get(&transfer.group).copied().unwrap_or(u32::MAX),
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
        groups,
        hears: message.hears.iter().map(|name| name.as_str().to_owned()).collect(),
        has_listened: message.has_listened,
        store_is_old: message.store_is_old,
        is_leaving: message.is_leaving,
        receiver_is_leaving: message.receiver_is_leaving,
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

/// The message that was sent.
///
/// # Errors
/// [`PeerMessageError`]: nothing of it may be used.
pub(crate) fn from_request(request: ExchangeRequest) -> Result<PeerMessage, PeerMessageError> {
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
    let mut keys = Vec::with_capacity(request.groups.len());
    let (mut seen, mut groups) = (BTreeSet::new(), BTreeMap::new());
    for group in request.groups {
        let key = GroupKey {
            pool: name("groups: pool", &group.pool)?,
            region: name("groups: region", &group.region)?,
            birth: group.birth,
        };
        if !seen.insert(key.clone()) {
            let name = format!("pool {} in region {}", key.pool, key.region);
            return Err(PeerMessageError::Twice { field: "groups", name });
        }
        if let Some(report) = group.report {
            groups.insert(key.clone(), from_report(&key, &report)?);
        }
        keys.push(key);
    }
    let transfer = |transfer: v1::Transfer| {
        let (number, group) = (transfer.number, transfer.group);
        let key = usize::try_from(group).ok().and_then(|place| keys.get(place)).cloned();
        let key = key.ok_or(PeerMessageError::Group { number, group, groups: keys.len() })?;
        Ok(Transfer { number, group: key, parts: Parts(transfer.parts) })
    };
    let transfers: Result<_, PeerMessageError> =
        request.transfers.into_iter().map(transfer).collect();
    let mut hears = BTreeSet::new();
    for text in &request.hears {
        if !hears.insert(name("hears", text)?) {
            return Err(PeerMessageError::Twice { field: "hears", name: text.clone() });
        }
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
        groups,
        hears,
        has_listened: request.has_listened,
        store_is_old: request.store_is_old,
        is_leaving: request.is_leaving,
        receiver_is_leaving: request.receiver_is_leaving,
    };
    message.check().map_err(|error| PeerMessageError::Nonsense(error.to_string()))?;
    Ok(PeerMessage { message, program_version: request.program_version })
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
    use proptest::{collection::vec, prelude::*};
    use prost::Message as _;

    use super::*;

    fn names() -> impl Strategy<Value = Name> {
        "[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?".prop_map(|text| Name::new(&text).unwrap())
    }

    fn group_keys() -> impl Strategy<Value = GroupKey> {
        (names(), names(), any::<u64>()).prop_map(|(pool, region, birth)| GroupKey {
            pool,
            region,
            birth,
        })
    }

    fn reports() -> impl Strategy<Value = GroupReport> {
        let capacity = prop_oneof![
            Just(ReportedCapacity::Closed),
            Just(ReportedCapacity::Unlimited),
            (0.001..1e9).prop_map(ReportedCapacity::PerSecond),
        ];
        (0.0..1e9, 0..=Parts::WHOLE.0, capacity, any::<bool>()).prop_map(
            |(demand, owned, capacity, may_send)| GroupReport {
                demand,
                owned: Parts(owned),
                capacity,
                may_send,
            },
        )
    }

    prop_compose! {
        /// Transfers are of groups that are reported and of others, which the receiver may not know.
        fn messages()(
            from in names(),
            numbers in any::<[u64; 5]>(),
            flags in any::<[bool; 4]>(),
            reported in vec((group_keys(), reports()), 0..8),
            others in vec(group_keys(), 1..4),
            given in vec((any::<prop::sample::Index>(), 0..=Parts::WHOLE.0), 0..8),
            before in 0..1_000_u64,
            hears in vec(names(), 0..5),
        ) -> Message {
            let keys: Vec<_> =
                reported.iter().map(|(group, _)| group).chain(&others).cloned().collect();
            let given = (before + 1..).zip(&given);
            let transfers: Vec<_> = given
                .map(|(number, (place, parts))| Transfer {
                    number,
                    group: place.get(&keys).clone(),
                    parts: Parts(*parts),
                })
                .collect();
            Message {
                from,
                incarnation: numbers[0],
                receiver_incarnation: numbers[1],
                sequence: numbers[2],
                epoch: numbers[3],
                sent: before + transfers.len() as u64,
                applied: numbers[4],
                transfers,
                groups: reported.into_iter().collect(),
                hears: hears.into_iter().collect(),
                has_listened: flags[0],
                store_is_old: flags[1],
                is_leaving: flags[2],
                receiver_is_leaving: flags[3],
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_taken(message in messages()) {
            let bytes = to_request(&message).encode_to_vec();
            let taken = from_request(ExchangeRequest::decode(&*bytes).unwrap()).unwrap();
            prop_assert_eq!(taken.message, message);
            prop_assert_eq!(taken.program_version, PROGRAM_VERSION);
        }

        /// Bytes of a message, changed in places: they are refused, or make a message that makes sense.
        #[test]
        fn damaged_bytes_are_refused_or_make_sense(
            message in messages(),
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = to_request(&message).encode_to_vec();
            for (place, byte) in changes {
                *place.get_mut(&mut bytes) = byte;
            }
            if let Ok(Ok(taken)) = ExchangeRequest::decode(&*bytes).map(from_request) {
                prop_assert!(taken.message.check().is_ok());
            }
        }

        #[test]
        fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
            if let Ok(Ok(taken)) = ExchangeRequest::decode(&*bytes).map(from_request) {
                prop_assert!(taken.message.check().is_ok());
            }
        }
    }

    #[test]
    fn each_refusal_has_its_sentence() {
        let group = |pool: &str| v1::Group {
            pool: pool.into(),
            region: "eu".into(),
            birth: 1,
            report: Some(v1::GroupReport { capacity_kind: 1, ..Default::default() }),
        };
        let good = || ExchangeRequest {
            protocol: PROTOCOL,
            program_version: "1.2.3".into(),
            from: "b".into(),
            groups: vec![group("web"), group("api")],
            ..Default::default()
        };
        let refused = |change: &dyn Fn(&mut ExchangeRequest)| {
            let mut request = good();
            change(&mut request);
            from_request(request).unwrap_err().to_string()
        };
        assert!(from_request(good()).is_ok());
        let ours = PROGRAM_VERSION;
        assert_eq!(
            refused(&|request| (request.protocol, request.from) = (2, "B!".into())),
            format!(
                "it speaks protocol 2 (Spillway 1.2.3), and this balancer speaks protocol 1 (Spillway {ours}): \
                 balancers of both cannot share capacities"
            )
        );
        for wrong in ["1.2.3\n", "\u{202e}1", &"1".repeat(65)] {
            let sentence = refused(&|request| request.program_version = wrong.into());
            assert_eq!(sentence, "the version is not one of a program");
        }
        assert_eq!(refused(&|request| request.from.clear()), "from: must be set");
        assert_eq!(
            refused(&|request| request.groups[1].region = "EU".into()),
            "groups: region: may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit"
        );
        assert_eq!(
            refused(&|request| request.groups[1].pool = "web".into()),
            "groups: pool web in region eu occurs twice"
        );
        assert_eq!(
            refused(&|request| request.hears = vec!["c".into(), "c".into()]),
            "hears: c occurs twice"
        );
        for kind in [0, 9] {
            let change = |request: &mut ExchangeRequest| {
                request.groups[0].report =
                    Some(v1::GroupReport { capacity_kind: kind, ..Default::default() });
            };
            assert_eq!(
                refused(&change),
                format!("pool web in region eu: kind {kind} of capacity is not known")
            );
        }
        let transfers = vec![v1::Transfer { number: 1, group: 2, parts: 1 }];
        assert_eq!(
            refused(&|request| (request.sent, request.transfers) = (1, transfers.clone())),
            "transfer 1 names group 2, but there are only 2"
        );
        assert_eq!(
            refused(&|request| {
                let transfer = v1::Transfer { number: 1, group: 0, parts: 1 << 33 };
                (request.sent, request.transfers) = (1, vec![transfer]);
            }),
            "more than the whole of the capacity of pool web in region eu"
        );
    }
}
