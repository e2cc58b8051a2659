use spillway_proto::v1::{
    object_reference::Kind, objects_client::ObjectsClient, state_reason::Cause,
};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::*;

#[tokio::test]
async fn a_configuration_is_applied_listed_and_described() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let empty = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!((empty.generation, empty.applied_at), (0, None));

    let dry_run = v1::ApplyRequest { validate_only: true, ..apply(configuration()) };
    let dry = client.apply(dry_run).await.unwrap().into_inner().result.unwrap();
    let applied = client.apply(apply(configuration())).await.unwrap().into_inner().result.unwrap();
    assert_eq!((dry.generation, applied.generation), (0, 1));
    assert_eq!(dry.changes, applied.changes);
    let added = |kind: Kind, name: &str, text: &str| v1::Change {
        kind: v1::change::Kind::Added.into(),
        object: Some(v1::ObjectReference {
            kind: kind.into(),
            name: name.into(),
            ..Default::default()
        }),
        text: text.into(),
        ..Default::default()
    };
    assert_eq!(
        applied.changes,
        [
            added(Kind::Region, "eu", "region eu"),
            added(Kind::HealthCheck, "tcp", "health check tcp"),
            added(Kind::Pool, "web", "pool web"),
            added(Kind::Service, "web", "service web"),
            v1::Change {
                kind: v1::change::Kind::Changed.into(),
                fields: vec![v1::FieldChange {
                    field: "hash_key".into(),
                    old: "the daemon's own".into(),
                    new: "the configuration's".into(),
                    region: String::new(),
                    text: "hash_key: the daemon's own -> the configuration's".into(),
                }],
                ..added(Kind::Configuration, "", "hash key")
            },
        ]
    );

    let listed = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(listed.generation, 1);
    let listed = listed.configuration.unwrap();
    assert_eq!(listed.hash_key, configuration().hash_key);
    assert_eq!(
        lb_config::validate(&listed).unwrap(),
        lb_config::validate(&configuration()).unwrap(),
    );

    daemon.judge("10.0.0.1", true).await;
    let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!(status.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(status.generation, 1);
    assert!(status.applied_at.is_some() && status.uptime.is_some());
    assert_eq!((status.checksum.len(), &*status.region, &*status.behind), (16, "", ""));
    let interface = v1::InterfaceStatus { name: "eth0".into(), mode: "native".into() };
    assert_eq!(status.interfaces, [interface]);
    let service = v1::ServiceStatus {
        name: "web".into(),
        endpoint: "[2001:db8::1]:80".into(),
        protocol: "tcp".into(),
        pool: "web".into(),
        backends_up: 0,
        backends: 2,
        encapsulation: v1::Encapsulation::IpInIp.into(),
        gue_port: 0,
        slots: 31,
    };
    assert_eq!(status.services, [service]);
    let backend =
        |address: &str, state: v1::BackendState, cause: Cause, text: &str| v1::BackendStatus {
            pool: "web".into(),
            address: address.into(),
            region: "eu".into(),
            state: state.into(),
            reason: Some(v1::StateReason {
                cause: cause.into(),
                health_check: String::new(),
                text: text.into(),
            }),
            next_hop_resolved: false,
            next_hop: "not looked up yet".into(),
            since: None,
            marked_out: false,
            weight: 1,
            share: (state == v1::BackendState::Up).then_some(1.0),
            admin_state: v1::AdminState::Active.into(),
            ..Default::default()
        };
    let backends: Vec<_> =
        status.backends.into_iter().map(|b| v1::BackendStatus { since: None, ..b }).collect();
    assert_eq!(
        backends,
        [
            backend("10.0.0.1", v1::BackendState::Up, Cause::ChecksPass, "all checks pass"),
            backend("10.0.0.2", v1::BackendState::Pending, Cause::NotChecked, "not checked yet"),
        ]
    );
}

