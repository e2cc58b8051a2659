//! Writes what fuzzing begins with to a folder: frames and configurations as they should be.
//! `cargo run -p lb-fuzz --example seeds -- tests/fuzz/corpus`

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use lb_config::document::Document;
use lb_fuzz::maps;
use lb_tests::packets::frames::{ETHERNET, Flow, Packet, Tunnel, extended, tagged};
use prost::Message as _;
use spillway_proto::v1;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).context("seeds: which folder?")?;
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes).with_context(|| folder.display().to_string())
    };
    let plain = [0; maps::LENGTH];
    // Two regions and IPv6 tunnels, small ones, VLANs.
    let other = [1, 1, 0, 0, 0, 3, 1, 4, 9, 3, 0, 0, 7, 0, 0, 0];
    let mut gue = plain;
    gue[13] = 1;
    for (name, frame) in frames() {
        write("parse", &name, &frame)?;
        for (kind, maps) in [("plain", plain), ("other", other), ("gue", gue)] {
            write("encapsulation", &format!("{name}, {kind}"), &[&maps, &frame[..]].concat())?;
        }
        write("decision", &name, &[&other, &frame[..]].concat())?;
        write("receiver", &format!("{name}, inner"), &[&[1], &frame[ETHERNET..]].concat())?;
        write("receiver", &format!("{name}, tunnelled"), &[&[0], &tunnelled(&frame)[..]].concat())?;
    }
    for service in [0, 1, 2, 3, 8, 11, 12, 13] {
        let from = [192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x9c, 0x40];
        let error = [&plain[..], &[service, 0, 0, 60, 0, 0], &from].concat();
        write("icmp", &format!("service {service}"), &error)?;
    }
    for (number, text) in configurations().into_iter().enumerate() {
        write("document", &number.to_string(), text.as_bytes())?;
        let message = Document::parse(text)?.into();
        let configuration = lb_config::validate_first(&message)?;
        write("configuration", &number.to_string(), &lb_config::encode(&configuration))?;
    }
    for (name, calls) in calls()? {
        write("calls", name, &lb_fuzz::calls::input(calls))?;
    }
    Ok(())
}

fn frames() -> Vec<(String, Vec<u8>)> {
    let v4 = Flow::new("192.0.2.7:40000", "198.51.100.1:80");
    let v4_udp = Flow::new("192.0.2.7:40000", "198.51.100.1:53");
    let v6 = Flow::new("[2001:db8::7]:40000", "[2001:db8:80::1]:80");
    let v6_udp = Flow::new("[2001:db8::7]:40000", "[2001:db8:80::1]:53");
    let any = Flow::new("[2001:db8::7]:40000", "[2001:db8:80::4]:5555");
    let mut fragment = Packet::new(v4).udp();
    fragment[20] = 0x20;
    let large = vec![7; 1_460];
    let hop = (0, "00 00 0502 0000 0100");
    let routing = (43, "00 02 04 00 00000000 fd000000000000000000000000000009");
    let quoted = |flow: Flow| Packet::new(flow.answered()).tcp("A")[ETHERNET..].to_vec();
    let named = [
        ("SYN, IPv4", Packet::new(v4).tcp("S")),
        ("ACK, IPv4", Packet::new(v4).tcp("A")),
        ("ACK, IPv4 with options", Packet::new(v4).options(12).tcp("A")),
        ("UDP, IPv4", Packet::new(v4_udp).udp()),
        ("SYN, IPv6", Packet::new(v6).tcp("S")),
        ("UDP, IPv6", Packet::new(v6_udp).udp()),
        ("UDP, IPv6, any port", Packet::new(any).udp()),
        ("extension headers", extended(&Packet::new(v6).tcp("A"), &[hop, routing])),
        ("fragment, IPv6", extended(&Packet::new(any).udp(), &[(44, "00 00 0001 0000002a")])),
        ("fragment, IPv4", fragment),
        ("last hop", Packet::new(v4).hop_limit(1).tcp("A")),
        ("too large, IPv4", Packet::new(v4).payload(&large).tcp("A")),
        ("too large, IPv6", Packet::new(v6).payload(&large[..1_440]).tcp("A")),
        ("tagged", tagged(&Packet::new(v4).tcp("A"), &[[0x8100, 7]])),
        ("tagged twice", tagged(&Packet::new(v6).udp(), &[[0x88a8, 7], [0x8100, 8]])),
        ("echo, IPv4", Packet::new(v4).error(8, 0, [1, 2, 3, 4], b"ping")),
        ("echo, IPv6", Packet::new(v6).error(128, 0, [1, 2, 3, 4], b"ping")),
        ("error, IPv4", Packet::new(v4).error(3, 4, [0, 0, 5, 0], &quoted(v4))),
        ("error, IPv6", Packet::new(v6).error(2, 0, [0, 0, 5, 0], &quoted(v6))),
        ("SCTP", Packet::new(v4).other(132)),
    ];
    named.into_iter().map(|(name, frame)| (name.to_owned(), frame)).collect()
}

