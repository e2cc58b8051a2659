//! Programs of several schema revisions: nothing is lost that one of them does not know, unless it is asked for.

use prost_types::FieldMask;
use spillway_proto::v1::objects_client::ObjectsClient;
use tonic::{Code, Request, Status, client::Grpc};
use tonic_prost::ProstCodec;

use super::{objects::text_fixture, *};
use lb_config::HINT_TRAILER;

/// This program's revision and the next one.
const NOW: i32 = spillway_proto::SCHEMA_REVISION as i32;
const NEXT: i32 = NOW + 1;

/// An ApplyRequest of a later version, which has a field of the configuration that there is none of here: the bytes
/// of a message stand in its field like other bytes.
#[derive(Clone, PartialEq, prost::Message)]
struct NewerApply {
    #[prost(bytes = "vec", tag = "1")]
    configuration: Vec<u8>,
    #[prost(int32, tag = "4")]
    schema_revision: i32,
    #[prost(bool, tag = "5")]
    any_schema: bool,
}

/// A configuration with field 1000 as well.
fn newer(configuration: v1::Configuration) -> Vec<u8> {
    use prost::Message as _;
    [configuration.encode_to_vec(), vec![0xc0, 0x3e, 7]].concat()
}

async fn send(daemon: &Daemon, request: NewerApply) -> Result<v1::ApplyResult, Status> {
    let mut grpc = Grpc::new(daemon.channel().await);
    grpc.ready().await.unwrap();
    let codec = ProstCodec::<NewerApply, v1::ApplyResponse>::default();
    let path = "/spillway.v1.Spillway/Apply".parse().unwrap();
    grpc.unary(Request::new(request), path, codec)
        .await
        .map(|answer| answer.into_inner().result.unwrap())
}

/// The code, the sentence, and what to do.
fn words(status: &Status) -> (Code, String, String) {
    let hint = status.metadata().get(HINT_TRAILER).unwrap().to_str().unwrap();
    (status.code(), status.message().to_owned(), hint.to_owned())
}

#[tokio::test]
async fn what_a_newer_client_sends_is_not_half_taken() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let configuration = newer(configuration());
    let request = NewerApply { configuration, schema_revision: NEXT, any_schema: false };
    let (code, sentence, hint) = words(&send(&daemon, request.clone()).await.unwrap_err());
    assert_eq!(code, Code::FailedPrecondition);
    assert_eq!(
        sentence,
        format!(
            "the daemon is older than the client (schema revision {NOW}, the client has {NEXT}), and fields that it \
             does not know would be left out"
        )
    );
    assert!(hint.contains("upgrade the daemon") && hint.contains("--any-schema"), "{hint}");
    assert_eq!(client.export(v1::ExportRequest {}).await.unwrap().into_inner().generation, 0);

    // What seems wrong may be only what is not known here.
    let wrong = v1::Configuration {
        health_checks: vec![v1::HealthCheck { name: "new".into(), port: 80, ..Default::default() }],
        ..Default::default()
    };
    let request_of_wrong = NewerApply { configuration: newer(wrong), ..request.clone() };
    let (_, again, _) = words(&send(&daemon, request_of_wrong).await.unwrap_err());
    assert_eq!(again, sentence);

    let taken = send(&daemon, NewerApply { any_schema: true, ..request }).await.unwrap();
    let [warning] = &taken.warnings[..] else { panic!("{taken:?}") };
    assert_eq!((warning.reason(), &warning.text), (v1::WarningReason::Schema, &sentence));
    assert_eq!(taken.generation, 1);
}

#[tokio::test]
async fn an_older_client_cannot_erase_what_it_does_not_know() {
    let daemon = Daemon::of_schema(Revision::new(NEXT));
    let mut client = daemon.client().await;
    let of = |schema_revision, any_schema| v1::ApplyRequest {
        schema_revision,
        any_schema,
        ..apply(configuration())
    };
    client.apply(of(NEXT, false)).await.unwrap();
    let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!((exported.schema_revision, &*exported.unusable), (NEXT, ""));

    // One that names none was made from the first.
    for (revision, told) in [(NOW, NOW), (0, 1)] {
        let refused = words(&client.apply(of(revision, false)).await.unwrap_err());
        let sentence = format!(
            "the client is older than the daemon (schema revision {told}, the daemon has {NEXT}), and fields that it \
             does not know would be erased"
        );
        assert_eq!((refused.0, refused.1), (Code::FailedPrecondition, sentence));
        assert!(refused.2.contains("upgrade the client") && refused.2.contains("--any-schema"));
        let dry = v1::ApplyRequest { validate_only: true, ..of(revision, false) };
        assert_eq!(client.apply(dry).await.unwrap_err().code(), Code::FailedPrecondition);
    }
    let taken = client.apply(of(NOW, true)).await.unwrap().into_inner().result.unwrap();
    assert_eq!((taken.generation, taken.changes.len(), taken.warnings.len()), (1, 0, 1));
}