#[tokio::test]
async fn no_configuration_is_an_empty_one() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let empty = v1::ApplyRequest {
        force: true,
        configuration: None,
        ..apply(v1::Configuration::default())
    };
    let answer = client.apply(empty).await.unwrap().into_inner().result.unwrap();
    assert_eq!(answer.generation, 2);
    assert!(answer.changes.iter().all(|change| change.text != "pool web: backend 10.0.0.1"));
    assert!(daemon.packets.content().plan.services.is_empty());
}

#[tokio::test]
async fn refusals_have_their_codes_and_change_nothing() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();

    let mut wrong = configuration();
    wrong.services[0].port = 70_000;
    let status = client.apply(apply(wrong)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let message = "services[0] \"web\": port: 70000 is not a port; give 1 to 65535";
    assert_eq!(status.message(), message);
    assert_eq!(status.metadata().get(lb_config::FIELD_TRAILER).unwrap(), "services[0].port");

    let violation = |status: &Status| {
        let violations = status.get_details_bad_request().unwrap().field_violations;
        let pairs = violations.into_iter().map(|it| (it.field, it.description));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(violation(&status), [("services[0].port".to_owned(), message.to_owned())]);

    // All mistakes at once, also of an object, as long as clients take it.
    let mut wrong = configuration();
    (wrong.services[0].port, wrong.pools[0].slots) = (70_000, Some(8));
    let status = client.apply(apply(wrong)).await.unwrap_err();
    let slots = "pools[0] \"web\": slots: 8 is not a prime: 2 divides it";
    assert_eq!(status.message(), format!("{slots} (and 1 more mistake)"));
    let expected = [("pools[0].slots", slots), ("services[0].port", message)];
    assert_eq!(violation(&status), expected.map(|(field, why)| (field.into(), why.into())));
    let mut wrong = configuration();
    let backend = v1::Backend { address: "nowhere".into(), ..v1::Backend::default() };
    wrong.pools[0].backends = vec![backend; 1_000];
    let violations = violation(&client.apply(apply(wrong)).await.unwrap_err());
    let ((field, more), named) = violations.split_last().unwrap();
    assert!(named.len() > 10 && named.iter().all(|(field, _)| field.starts_with("pools[0].")));
    assert_eq!((&**field, more.clone()), ("", format!("{} more mistakes", 2_000 - named.len())));

    let mut other = configuration();
    other.services[0].port = 81;
    let late = v1::ApplyRequest { expected_generation: Some(0), ..apply(other.clone()) };
    let status = client.apply(late).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::Aborted, "generation 1 is in force, not 0")
    );

    daemon.packets.content().full = true;
    let status = client.apply(apply(other.clone())).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let no_room = "the packet path has no room for the configuration: groups: ";
    assert!(status.message().starts_with(no_room));
    daemon.packets.content().full = false;

    let listed = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(listed.generation, 1);

    daemon.packets.content().failures = 1;
    let status = client.apply(apply(other)).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    let message = "generation 2 is in force, but not yet in the packet path";
    assert!(status.message().starts_with(message), "{}", status.message());
}

/// Both are more than the 4 MiB that gRPC takes unless told otherwise. While one end reads them the connection is
/// still asked whether it lives.
#[tokio::test(flavor = "multi_thread")]
async fn large_configurations_pass_both_ways() {
    const USUAL: usize = 1 << 20;
    let daemon = Daemon::start();
    let mut client = daemon.client().await.max_decoding_message_size(64 << 20);
    let region = "x".repeat(63);
    let backend = |n: u32| v1::Backend {
        address: std::net::Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(n)).to_string(),
        region: region.clone(),
        ..Default::default()
    };
    let mut large = configuration();
    large.regions[0].name = region.clone();
    large.services.clear();
    large.pools[0].health_checks.clear();
    large.pools[0].slots = Some(65_537);
    large.pools[0].backends = (0..13_000).map(backend).collect();
    assert!(prost::Message::encoded_len(&large) > USUAL);
    client.apply(apply(large)).await.unwrap();
    let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!(status.backends.len(), 13_000);
    assert!(prost::Message::encoded_len(&status) > USUAL);
}

