use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::*;
use lb_config::document::Document;
use lb_control::command::{Applied, ApplyRequest, Command, Exported, Query, Refusal, Requests};
use lb_fake::WEB;

const WRITERS: u32 = 6;
const EACH: u32 = 5;

/// Writers of one list, and meanwhile somebody who applies whole configurations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_update_is_lost() {
    let (daemon, _) = scene().await;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let mut caller = Caller::of(&daemon).await;
        writers.push(tokio::spawn(async move {
            for number in 0..EACH {
                let address = format!("10.1.{writer}.{number}");
                let request =
                    format!(r#"pool: "spare" backend {{ address: "{address}" region: "eu" }}"#);
                caller.call("CreateBackend", &request).await.unwrap();
            }
        }));
    }
    // Fewer than a call would wait for.
    const APPLIES: u32 = 6;
    let mut client = daemon.client().await;
    let mut applied = 0;
    while applied < APPLIES {
        let now = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
        let mut configuration = now.configuration.unwrap();
        let name = format!("extra{applied}");
        configuration.regions.push(v1::Region { name, overflow_to: Vec::new() });
        let expected_generation = Some(now.generation);
        let request = v1::ApplyRequest { expected_generation, ..apply(configuration) };
        match client.apply(request).await {
            Ok(_) => applied += 1,
            Err(status) => assert_eq!(status.code(), Code::Aborted, "{status}"),
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let now = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(now.generation, u64::from(1 + APPLIES + WRITERS * EACH));
    let configuration = now.configuration.unwrap();
    let is: BTreeSet<_> = configuration.pools[0].backends.iter().map(|b| &*b.address).collect();
    let be: Vec<_> = (0..WRITERS)
        .flat_map(|writer| (0..EACH).map(move |number| format!("10.1.{writer}.{number}")))
        .collect();
    assert_eq!(is, be.iter().map(|address| &**address).collect());
    assert_eq!(configuration.regions.len(), 3 + APPLIES as usize);
}

/// Read, change, write: with the etag nobody overwrites what was not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etag_makes_reading_and_writing_one() {
    let (daemon, mut caller) = scene().await;
    let mut writers = Vec::new();
    for _ in 0..4 {
        let mut caller = Caller::of(&daemon).await;
        writers.push(tokio::spawn(async move {
            let mut raised = 0;
            while raised < EACH {
                let get = r#"pool: "web" address: "10.0.0.1""#;
                let read = caller.call("GetBackend", get).await.unwrap();
                let weight = weight(&read) + 1;
                let request = format!(
                    r#"pool: "web" backend {{ address: "10.0.0.1" weight: {weight} }} etag: "{}""#,
                    etag(&read)
                );
                match caller.call("UpdateBackend", &request).await {
                    Ok(_) => raised += 1,
                    Err(status) => assert_eq!(status.code(), Code::Aborted, "{status}"),
                }
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let read = caller.call("GetBackend", r#"pool: "web" address: "10.0.0.1""#).await.unwrap();
    assert_eq!(weight(&read), 1 + 4 * EACH);
}

fn weight(answer: &prost_reflect::DynamicMessage) -> u32 {
    let backend = answer.get_field_by_name("backend").unwrap().into_owned();
    backend.as_message().unwrap().get_field_by_name("weight").unwrap().as_u32().unwrap()
}

/// A server whose commands the test answers, instead of the loops.
fn commanded_by_the_test() -> (Daemon, Requests, TempDir) {
    let mut daemon = Daemon::start();
    let directory = tempfile::tempdir().unwrap();
    daemon.path = directory.path().join("other.sock");
    let (commands, asked) = Commands::channel();
    // It ends with the test's runtime.
    let _server =
        serving(&daemon.path, None, (commands, Audit::default()), CancellationToken::new());
    (daemon, asked, directory)
}

/// Where others are always faster, a call gives up and says so.
#[tokio::test]
async fn a_call_that_is_always_too_late_gives_up() {
    let (daemon, mut asked, _directory) = commanded_by_the_test();
    let others = tokio::spawn(async move {
        let mut applies = 0;
        while let Some(command) = asked.recv().await {
            match command {
                Command::Query(Query::Export(reply)) => {
                    let (generation, configuration) = (applies, Default::default());
                    reply
                        .send(Exported { generation, configuration, ..Exported::default() })
                        .unwrap();
                }
                Command::Apply(ApplyRequest { apply, reply, .. }) => {
                    let expected = apply.expected_generation.unwrap();
                    assert_eq!(expected, applies);
                    applies += 1;
                    reply.send(Err(Refusal::Conflict { expected, current: applies })).unwrap();
                    if applies == 10 {
                        break;
                    }
                }
                Command::Query(Query::Condition(reply)) => reply.send(None).unwrap(),
                command => panic!("{command:?}"),
            }
        }
    });
    let mut caller = Caller::of(&daemon).await;
    let status = caller.call("CreateRegion", r#"region { name: "eu" }"#).await.unwrap_err();
    let message = "region \"eu\": others changed the configuration 10 times meanwhile; \
                   nothing was changed";
    assert_eq!((status.code(), status.message()), (Code::Aborted, message));
    others.await.unwrap();
}

/// An apply may wait for a disk that does not answer, and a drain must not wait for its turn behind it.
#[tokio::test]
async fn a_drain_does_not_wait_for_its_turn_behind_an_apply_that_waits() {
    let (daemon, mut asked, _directory) = commanded_by_the_test();
    let document = Document::parse(WEB).unwrap().into();
    let configuration = lb_config::validate_first(&document).unwrap();
    let (applies_tx, mut applies) = mpsc::unbounded_channel();
    let state = tokio::spawn(async move {
        while let Some(command) = asked.recv().await {
            match command {
                Command::Query(Query::Export(reply)) => {
                    let configuration = configuration.clone();
                    let exported = Exported { generation: 1, configuration, ..Exported::default() };
                    reply.send(exported).unwrap();
                }
                Command::Apply(request) => applies_tx.send(request).unwrap(),
                Command::Query(Query::Condition(reply)) => reply.send(None).unwrap(),
                command => panic!("{command:?}"),
            }
        }
    });
    let update = |mut caller: Caller, mask: &'static str, fields: &'static str| {
        let request = format!(
            r#"pool: "web" backend {{ address: "10.0.0.1" {fields} }} update_mask {{ paths: "{mask}" }}"#
        );
        tokio::spawn(async move { caller.call("UpdateBackend", &request).await })
    };
    let waits = update(Caller::of(&daemon).await, "weight", "weight: 3");
    let first: ApplyRequest = applies.recv().await.unwrap();
    let also_waits = update(Caller::of(&daemon).await, "weight", "weight: 4");
    let drain = "admin_state: ADMIN_STATE_DRAIN";
    let drain = update(Caller::of(&daemon).await, "admin_state", drain);
    let second = tokio::time::timeout(std::time::Duration::from_secs(30), applies.recv()).await;
    let second: ApplyRequest = second.expect("it waits for its turn").unwrap();
    let slots = lb_config::SlotsByPool::default();
    let asked = second.apply.configuration.resolve(&slots).unwrap();
    let backend = &asked.pools.values().next().unwrap().backends[&"10.0.0.1".parse().unwrap()];
    assert_eq!(backend.admin_state, lb_model::AdminState::Drain);
    second.reply.send(Ok(Applied { generation: 2, ..Applied::default() })).unwrap();
    drain.await.unwrap().unwrap();
    assert!(!waits.is_finished() && !also_waits.is_finished() && applies.is_empty());
    first.reply.send(Ok(Applied { generation: 3, ..Applied::default() })).unwrap();
    waits.await.unwrap().unwrap();
    also_waits.abort();
    state.abort();
}