fn tunnelled(frame: &[u8]) -> Vec<u8> {
    let (inner, _) = lb_fuzz::ip::untagged(frame);
    let macs = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let (source, destination) = ("fd00::1".parse().unwrap_or([0; 16].into()), [9_u8; 16].into());
    Tunnel { macs, source, destination, flow_label: 9 }.around(&inner)
}

/// A method and its message.
type Call = (&'static str, Vec<u8>);

/// What people ask, one after the other.
fn calls() -> Result<[(&'static str, Vec<Call>); 2]> {
    let mut configuration = v1::Configuration::from(Document::parse(SHORT)?);
    // A small table, so that much can be asked in a second.
    configuration.pools[0].slots = Some(31);
    let configuration = Some(configuration);
    let schema_revision = spillway_proto::SCHEMA_REVISION.into();
    let apply = v1::ApplyRequest { configuration, schema_revision, ..v1::ApplyRequest::default() };
    let apply = ("/spillway.v1.Spillway/Apply", apply.encode_to_vec());
    let endpoint = |address: &str| format!("[{address}]:53");
    let backend = v1::Backend {
        pool: "dns".into(),
        address: "fd00::12".into(),
        region: "eu".into(),
        ..v1::Backend::default()
    };
    let flow = v1::ExplainRequest {
        client: endpoint("2001:db8::7"),
        vip: endpoint("2001:db8::53"),
        protocol: v1::Protocol::Udp.into(),
        ..v1::ExplainRequest::default()
    };
    let mask = prost_types::FieldMask { paths: vec!["weight".into()] };
    let update = v1::UpdateBackendRequest {
        backend: Some(v1::Backend { weight: Some(2), ..backend.clone() }),
        update_mask: Some(mask),
        ..v1::UpdateBackendRequest::default()
    };
    let create =
        v1::CreateBackendRequest { backend: Some(backend), ..v1::CreateBackendRequest::default() };
    let delete =
        v1::DeleteServiceRequest { name: "dns".into(), ..v1::DeleteServiceRequest::default() };
    let list = v1::ListBackendsRequest { pool: "dns".into(), page_size: 1, ..Default::default() };
    let capture =
        v1::CaptureRequest { client: "2001:db8::/32".into(), ..v1::CaptureRequest::default() };
    let history =
        v1::BackendHistoryRequest { pool: "dns".into(), ..v1::BackendHistoryRequest::default() };
    Ok([
        (
            "objects",
            vec![
                apply.clone(),
                ("/spillway.v1.Objects/CreateBackend", create.encode_to_vec()),
                ("/spillway.v1.Objects/UpdateBackend", update.encode_to_vec()),
                ("/spillway.v1.Objects/ListBackends", list.encode_to_vec()),
                ("/spillway.v1.Objects/DeleteService", delete.encode_to_vec()),
            ],
        ),
        (
            "questions",
            vec![
                apply,
                ("/spillway.v1.Spillway/Status", Vec::new()),
                ("/spillway.v1.Spillway/Regions", Vec::new()),
                ("/spillway.v1.Spillway/Watch", Vec::new()),
                ("/spillway.v1.Spillway/Stats", Vec::new()),
                ("/spillway.v1.Spillway/Explain", flow.encode_to_vec()),
                ("/spillway.v1.Spillway/BackendHistory", history.encode_to_vec()),
                ("/spillway.v1.Spillway/Capture", capture.encode_to_vec()),
            ],
        ),
    ])
}

/// Nothing, the document's example, and a short one.
fn configurations() -> [&'static str; 3] {
    let example = include_str!("../../../docs/configuration.md").split("```").nth(1);
    let example = example.and_then(|block| block.strip_prefix("toml")).unwrap_or_default();
    ["# nothing\n", example, SHORT]
}

const SHORT: &str = r#"
[[region]]
name = "eu"
[[pool]]
name = "dns"
[[pool.backend]]
address = "fd00::11"
region = "eu"
weight = 3
[[service]]
name = "dns"
address = "2001:db8::53"
ports = [53, "8000-8010"]
protocol = "udp"
pool = "dns"
"#;
