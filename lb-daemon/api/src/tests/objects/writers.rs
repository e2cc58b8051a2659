use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::*;
use lb_control::command::{ApplyRequest, Command, Exported, Query, Refusal, Requests};

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
                    format!(r#"backend {{ pool: "spare" address: "{address}" region: "eu" }}"#);
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
        configuration.regions.push(v1::Region { name, ..Default::default() });
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
                    r#"backend {{ pool: "web" address: "10.0.0.1" weight: {weight} etag: "{}" }}"#,
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
    object(answer).get_field_by_name("weight").unwrap().as_u32().unwrap()
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
    let message = "creation of region \"eu\": others changed the configuration 10 times meanwhile; \
                   nothing was changed";
    assert_eq!((status.code(), status.message()), (Code::Aborted, message));
    others.await.unwrap();
}
