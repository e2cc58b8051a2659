//! What is sent against what is taken of it.

use std::sync::Arc;

use lb_model::Name;
use lb_sharing::{GroupKey, GroupReport, Message, Parts, ReportedCapacity, Transfer};
use proptest::{collection::vec, prelude::*};
use prost::{Message as _, bytes::Bytes};
use spillway_proto::peers::v1::{self, ExchangeRequest};

use crate::*;

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
    let groups =
        |groups: &[v1::Group]| Bytes::from(v1::Groups { groups: groups.to_vec() }.encode_to_vec());
    let reports = |kinds: &[i32]| {
        let report = |kind: &i32| v1::GroupReport { capacity_kind: *kind, ..Default::default() };
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
