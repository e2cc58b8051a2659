//! Messages between balancers as they are sent. What a peer sent is the input of a stranger: it is taken whole, or refused
//! with a sentence.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use lb_model::{Name, NameError};
use lb_sharing::{GroupKey, GroupReport, Message, Parts, ReportedCapacity, Transfer};
use prost::{Message as _, bytes::Bytes};
use spillway_proto::peers::v1::{self, CapacityKind, ExchangeRequest};

/// The protocol that this program speaks. It rises with each change that a balancer of the protocol before would
/// misunderstand.
pub const PROTOCOL: u32 = 1;

/// This program's version.
pub const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");

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

/// Milliseconds since 1970.
fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
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
    use proptest::{collection::vec, prelude::*};

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
            flags in any::<[bool; 3]>(),
            reported in vec((group_keys(), reports()), 0..8),
            others in vec(group_keys(), 1..4),
            given in vec((any::<prop::sample::Index>(), 0..=Parts::WHOLE.0), 0..8),
            before in 0..1_000_u64,
            silent in vec(names(), 0..5),
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
                groups: Arc::new(reported.into_iter().collect()),
                silent: silent.into_iter().collect(),
                store_is_old: flags[0],
                is_leaving: flags[1],
                receiver_is_leaving: flags[2],
            }
        }
    }

    fn read(request: ExchangeRequest) -> Result<PeerMessage, PeerMessageError> {
        MessageReader::default().from_request(request)
    }

    fn encoded(message: &Message) -> Vec<u8> {
        to_request(message, &EncodedReports::new(&message.groups)).encode_to_vec()
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_is_taken(message in messages()) {
            let bytes = encoded(&message);
            let taken = read(ExchangeRequest::decode(&*bytes).unwrap()).unwrap();
            prop_assert_eq!(taken.message, message);
            prop_assert_eq!(taken.program_version, PROGRAM_VERSION);
        }

        #[test]
        fn clocks_are_compared(message in messages(), ahead in -1_000_000_000i64..1_000_000_000) {
            let mut request = ExchangeRequest::decode(&*encoded(&message)).unwrap();
            request.sent_at_ms = request.sent_at_ms.strict_add_signed(ahead);
            // The rest is the time between the two, in which a clock may be set too.
            let off = read(request.clone()).unwrap().clock_ahead_ms.unwrap().abs_diff(ahead);
            prop_assert!(off < 60_000, "{}", off);
            request.sent_at_ms = 0;
            prop_assert_eq!(read(request.clone()).unwrap().clock_ahead_ms, None);
            request.sent_at_ms = u64::MAX;
            prop_assert!(read(request).unwrap().clock_ahead_ms.is_none_or(|it| it > 0));
        }

        /// Bytes of a message, changed in places: they are refused, or make a message that makes sense.
        #[test]
        fn damaged_bytes_are_refused_or_make_sense(
            message in messages(),
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = encoded(&message);
            for (place, byte) in changes {
                *place.get_mut(&mut bytes) = byte;
            }
            if let Ok(Ok(taken)) = ExchangeRequest::decode(&*bytes).map(read) {
                prop_assert!(taken.message.check().is_ok());
            }
        }

        #[test]
        fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
            if let Ok(Ok(taken)) = ExchangeRequest::decode(&*bytes).map(read) {
                prop_assert!(taken.message.check().is_ok());
            }
        }
    }

    #[test]
    fn each_refusal_has_its_sentence() {
        let group = |pool: &str| v1::Group { pool: pool.into(), region: "eu".into(), birth: 1 };
        let groups = |groups: &[v1::Group]| {
            Bytes::from(v1::Groups { groups: groups.to_vec() }.encode_to_vec())
        };
        let reports = |kinds: &[i32]| {
            let report =
                |kind: &i32| v1::GroupReport { capacity_kind: *kind, ..Default::default() };
            Bytes::from(v1::Reports { reports: kinds.iter().map(report).collect() }.encode_to_vec())
        };
        let good = || ExchangeRequest {
            protocol: PROTOCOL,
            program_version: "1.2.3".into(),
            from: "b".into(),
            groups: groups(&[group("api"), group("web")]),
            reports: reports(&[1, 1]),
            ..Default::default()
        };
        let refused = |change: &dyn Fn(&mut ExchangeRequest)| {
            let mut request = good();
            change(&mut request);
            read(request).unwrap_err().to_string()
        };
        assert!(read(good()).is_ok());
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
            refused(&|request| {
                let wrong = v1::Group { region: "EU".into(), ..group("web") };
                request.groups = groups(&[group("api"), wrong]);
            }),
            "groups: region: may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit"
        );
        for second in ["web", "api"] {
            assert_eq!(
                refused(&|request| request.groups = groups(&[group("web"), group(second)])),
                format!(
                    "groups: pool {second} in region eu occurs twice, or not in the order of names"
                )
            );
        }
        assert_eq!(
            refused(&|request| request.others = vec![group("web"), group("api")]),
            "others: pool api in region eu occurs twice, or not in the order of names"
        );
        assert_eq!(
            refused(&|request| request.silent = vec!["c".into(), "c".into()]),
            "silent: c occurs twice, or not in the order of names"
        );
        assert_eq!(
            refused(&|request| request.reports = reports(&[1])),
            "there are 2 groups and 1 reports of them"
        );
        for field in ["groups", "reports"] {
            let sentence = refused(&|request| {
                let bytes = Bytes::from_static(&[0x0a, 9]);
                match field {
                    "groups" => request.groups = bytes,
                    _ => request.reports = bytes,
                }
            });
            assert!(sentence.starts_with(&format!("{field}: failed to decode")), "{sentence}");
        }
        for kind in [0, 9] {
            let change = |request: &mut ExchangeRequest| request.reports = reports(&[1, kind]);
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
                let transfer = v1::Transfer { number: 1, group: 1, parts: 1 << 33 };
                (request.sent, request.transfers) = (1, vec![transfer]);
            }),
            "more than the whole of the capacity of pool web in region eu"
        );
    }

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