#[tokio::test]
async fn counters_that_cannot_be_read_are_named() {
    let daemon = Daemon::start();
    let status = daemon.client().await.stats(v1::StatsRequest {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let message = status.message();
    assert!(message.starts_with("the counters: ") && message.contains("/bpf/"), "{message}");
}

#[tokio::test]
async fn the_history_of_a_backend_says_what_became_of_it_and_when() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    daemon.judge("10.0.0.1", true).await;
    let (pool, address) = ("web".to_owned(), "10.0.0.1".to_owned());
    let asked = v1::BackendHistoryRequest { pool, address };
    let told = client.backend_history(asked.clone()).await.unwrap().into_inner().backends;
    let [history] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&*history.pool, &*history.address), ("web", "10.0.0.1"));
    let states: Vec<_> = history.changes.iter().map(v1::StateChange::state).collect();
    assert_eq!(states, [v1::BackendState::Up, v1::BackendState::Pending]);
    let at: Vec<_> = history.changes.iter().map(|change| change.at.unwrap()).collect();
    assert!(at[0].seconds >= at[1].seconds && at[1].seconds > 1_700_000_000, "{at:?}");
    let nowhere = v1::BackendHistoryRequest { address: "10.9.9.9".into(), ..asked };
    let status = client.backend_history(nowhere).await.unwrap_err();
    let message = "pool \"web\" has no backend \"10.9.9.9\"";
    assert_eq!((status.code(), status.message()), (Code::NotFound, message));
}

/// A trailer takes some kilobytes, and who gets a longer one learns nothing but that.
#[tokio::test]
async fn what_was_asked_is_quoted_in_short() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let mut objects = ObjectsClient::new(daemon.channel().await);
    // Two of them are within the 64 KiB that a question may have.
    let long = "\u{1}".repeat(30_000);
    let pool = || Some(v1::Pool { name: "web".into(), ..v1::Pool::default() });
    let mask = |path: String| v1::UpdatePoolRequest {
        pool: pool(),
        update_mask: Some(prost_types::FieldMask { paths: vec![path] }),
        ..v1::UpdatePoolRequest::default()
    };
    let etag = v1::UpdatePoolRequest {
        pool: pool().map(|pool| v1::Pool { etag: long.clone(), ..pool }),
        ..v1::UpdatePoolRequest::default()
    };
    let history =
        |pool: &str| v1::BackendHistoryRequest { pool: pool.into(), address: long.clone() };
    let capture = v1::CaptureRequest { client: long.clone(), ..v1::CaptureRequest::default() };
    let explain = v1::ExplainRequest { client: long.clone(), ..v1::ExplainRequest::default() };
    let refused = [
        objects.get_pool(v1::GetPoolRequest { name: long.clone() }).await.err(),
        objects.update_pool(mask(long.clone())).await.err(),
        objects.update_pool(mask(format!("name.{long}"))).await.err(),
        objects.update_pool(etag).await.err(),
        client.regions(v1::RegionsRequest { pool: long.clone() }).await.err(),
        client.backend_history(history(&long)).await.err(),
        client.backend_history(history("web")).await.err(),
        client.capture(capture).await.err(),
        client.explain(explain).await.err(),
    ];
    let refused = refused.map(|status| status.expect("it is refused"));
    let codes = refused.each_ref().map(Status::code);
    assert_eq!(
        codes,
        [
            Code::NotFound,
            Code::InvalidArgument,
            Code::InvalidArgument,
            Code::Aborted,
            Code::NotFound,
            Code::NotFound,
            Code::NotFound,
            Code::InvalidArgument,
            Code::InvalidArgument,
        ]
    );
    for status in refused {
        assert!(status.message().len() < 1_000, "{}", status.message());
    }
}
