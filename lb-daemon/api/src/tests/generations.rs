//! The history over the API.

use spillway_proto::v1::objects_client::ObjectsClient;
use tonic::{Code, Status};

use super::*;
use crate::audit::tests::lines;
use lb_config::{FIELD_TRAILER, HINT_TRAILER};

fn trailer(status: &Status, name: &str) -> String {
    let text = status.metadata().get(name).and_then(|text| text.to_str().ok());
    text.unwrap_or_default().to_owned()
}

fn with_weight(weight: u32) -> v1::Configuration {
    let mut configuration = configuration();
    configuration.pools[0].backends[0].weight = Some(weight);
    configuration
}

async fn listed(client: &mut SpillwayClient) -> Vec<v1::Generation> {
    let answer = client.list_generations(v1::ListGenerationsRequest {}).await.unwrap();
    answer.into_inner().generations
}

#[tokio::test]
async fn what_was_applied_is_listed_compared_and_rolled_back_to() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    let mut client = daemon.client().await;
    assert_eq!(listed(&mut client).await, []);
    let first = v1::ApplyRequest { reason: " ticket 7 ".into(), ..apply(configuration()) };
    client.apply(first).await.unwrap();
    let mut objects = ObjectsClient::new(daemon.channel().await);
    let weight = v1::UpdateBackendRequest {
        backend: Some(v1::Backend {
            pool: "web".into(),
            weight: Some(3),
            ..configuration().pools[0].backends[0].clone()
        }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["weight".into()] }),
        ..Default::default()
    };
    objects.update_backend(weight).await.unwrap();
    let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();

    let difference = v1::DiffGenerationsRequest { from: 1, to: None };
    let difference = client.diff_generations(difference).await.unwrap().into_inner();
    assert_eq!((difference.from, difference.to), (1, 2));
    let objects_changed: Vec<_> = difference.changes.iter().map(|it| &*it.text).collect();
    assert_eq!(objects_changed, ["pool web", "pool web: backend 10.0.0.1"]);
    assert!(!difference.movements.is_empty());

    let rollback = v1::RollbackRequest {
        generation: 1,
        expected_generation: Some(2),
        reason: "too slow".into(),
        ..v1::RollbackRequest::default()
    };
    let dry = v1::RollbackRequest { validate_only: true, ..rollback.clone() };
    let dry = client.rollback(dry).await.unwrap().into_inner().result.unwrap();
    let done = client.rollback(rollback.clone()).await.unwrap().into_inner().result.unwrap();
    assert_eq!((dry.generation, done.generation), (2, 3));
    assert_eq!((&dry.changes, dry.changes.len()), (&done.changes, 2));
    let back = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(back.configuration.unwrap().pools[0].backends[0].weight, Some(1));
    let conflict = client.rollback(rollback).await.unwrap_err();
    assert_eq!(
        (conflict.code(), conflict.message()),
        (Code::Aborted, "generation 3 is in force, not 2")
    );

    let generations = listed(&mut client).await;
    let uid = format!("uid {}", nix::unistd::getuid());
    let found: Vec<_> =
        generations.iter().map(|it| (it.number, &*it.why, it.changes, it.current)).collect();
    let expected = [
        (3, "rollback to generation 1: too slow", Some(2), true),
        (2, "update of pool \"web\": backend 10.0.0.1", Some(2), false),
        (1, "ticket 7", Some(5), false),
    ];
    assert_eq!(found, expected);
    // Without a name only if the user is not in passwd.
    let is_own = |who: &str| who == uid || who.starts_with(&format!("{uid} ("));
    assert!(generations.iter().all(|it| is_own(&it.who) && it.applied_at.is_some()));
    assert!(generations.iter().all(|it| it.unusable.is_empty()));
    assert_eq!(exported.generation, 2);

    audit.flush().await;
    let intents: Vec<_> =
        lines(&path).into_iter().filter(|line| line["what"] == "intent").collect();
    let reasons: Vec<_> = intents.iter().map(|line| line["reason"].as_str()).collect();
    assert_eq!(reasons, [Some("ticket 7"), None, Some("too slow"), Some("too slow")]);
    assert_eq!(intents[2]["request"], "rollback to generation 1");
}