#[tokio::test]
async fn of_an_object_an_older_client_changes_what_it_names_and_replaces_nothing() {
    let daemon = Daemon::of_schema(Revision::new(NEXT));
    let mut scene = apply(text_fixture());
    scene.schema_revision = NEXT;
    daemon.client().await.apply(scene).await.unwrap();
    let mut objects = ObjectsClient::new(daemon.channel().await);
    let pool = v1::Pool {
        name: "web".into(),
        slots: Some(37),
        groups: vec![v1::Group {
            region: "us".into(),
            scaler: Some(0.5),
            capacity_per_second: Some(10.0),
            ..Default::default()
        }],
        ..Default::default()
    };
    let update = |paths: &[&str], schema_revision, any_schema| v1::UpdatePoolRequest {
        pool: Some(pool.clone()),
        update_mask: Some(FieldMask { paths: paths.iter().map(ToString::to_string).collect() }),
        schema_revision,
        any_schema,
        validate_only: true,
        ..Default::default()
    };
    for paths in [&["groups"][..], &["slots", "groups"], &["*"], &[]] {
        let refused = objects.update_pool(update(paths, NOW, false)).await.unwrap_err();
        let (code, sentence, _) = words(&refused);
        assert_eq!(code, Code::FailedPrecondition, "{paths:?}");
        assert!(sentence.starts_with("the client is older than the daemon"), "{sentence}");
    }
    objects.update_pool(update(&["slots"], NOW, false)).await.unwrap();
    objects.update_pool(update(&["groups"], NEXT, false)).await.unwrap();
    objects.update_pool(update(&["groups"], NOW, true)).await.unwrap();
    // A time is no message of ours, and what is new replaces nothing.
    let check = v1::HealthCheck {
        name: "http".into(),
        interval: Some(prost_types::Duration { seconds: 2, nanos: 0 }),
        ..Default::default()
    };
    let interval = v1::UpdateHealthCheckRequest { health_check: Some(check), ..Default::default() };
    objects.update_health_check(interval).await.unwrap();
    let region = Some(v1::Region { name: "asia".into(), ..Default::default() });
    let create = v1::CreateRegionRequest { region, ..Default::default() };
    objects.create_region(create.clone()).await.unwrap();

    // What a newer client sends may be half of what it means.
    let newer = v1::CreateRegionRequest { schema_revision: NEXT + 1, ..create };
    let refused = words(&objects.create_region(newer.clone()).await.unwrap_err());
    assert!(refused.1.starts_with("the daemon is older than the client"), "{refused:?}");
    objects.create_region(v1::CreateRegionRequest { any_schema: true, ..newer }).await.unwrap();
    let refused = objects.update_pool(update(&["slots"], NEXT + 1, false)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
}

/// A daemon of a later revision wrote the store, with a field that there is none of here.
#[tokio::test]
async fn a_store_of_a_newer_schema_waits_for_the_word() {
    let newer = Daemon::of_schema(Revision::new(NEXT));
    let request = v1::ApplyRequest { schema_revision: NEXT, ..apply(configuration()) };
    newer.client().await.apply(request).await.unwrap();
    let directory = newer.stop().await;
    lb_fake::stored::rewrite(directory.path(), |description, _, more| {
        assert_eq!(description["schema"], Revision::FIRST.number(), "nothing in it is new yet");
        description["schema"] = NEXT.into();
        more.extend([0xc0, 0x3e, 7]);
    })
    .unwrap();
    assert!(Store::open(directory.path()).is_err());
    let store = Store::open_any_schema(directory.path()).unwrap();
    let daemon = Daemon::over(directory, store, Settings::default(), None, Audit::default());
    let mut client = daemon.client().await;
    let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    let cause = format!("it has schema revision {NEXT}, and this version supports {NOW}");
    assert_eq!((exported.generation, exported.schema_revision), (1, NEXT));
    assert_eq!(
        (exported.unusable, exported.configuration.unwrap().pools.len()),
        (cause.clone(), 1)
    );

    // Whoever asks for a pool is told why there is none, in one sentence.
    let unusable = format!("the stored configuration cannot be used: {cause}");
    let pools = vec!["web".to_owned()];
    let status = client.status(v1::StatusRequest { pools, ..Default::default() }).await;
    let backend = v1::GetBackendStatusRequest { pool: "web".into(), address: "10.0.0.1".into() };
    for status in [status.unwrap_err(), client.get_backend_status(backend).await.unwrap_err()] {
        let (code, sentence, _) = words(&status);
        assert_eq!((code, sentence), (Code::FailedPrecondition, unusable.clone()));
    }
    let of = |any_schema| v1::ApplyRequest { any_schema, ..apply(configuration()) };
    let (code, sentence, hint) = words(&client.apply(of(false)).await.unwrap_err());
    assert_eq!(code, Code::FailedPrecondition);
    assert!(
        sentence.starts_with("the daemon is older than the stored configuration"),
        "{sentence}"
    );
    assert!(hint.contains("run the newer spillwayd"), "{hint}");
    let mut objects = ObjectsClient::new(daemon.channel().await);
    let create = v1::CreateRegionRequest {
        region: Some(v1::Region { name: "asia".into(), ..Default::default() }),
        any_schema: true,
        ..Default::default()
    };
    let (code, sentence, _) = words(&objects.create_region(create.clone()).await.unwrap_err());
    assert_eq!(code, Code::FailedPrecondition);
    assert_eq!(sentence, unusable);

    assert_eq!(client.apply(of(true)).await.unwrap().into_inner().result.unwrap().generation, 2);
    objects.create_region(create).await.unwrap();
    let directory = daemon.stop().await;
    assert_eq!(Store::open(directory.path()).unwrap().number(), 3);
}

/// What validation refuses is shown as it is stored, and may be mended by object.
#[tokio::test]
async fn a_refused_configuration_is_exported_and_mended_by_object() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(text_fixture())).await.unwrap();
    let directory = daemon.stop().await;
    lb_fake::stored::rewrite(directory.path(), |_, configuration, _| {
        configuration.pools[0].slots = Some(4)
    })
    .unwrap();
    let store = Store::open(directory.path()).unwrap();
    let daemon = Daemon::over(directory, store, Settings::default(), None, Audit::default());
    let mut client = daemon.client().await;
    let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert!(exported.unusable.contains("slots: "), "{}", exported.unusable);
    let stored = exported.configuration.unwrap();
    assert_eq!((stored.pools[0].slots, stored.services.len()), (Some(4), 1));

    let mut objects = ObjectsClient::new(daemon.channel().await);
    let region = Some(v1::Region { name: "asia".into(), ..Default::default() });
    let create = v1::CreateRegionRequest { region, ..Default::default() };
    let refused = objects.create_region(create).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("slots: "), "{refused:?}");
    let update = v1::UpdatePoolRequest {
        pool: Some(v1::Pool {
            name: stored.pools[0].name.clone(),
            slots: Some(31),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mended = objects.update_pool(update).await.unwrap().into_inner();
    assert_eq!(mended.result.unwrap().generation, 2);
    let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!((exported.generation, &*exported.unusable), (2, ""));
    let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!(status.services.len(), 1);
    assert!(
        status.conditions.iter().all(|it| it.reason() != v1::ConditionReason::StoredConfiguration),
        "{status:?}"
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_not_exported() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(configuration())).await.unwrap();
    let directory = daemon.stop().await;
    lb_fake::stored::rewrite(directory.path(), |_, _, more| more.push(0x0f)).unwrap();
    let store = Store::open(directory.path()).unwrap();
    let daemon = Daemon::over(directory, store, Settings::default(), None, Audit::default());
    let mut client = daemon.client().await;
    let (code, sentence, hint) = words(&client.export(v1::ExportRequest {}).await.unwrap_err());
    assert_eq!(code, Code::FailedPrecondition);
    assert!(sentence.starts_with("the stored configuration cannot be used: it cannot be read: "));
    assert!(hint.contains("apply"), "{hint}");
    assert_eq!(
        client.apply(apply(configuration())).await.unwrap().into_inner().result.unwrap().generation,
        2
    );
}
