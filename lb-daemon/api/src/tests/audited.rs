//! What is noted of changes: an intent, and what came of it.

use std::{fs, time::Duration};

use serde_json::{Value, json};
use spillway_proto::v1::{objects_client::ObjectsClient, overrides_client::OverridesClient};
use tokio::time::timeout;

use super::*;
use crate::audit::tests::lines;
use lb_base::conditions::Conditions;

const LIMIT: Duration = Duration::from_secs(120);

#[tokio::test]
async fn what_an_object_is_refused_for_before_it_is_a_change_is_noted_once() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    let mut objects = ObjectsClient::new(daemon.channel().await);
    let newer = v1::CreateRegionRequest {
        region: Some(v1::Region { name: "eu".into(), ..v1::Region::default() }),
        schema_revision: 1_000,
        ..v1::CreateRegionRequest::default()
    };
    let status = objects.create_region(newer).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::FailedPrecondition, "{status}");
    audit.flush().await;
    let lines = lines(&path);
    let whats: Vec<_> = lines.iter().map(|line| (&line["outcome"], &line["request"])).collect();
    assert_eq!(whats, [(&"refused".into(), &"creation of region \"eu\"".into())]);
    assert_eq!(lines[0]["cause"], status.message());
}

#[tokio::test]
async fn each_change_has_an_intent_and_an_outcome_refusals_too() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    // Again is no change; on top of another generation it is refused; so is what is wrong.
    client.apply(apply(configuration())).await.unwrap();
    let mut conflict = apply(configuration());
    conflict.expected_generation = Some(7);
    client.apply(conflict).await.unwrap_err();
    let mut wrong = apply(configuration());
    wrong.configuration.as_mut().unwrap().services[0].pool = "none".into();
    client.apply(wrong).await.unwrap_err();
    // What changes nothing by its meaning is not noted.
    let mut dry = apply(v1::Configuration::default());
    dry.validate_only = true;
    client.apply(dry).await.unwrap();
    client.export(v1::ExportRequest {}).await.unwrap();

    audit.flush().await;
    let lines = lines(&path);
    let whats: Vec<_> = lines
        .iter()
        .map(|line| (line["what"].as_str().unwrap(), line["outcome"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        whats,
        [
            ("intent", ""),
            ("apply", "changed"),
            ("intent", ""),
            ("apply", "unchanged"),
            ("intent", ""),
            ("apply", "refused"),
            ("apply", "refused"),
        ]
    );
    for pair in lines[..6].chunks(2) {
        assert_eq!(pair[0]["id"], pair[1]["id"]);
        assert_eq!(pair[0]["who"], pair[1]["who"]);
    }
    let ids: std::collections::BTreeSet<_> =
        lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4, "each has an id of its own");
    assert_eq!((&lines[1]["before"], &lines[1]["after"]), (&0.into(), &1.into()));
    assert_eq!(lines[5]["cause"], "generation 1 is in force, not 7");
    assert!(lines[6]["cause"].as_str().unwrap().contains("is not among the pools"), "{}", lines[6]);
}

#[tokio::test]
async fn an_override_that_ends_by_itself_is_noted_with_what_ended_it() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    daemon.client().await.apply(apply(configuration())).await.unwrap();
    let target = v1::OverrideTarget {
        backend: "10.0.0.1".into(),
        pool: "web".into(),
        ..v1::OverrideTarget::default()
    };
    let request = v1::SetOverridesRequest {
        targets: vec![target],
        kind: v1::OverrideKind::Drain.into(),
        duration: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..v1::SetOverridesRequest::default()
    };
    let mut overrides = OverridesClient::new(daemon.channel().await);
    let set = overrides.set_overrides(request).await.unwrap().into_inner();
    let ended = async {
        loop {
            audit.flush().await;
            let ended = lines(&path).into_iter().find(|line| line["what"] == "override_ended");
            if let Some(ended) = ended {
                return ended;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let ended = timeout(LIMIT, ended).await.expect("it is noted");
    assert_eq!(ended["override"], "pools/web/backends/10.0.0.1/drain");
    assert_eq!(ended["set_by"], *set.overrides[0].who);
    assert_eq!((&ended["cause"], &ended["who"]), (&"its time is over".into(), &json!({})));
    let listed = overrides.list_overrides(v1::ListOverridesRequest::default()).await.unwrap();
    assert!(listed.into_inner().overrides.is_empty());
}

/// A named pipe that nobody reads would block whoever opens it, or writes more than it holds.
#[tokio::test]
async fn a_pipe_that_is_not_read_hinders_no_change() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let conditions = Conditions::default();
    let (at, among) = (path.clone(), conditions.clone());
    let opened = tokio::task::spawn_blocking(move || Audit::open(Some(&at), among));
    let audit = timeout(LIMIT, opened).await.expect("it opens").unwrap().unwrap();
    let daemon = Daemon::noting(audit.clone());
    let mut client = daemon.client().await;
    let applied = timeout(LIMIT, client.apply(apply(configuration()))).await;
    assert_eq!(applied.expect("an answer").unwrap().into_inner().result.unwrap().generation, 1);
    audit.flush().await;
    let cause = &conditions.now()[0].cause;
    assert!(cause.starts_with("audit: not written: "), "{cause}");

    // Once it is read, what is noted from then on comes, and how much is missing.
    use std::{io::Read as _, os::unix::fs::OpenOptionsExt as _};
    let mut pipe =
        fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
    let empty = v1::ApplyRequest { force: true, ..apply(v1::Configuration::default()) };
    client.apply(empty).await.unwrap();
    audit.flush().await;
    assert_eq!(conditions.now(), []);
    let mut read = vec![0; 65_536];
    let length = pipe.read(&mut read).unwrap();
    let text = String::from_utf8_lossy(&read[..length]);
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["what"], &first["lines"]), (&"lost".into(), &2.into()));

    // A full pipe is no hindrance either.
    let mut fills = 0;
    while conditions.now().is_empty() {
        fills += 1;
        assert!(fills < 2_000, "a pipe holds less than that");
        let configuration =
            if fills % 2 == 0 { v1::Configuration::default() } else { configuration() };
        let request = v1::ApplyRequest { force: true, ..apply(configuration) };
        let applied = timeout(LIMIT, client.apply(request)).await;
        applied.expect("an answer").unwrap();
    }
}
