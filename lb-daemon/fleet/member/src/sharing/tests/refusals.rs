//! What is refused, and with which sentence.

use prost::Message as _;
use spillway_proto::peers::v1::{ExchangeRequest, peers_client::PeersClient};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::{Code, Request, codegen::http::uri::PathAndQuery, transport::Endpoint};

use super::*;

fn request(from: &str) -> ExchangeRequest {
    ExchangeRequest {
        protocol: PROTOCOL,
        program_version: "9.9.9".into(),
        from: from.into(),
        ..ExchangeRequest::default()
    }
}

/// What a balancer without TLS answers to a message.
async fn tell(to: SocketAddr, request: ExchangeRequest) -> (Code, String) {
    let channel = Endpoint::from_shared(format!("http://{to}")).unwrap().connect().await.unwrap();
    let mut client = PeersClient::new(channel);
    match client.exchange(request).await {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}

fn sending(node: &Node, peer: &str) -> Option<String> {
    node.status().peers.get(&name(peer)).and_then(|peer| peer.errors.sending.clone())
}

fn receiving(node: &Node, peer: &str) -> Option<String> {
    node.status().peers.get(&name(peer)).and_then(|peer| peer.errors.receiving.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_make_no_sense_or_are_of_others_are_refused() {
    let fleet = Fleet::plain(2).await;
    let to = fleet.nodes[0].address;
    // One that may be taken, as of an earlier start: it changes nothing.
    assert_eq!(tell(to, request("b")).await, (Code::Ok, String::new()));
    let refused = |code, sentence: &str| (code, sentence.to_owned());
    assert_eq!(
        tell(to, request("z")).await,
        refused(Code::PermissionDenied, "z is not a member of the fleet")
    );
    assert_eq!(
        tell(to, request("a")).await,
        refused(Code::InvalidArgument, "a is this balancer itself: two balancers have one name")
    );
    assert_eq!(
        tell(to, request("Not a name")).await,
        refused(
            Code::InvalidArgument,
            "from: may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit"
        )
    );
    let (code, sentence) = tell(to, ExchangeRequest { protocol: 7, ..request("b") }).await;
    assert_eq!(code, Code::FailedPrecondition);
    assert_eq!(
        sentence,
        format!(
            "it speaks protocol 7 (Spillway 9.9.9), and this balancer speaks protocol 1 (Spillway \
             {PROGRAM_VERSION}): balancers of both cannot share capacities"
        )
    );
    let silent = (0..700_000).map(|n| format!("n{n}")).collect();
    let (code, sentence) = tell(to, ExchangeRequest { silent, ..request("b") }).await;
    assert_eq!(code, Code::OutOfRange);
    assert!(sentence.contains("message length too large"), "{sentence}");
    fleet.demand(&[80.0, 0.0]);
    until("they go on", || fleet.enforced()[0] >= 0.8).await;
    fleet.whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_does_no_harm() {
    let (fleet, _) = Fleet::with_tls(2).await;
    let plain = Fleet::plain(2).await;
    for to in [fleet.nodes[0].address, plain.nodes[0].address] {
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 5_000], &[0; 64], b""] {
            let mut stream = TcpStream::connect(to).await.unwrap();
            let _refused = stream.write_all(garbage).await;
            let _closed = stream.shutdown().await;
            let mut answer = Vec::new();
            let ends = timeout(LIMIT, stream.read_to_end(&mut answer)).await;
            assert!(ends.is_ok(), "the connection stays");
        }
    }
    // A call whose body is no message.
    let channel = Endpoint::from_shared(format!("http://{}", plain.nodes[0].address)).unwrap();
    let mut client = tonic::client::Grpc::new(channel.connect().await.unwrap());
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/spillway.peers.v1.Peers/Exchange");
    // A field of the right number, and of another type.
    let body = spillway_proto::v1::Backend { address: "x".into(), ..Default::default() };
    assert!(!body.encode_to_vec().is_empty());
    let codec = tonic_prost::ProstCodec::<_, ExchangeRequest>::default();
    let answer = client.unary(Request::new(body), path, codec).await;
    assert_eq!(answer.unwrap_err().code(), Code::Internal);
    for fleet in [&fleet, &plain] {
        fleet.demand(&[80.0, 0.0]);
        until("they go on", || fleet.enforced()[0] >= 0.8).await;
        fleet.whole().await;
    }
}

/// A balancer whose certificate is of another authority, one with another name, and one without any.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_certificates_are_refused_on_both_ends() {
    let ours = Authority::new("ours");
    let mut fleet = Fleet::new(4);
    for node in &mut fleet.nodes {
        let directory = node.directory.path();
        match node.name.as_str() {
            "b" => Authority::new("theirs").issue("b").write(directory, &ours),
            "c" => ours.issue("d").write(directory, &ours),
            name => ours.issue(name).write(directory, &ours),
        }
        if node.name.as_str() != "d" {
            node.security = security(directory, &node.conditions);
        }
    }
    fleet.run().await;
    fleet.demand(&[90.0, 0.0, 0.0, 0.0]);
    let a = &fleet.nodes[0];
    until("each is refused", || ["b", "c", "d"].iter().all(|n| sending(a, n).is_some())).await;
    let says = |peer: &str, part: &str| {
        let sentence = sending(a, peer).unwrap();
        assert!(sentence.contains(part), "{peer}: {sentence}");
    };
    says("b", "TLS: invalid peer certificate: UnknownIssuer");
    says("c", "TLS: invalid peer certificate: certificate not valid for name \"c\"");
    says("d", "TLS: ");
    // The certificate of c is good, and speaks for d alone.
    let unheard = "the message is of c, but the certificate is of d";
    until("its message is refused", || receiving(a, "d").as_deref() == Some(unheard)).await;
    let c = &fleet.nodes[2];
    let expected = format!("refused: {unheard}");
    until("it is told why", || sending(c, "a").as_deref() == Some(&*expected)).await;
    assert_eq!(fleet.enforced(), [0.25; 4], "nothing moves");
    assert!(a.status().peers.values().all(|peer| peer.last_heard.is_none()));
    // It gets the right one, and its peers need no restart.
    let directory = c.directory.path();
    ours.issue("c").write(directory, &ours);
    let PeerSecurity::Tls(credentials) = &c.security else { panic!("it has TLS") };
    credentials.refresh().unwrap();
    until("it is heard", || a.status().peers[&name("c")].last_heard.is_some()).await;
    until("it gives what it does not need", || fleet.enforced()[0] > 0.3).await;
    // Files that cannot be used change nothing, and are a condition.
    fs::write(directory.join("peer.key"), "no key").unwrap();
    assert!(credentials.refresh().unwrap_err().starts_with("TLS of peers: "));
    assert_eq!(c.conditions.now()[0].subject, "TLS of peers");
    fleet.fakes.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_says_how_many_packets_it_sent_and_what_its_tables_are() {
    let fleet = Fleet::plain(2).await;
    let (address, own) = (fleet.nodes[0].address, fleet.nodes[1].address);
    let peer = AskedPeer { name: name("a"), address, own, security: PeerSecurity::Plain };
    let ask = async |number: usize| peer.count_packets(vec!["10.0.0.1".to_owned(); number]).await;
    assert_eq!(ask(2).await, Ok(vec![7, 7]));
    assert_eq!(ask(10_000).await, Ok(vec![7; 10_000]));
    assert_eq!(ask(10_001).await, Err("more than 10000 backends".into()));
    let tables = TableDigests::from([(name("dns"), 1), (name("web"), u64::MAX)]);
    assert_eq!(peer.digest_tables().await, Ok(tables));
}

/// Before anybody hears of a balancer that wants to join.
#[test]
fn a_certificate_that_others_would_refuse_is_no_one_to_join_with() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let directory = tempfile::tempdir().unwrap();
    let files = certificates::files(directory.path());
    let tls = lb_fleet::settings::EtcdTls {
        authorities: files.authorities.clone(),
        certificate: files.own.certificate.clone(),
        key: files.own.key.clone(),
    };
    let settings = lb_fleet::FleetSettings {
        fleet: name("edge"),
        endpoints: vec!["https://192.0.2.1:2379".into()],
        tls: Some(tls),
        name: name("a"),
        address: "127.0.0.1:0".parse().unwrap(),
        region: None,
    };
    let check = || {
        let checked = crate::preflight::check_settings(&settings);
        checked.map_err(|error| error.to_string())
    };
    ours.issue("a").write(directory.path(), &ours);
    assert_eq!(check(), Ok(()));
    theirs.issue("a").write(directory.path(), &ours);
    let (certificate, authorities) = (files.own.certificate.display(), files.authorities.display());
    let unknown = format!(
        "{certificate}: cannot be used: invalid peer certificate: UnknownIssuer, by the authorities in {authorities}"
    );
    assert_eq!(check(), Err(unknown));
    ours.issue("b").write(directory.path(), &ours);
    let other = format!("{certificate}: the certificate is of b, but this balancer is a");
    assert_eq!(check(), Err(other));
}
