//! Who has a certificate, and tries what it is not for.

use prost_reflect::DescriptorPool;
use tonic::{Request, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;

use super::*;

/// Names of all calls of `spillway.v1`, from the descriptors.
fn calls() -> Vec<String> {
    let pool = DescriptorPool::decode(spillway_proto::DESCRIPTORS).unwrap();
    let services: Vec<_> = pool.services().collect();
    let methods = services.iter().flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.map(|m| format!("/{}/{}", m.parent_service().full_name(), m.name())).collect()
}

/// Calls something with an empty message.
async fn call(channel: Channel, name: &str) -> Result<(), tonic::Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path: PathAndQuery = name.parse().unwrap();
    let codec = ProstCodec::<(), ()>::default();
    grpc.unary(Request::new(()), path, codec).await.map(drop)
}

/// How the names of calls begin that change the configuration or its objects.
const CONFIGURES: &[&str] = &["Batch", "Create", "Update", "Delete", "Apply", "Reload", "Rollback"];
/// Those that say whether, and how, the balancer is a member of a fleet.
const JOINS: &[&str] = &["JoinFleet", "LeaveFleet", "RemoveFleet", "RestoreFleet"];
/// Those that an operator of all pools may make.
const OPERATES: &[&str] = &["Capture", "Probe", "CountBackendPackets"];

#[tokio::test]
async fn nobody_gets_by_a_call_beyond_their_role() {
    let remote = Remote::start().await;
    let boss = remote.ours.issue("ignored.example", uri);
    let stranger = remote.ours.client("stranger.example");
    let mut denied = 0;
    let overrides = ["SetOverrides", "RemoveOverrides"];
    let changes = [CONFIGURES, JOINS, OPERATES, &overrides].concat();
    // What an operator of some pools waits for is what Stats counts too.
    let of_all_pools = ["Capture", "Probe"];
    let of_web = [CONFIGURES, JOINS, &of_all_pools].concat();
    let of_team = [&["Apply", "Reload", "Rollback"], JOINS, &of_all_pools].concat();
    for (who, least, operator) in [
        (remote.ours.client("eye.example"), changes.clone(), false),
        // An empty message is no dry run.
        (remote.ours.client("ci.example"), changes, false),
        (remote.ours.client("hand.example"), [CONFIGURES, JOINS].concat(), true),
        (remote.ours.client("web.example"), of_web, true),
        (remote.ours.client("team.example"), of_team, false),
        (stranger, vec![""], false),
    ] {
        let channel = remote.channel(Some(&who)).await.unwrap();
        for name in calls() {
            let verb = name.rsplit('/').next().unwrap();
            let beyond = least.iter().any(|prefix| verb.starts_with(prefix));
            // An empty message names no backend, so what an operator may call finds none. One does not end, and
            // one is to send nothing from here.
            if ["Watch", "ProbeVips"].contains(&verb) && !beyond {
                continue;
            }
            let ended = timeout(LIMIT, call(channel.clone(), &name)).await.expect("an end");
            let code = ended.map_err(|status| status.code()).err();
            let expected =
                beyond && !(operator && ["UpdateBackend", "BatchUpdateBackends"].contains(&verb));
            assert_eq!(code == Some(Code::PermissionDenied), expected, "{name}: {code:?}");
            denied += u64::from(expected);
        }
    }
    // Nothing was changed, and the log has every denial: a line, or the number of those left out.
    let channel = remote.channel(Some(&boss)).await.unwrap();
    let status = SpillwayClient::new(channel).status(v1::StatusRequest::default()).await.unwrap();
    assert_eq!(status.into_inner().generation, 1);
    let audit = remote.audit().await;
    let lines: Vec<_> = audit.iter().filter(|line| line["what"] == "denied").collect();
    let left_out: u64 = lines.iter().map(|line| line["left_out"].as_u64().unwrap()).sum();
    assert!(denied > 60, "{denied}");
    assert!(lines.len() as u64 + left_out <= denied, "{} + {left_out}", lines.len());
    assert!(lines.len() >= 10, "{}", lines.len());
}

#[tokio::test]
async fn of_several_names_the_one_with_most_rights_counts_and_is_noted() {
    let remote = Remote::start().await;
    let both = remote.ours.issue("stranger.example", |params| {
        for name in ["eye.example", "hand.example"] {
            params.subject_alt_names.push(SanType::DnsName(name.try_into().unwrap()));
        }
    });
    let channel = remote.channel(Some(&both)).await.unwrap();
    let refused = SpillwayClient::new(channel).apply(apply(configuration())).await.unwrap_err();
    assert_eq!(
        refused.message(),
        "certificate hand.example: is operator, but /spillway.v1.Spillway/Apply needs admin"
    );
    assert_eq!(remote.audit().await.last().unwrap()["who"]["certificate"], "hand.example");
}

#[tokio::test]
async fn a_certificate_of_many_names_is_read_and_one_beyond_a_message_is_not() {
    let remote = Remote::start().await;
    let many = |number: u32| {
        remote.ours.issue("eye.example", |params| {
            params.subject_alt_names.extend(
                (0..number).map(|n| SanType::DnsName(format!("n{n}.example").try_into().unwrap())),
            );
        })
    };
    let (large, beyond) = (many(1_000), many(6_000));
    assert!(beyond.pem.len() > (64 << 10) / 3 * 4, "{}", beyond.pem.len());
    assert_eq!(remote.status(Some(&large)).await, Ok(1));
    let error = remote.status(Some(&beyond)).await.unwrap_err();
    assert!(!error.contains("PermissionDenied"), "{error}");
    assert_eq!(remote.status(Some(&large)).await, Ok(1));
}

#[tokio::test]
async fn who_is_let_in_and_says_nothing_is_out_after_five_seconds() {
    let remote = Remote::start().await;
    let eye = remote.ours.client("eye.example");
    let silent = |said: &'static [u8]| {
        let (connector, address) = (connector(&remote.ours, Some(&eye)), remote.address);
        async move {
            let name = ServerName::try_from("spillwayd.example").unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let mut stream = connector.connect(name, stream).await.unwrap();
            stream.write_all(said).await.unwrap();
            let (begun, mut rest) = (Instant::now(), Vec::new());
            let _reset = timeout(LIMIT, stream.read_to_end(&mut rest)).await.expect("it is closed");
            begun.elapsed()
        }
    };
    let (nothing, little) = tokio::join!(silent(b""), silent(b"PRI * HTTP/2.0\r\n\r\nSM"));
    for took in [nothing, little] {
        assert!(took >= Duration::from_secs(4), "{took:?}");
    }
    // Who speaks stays, however slowly.
    let channel = remote.channel(Some(&eye)).await.unwrap();
    sleep(Duration::from_secs(6)).await;
    SpillwayClient::new(channel).status(v1::StatusRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_call_of_any_length_fits_a_line() {
    let remote = Remote::start().await;
    let stranger = remote.ours.client("stranger.example");
    let channel = remote.channel(Some(&stranger)).await.unwrap();
    let name = format!("/{}", "x".repeat(4000));
    let refused = timeout(LIMIT, call(channel, &name)).await.expect("an end").unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(remote.audit().await.last().unwrap()["call"], name[..100]);
}