#[tokio::test]
async fn a_generation_that_is_not_kept_is_not_found_and_that_is_audited() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let rollback = v1::RollbackRequest { generation: 7, ..v1::RollbackRequest::default() };
    let dry = v1::RollbackRequest { validate_only: true, ..rollback.clone() };
    let difference = v1::DiffGenerationsRequest { from: 1, to: Some(7) };
    for refused in [
        client.rollback(rollback).await.unwrap_err(),
        client.rollback(dry).await.unwrap_err(),
        client.diff_generations(difference).await.unwrap_err(),
    ] {
        let message = "generation 7 is not in the history, which has the last 20 generations";
        assert_eq!((refused.code(), refused.message()), (Code::NotFound, message));
        assert!(trailer(&refused, HINT_TRAILER).starts_with("`spillway history` lists"));
    }
    audit.flush().await;
    let refused: Vec<_> =
        lines(&path).into_iter().filter(|line| line["outcome"] == "refused").collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["request"], "rollback to generation 7");
}

#[tokio::test]
async fn a_reason_that_is_none_is_refused_in_every_call() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let mut objects = ObjectsClient::new(daemon.channel().await);
    for (reason, cause) in [
        ("a\nb".to_owned(), "must not contain line breaks or other control characters"),
        ("x".repeat(257), "257 bytes are more than 256"),
    ] {
        let region = Some(v1::Region { name: "us".into(), ..v1::Region::default() });
        let to = |generation| v1::RollbackRequest {
            generation,
            reason: reason.clone(),
            ..Default::default()
        };
        for refused in [
            client
                .apply(v1::ApplyRequest { reason: reason.clone(), ..apply(with_weight(2)) })
                .await
                .unwrap_err(),
            client.rollback(to(1)).await.unwrap_err(),
            objects
                .create_region(v1::CreateRegionRequest {
                    region: region.clone(),
                    reason: reason.clone(),
                    ..Default::default()
                })
                .await
                .unwrap_err(),
            objects
                .delete_region(v1::DeleteRegionRequest {
                    name: "eu".into(),
                    reason: reason.clone(),
                    ..Default::default()
                })
                .await
                .unwrap_err(),
        ] {
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert_eq!(refused.message(), format!("reason: {cause}"));
            assert_eq!(trailer(&refused, FIELD_TRAILER), "reason");
        }
    }
    assert_eq!(listed(&mut client).await.len(), 1);
}

/// A daemon that cannot use the configuration in force says so, and an earlier one is the way out.
#[tokio::test]
async fn a_generation_that_cannot_be_used_is_refused_with_the_cause() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    for weight in 1..=2 {
        client.apply(apply(with_weight(weight))).await.unwrap();
    }
    let directory = daemon.stop().await;
    lb_fake::stored::rewrite(directory.path(), |_, configuration, _| {
        configuration.regions[0].overflow_to.push("nowhere".into());
    })
    .unwrap();
    let store = Store::open(directory.path()).unwrap();
    let daemon = Daemon::over(directory, store, Settings::default(), None, Audit::default());
    let mut client = daemon.client().await;
    let generations = listed(&mut client).await;
    assert!(generations[0].unusable.starts_with("this version refuses it: "), "{generations:?}");
    let to = |generation| v1::RollbackRequest { generation, ..v1::RollbackRequest::default() };
    let refused = client.rollback(to(2)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().starts_with("generation 2 cannot be used: this version refuses it"));
    assert!(trailer(&refused, HINT_TRAILER).contains("spillway history"));
    let applied = client.rollback(to(1)).await.unwrap().into_inner().result.unwrap();
    assert!(applied.movements_unknown);
    assert_eq!(applied.generation, 3);
}
