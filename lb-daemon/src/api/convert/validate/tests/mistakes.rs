//! Mistakes, one at a time.

use prost_types::Duration;
use spillway_proto::v1;

pub(super) fn http(message: &mut v1::Configuration) -> &mut v1::HttpProbe {
    match message.health_checks[0].probe.as_mut() {
        Some(v1::health_check::Probe::Http(http)) => http,
        _ => panic!("the first check is http"),
    }
}

/// Makes the first check one of gRPC.
fn grpc(message: &mut v1::Configuration) -> &mut v1::GrpcProbe {
    let probe = &mut message.health_checks[0].probe;
    match probe.insert(v1::health_check::Probe::Grpc(v1::GrpcProbe::default())) {
        v1::health_check::Probe::Grpc(grpc) => grpc,
        _ => unreachable!("it was just made one"),
    }
}

/// Makes the first check one of UDP.
fn udp(message: &mut v1::Configuration) -> &mut v1::UdpProbe {
    let probe = &mut message.health_checks[0].probe;
    match probe.insert(v1::health_check::Probe::Udp(v1::UdpProbe::default())) {
        v1::health_check::Probe::Udp(udp) => udp,
        _ => unreachable!("it was just made one"),
    }
}

/// Makes the first check one that asks an agent.
fn agent(message: &mut v1::Configuration) -> &mut v1::AgentProbe {
    let probe = &mut message.health_checks[0].probe;
    match probe.insert(v1::health_check::Probe::Agent(v1::AgentProbe::default())) {
        v1::health_check::Probe::Agent(agent) => agent,
        _ => unreachable!("it was just made one"),
    }
}

/// Gives the first check TLS.
fn tls(message: &mut v1::Configuration) -> &mut v1::TlsProbe {
    message.health_checks[0].tls.get_or_insert_default()
}

/// What is done wrong.
pub(super) type Mistake = fn(&mut v1::Configuration);

/// What is done to the correct message, the answer, and the field it names.
pub(super) const MISTAKES: &[(Mistake, &str, &str)] = &[
    (|m| m.regions[1].name.clear(), r#"regions[1] "": name: must be set"#, "regions[1].name"),
    (
        |m| m.regions[1].name = "US".into(),
        r#"regions[1] "US": name: may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit"#,
        "regions[1].name",
    ),
    (
        |m| m.regions[1].name = "x".repeat(1000),
        r#"regions[1] "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"…: name: has 1000 bytes; at most 63 are allowed"#,
        "regions[1].name",
    ),
    (
        |m| m.regions[1].name = "eu".into(),
        r#"regions[1] "eu": name: is already the name of regions[0]"#,
        "regions[1].name",
    ),
    (
        |m| m.health_checks[1].name = "http".into(),
        r#"health_checks[1] "http": name: is already the name of health_checks[0]"#,
        "health_checks[1].name",
    ),
    (
        |m| m.pools[1].name = "web".into(),
        r#"pools[1] "web": name: is already the name of pools[0]"#,
        "pools[1].name",
    ),
    (
        |m| m.services[1].name = "web".into(),
        r#"services[1] "web": name: is already the name of services[0]"#,
        "services[1].name",
    ),
    (
        |m| m.regions[0].overflow_to = vec!["asia".into()],
        r#"regions[0] "eu": overflow_to: "asia" is not among the regions"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[0].overflow_to = vec!["eu".into()],
        r#"regions[0] "eu": overflow_to: names the region itself"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[0].overflow_to = vec!["us".into(), "us".into()],
        r#"regions[0] "eu": overflow_to: "us" is named twice"#,
        "regions[0].overflow_to",
    ),
    (
        |m| {
            for n in 0..8 {
                let name = format!("r{n}");
                m.regions[0].overflow_to.push(name.clone());
                m.regions.push(v1::Region { name, overflow_to: vec![] });
            }
        },
        r#"regions[0] "eu": overflow_to: names 9 regions; at most 7 are allowed"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[1].overflow_to = vec!["eu".into()],
        r#"regions[0] "eu": overflow_to: leads in a circle: eu -> us -> eu"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.health_checks[0].probe = None,
        r#"health_checks[0] "http": probe: must be set; give tcp, http, grpc, udp or agent"#,
        "health_checks[0].probe",
    ),
    (
        |m| m.health_checks[0].port = 0,
        r#"health_checks[0] "http": port: must be set; give 1 to 65535"#,
        "health_checks[0].port",
    ),
    (
        |m| m.health_checks[0].interval = Some(Duration { seconds: 0, nanos: 9_999_999 }),
        r#"health_checks[0] "http": interval: 9.999999ms is not within 10ms to 1h"#,
        "health_checks[0].interval",
    ),
    (
        |m| m.health_checks[0].interval = Some(Duration { seconds: 3600, nanos: 1 }),
        r#"health_checks[0] "http": interval: 3600.000000001s is not within 10ms to 1h"#,
        "health_checks[0].interval",
    ),
    (
        |m| m.health_checks[0].interval = Some(Duration { seconds: -1, nanos: 0 }),
        r#"health_checks[0] "http": interval: is negative or no duration at all"#,
        "health_checks[0].interval",
    ),
    (
        |m| m.health_checks[0].timeout = Some(Duration { seconds: 1, nanos: 1 }),
        r#"health_checks[0] "http": timeout: 1.000000001s is not within 1ms to the interval of 1s"#,
        "health_checks[0].timeout",
    ),
    (
        |m| m.health_checks[0].timeout = Some(Duration { seconds: 0, nanos: 0 }),
        r#"health_checks[0] "http": timeout: 0ns is not within 1ms to the interval of 1s"#,
        "health_checks[0].timeout",
    ),
    (
        |m| m.health_checks[0].rise = 101,
        r#"health_checks[0] "http": rise: 101 is not within 1 to 100"#,
        "health_checks[0].rise",
    ),
    (
        |m| m.health_checks[0].fall = 101,
        r#"health_checks[0] "http": fall: 101 is not within 1 to 100"#,
        "health_checks[0].fall",
    ),
    (
        |m| m.health_checks[0].jitter_percent = Some(51),
        r#"health_checks[0] "http": jitter_percent: 51 is not within 0 to 50"#,
        "health_checks[0].jitter_percent",
    ),
    (
        |m| http(m).path = "healthz".into(),
        r#"health_checks[0] "http": http.path: "healthz" must begin with '/'"#,
        "health_checks[0].http.path",
    ),
    (
        |m| http(m).path = "/a b".into(),
        r#"health_checks[0] "http": http.path: holds ' '; only printable ASCII without blanks is allowed"#,
        "health_checks[0].http.path",
    ),
    (
        |m| http(m).path = format!("/{}", "x".repeat(2048)),
        r#"health_checks[0] "http": http.path: has 2049 bytes; at most 2048 are allowed"#,
        "health_checks[0].http.path",
    ),
    (
        |m| http(m).host = "a\r\nx: y".into(),
        r#"health_checks[0] "http": http.host: holds '\r'; only printable ASCII without blanks is allowed"#,
        "health_checks[0].http.host",
    ),
    (
        |m| http(m).host = "x".repeat(256),
        r#"health_checks[0] "http": http.host: has 256 bytes; at most 255 are allowed"#,
        "health_checks[0].http.host",
    ),
    (
        |m| http(m).status_min = 99,
        r#"health_checks[0] "http": http.status_min: 99 is not within 100 to 599"#,
        "health_checks[0].http.status_min",
    ),
    (
        |m| http(m).status_max = 600,
        r#"health_checks[0] "http": http.status_max: 600 is not within 100 to 599"#,
        "health_checks[0].http.status_max",
    ),
    (
        |m| http(m).status_max = 199,
        r#"health_checks[0] "http": http.status_max: 199 is below status_min, 200"#,
        "health_checks[0].http.status_max",
    ),
    (
        |m| m.pools[0].health_checks = vec!["grpc".into()],
        r#"pools[0] "web": health_checks: "grpc" is not among the health checks"#,
        "pools[0].health_checks",
    ),
    (
        |m| m.health_checks[0].fast_interval = Some(Duration { seconds: 0, nanos: 9_999_999 }),
        r#"health_checks[0] "http": fast_interval: 9.999999ms is not within 10ms to the interval of 1s"#,
        "health_checks[0].fast_interval",
    ),
    (
        |m| m.health_checks[0].fast_interval = Some(Duration { seconds: 2, nanos: 0 }),
        r#"health_checks[0] "http": fast_interval: 2s is not within 10ms to the interval of 1s"#,
        "health_checks[0].fast_interval",
    ),
    (
        |m| http(m).method = "get".into(),
        r#"health_checks[0] "http": http.method: "get" may hold only A-Z and '-'"#,
        "health_checks[0].http.method",
    ),
    (
        |m| http(m).method = "X".repeat(17),
        r#"health_checks[0] "http": http.method: has 17 bytes; at most 16 are allowed"#,
        "health_checks[0].http.method",
    ),
    (
        |m| http(m).method = "CONNECT".into(),
        r#"health_checks[0] "http": http.method: CONNECT asks for a tunnel; give GET or HEAD"#,
        "health_checks[0].http.method",
    ),
    (
        |m| http(m).body_contains = "x".repeat(1025),
        r#"health_checks[0] "http": http.body_contains: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].http.body_contains",
    ),
    (
        |m| http(m).agent_header = "x-load: y".into(),
        r#"health_checks[0] "http": http.agent_header: "x-load: y" is no name of a header"#,
        "health_checks[0].http.agent_header",
    ),
    (
        |m| http(m).agent_header = "x".repeat(65),
        r#"health_checks[0] "http": http.agent_header: has 65 bytes; at most 64 are allowed"#,
        "health_checks[0].http.agent_header",
    ),
    (
        |m| agent(m).send = vec![0; 1025],
        r#"health_checks[0] "http": agent.send: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].agent.send",
    ),
    (
        |m| (http(m).method, http(m).body_contains) = ("HEAD".into(), "x".into()),
        r#"health_checks[0] "http": http.body_contains: an answer to HEAD has no body"#,
        "health_checks[0].http.body_contains",
    ),
    (
        |m| grpc(m).service = "a b".into(),
        r#"health_checks[0] "http": grpc.service: holds ' '; only printable ASCII without blanks is allowed"#,
        "health_checks[0].grpc.service",
    ),
    (
        |m| grpc(m).service = "x".repeat(256),
        r#"health_checks[0] "http": grpc.service: has 256 bytes; at most 255 are allowed"#,
        "health_checks[0].grpc.service",
    ),
    (
        |m| grpc(m).authority = "a/b".into(),
        r#"health_checks[0] "http": grpc.authority: is no host, with or without a port"#,
        "health_checks[0].grpc.authority",
    ),
    (
        |m| udp(m).request = vec![0; 1233],
        r#"health_checks[0] "http": udp.request: has 1233 bytes; at most 1232 are allowed"#,
        "health_checks[0].udp.request",
    ),
    (
        |m| udp(m).answer_prefix = vec![0; 1025],
        r#"health_checks[0] "http": udp.answer_prefix: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].udp.answer_prefix",
    ),
    (
        |m| udp(m).answer_contains = vec![0; 1025],
        r#"health_checks[0] "http": udp.answer_contains: has 1025 bytes; at most 1024 are allowed"#,
        "health_checks[0].udp.answer_contains",
    ),
    (
        |m| (*udp(m), *tls(m)) = Default::default(),
        r#"health_checks[0] "http": tls: is not for udp"#,
        "health_checks[0].tls",
    ),
    (
        |m| tls(m).server_name = "a_b c".into(),
        r#"health_checks[0] "http": tls.server_name: "a_b c" is no DNS name"#,
        "health_checks[0].tls.server_name",
    ),
    (
        |m| tls(m).server_name = "10.0.0.1".into(),
        r#"health_checks[0] "http": tls.server_name: "10.0.0.1" is no DNS name"#,
        "health_checks[0].tls.server_name",
    ),
    (
        |m| (tls(m).ca_file, tls(m).verify) = ("/a".into(), Some(false)),
        r#"health_checks[0] "http": tls.ca_file: is set, but verify is false; give one of them"#,
        "health_checks[0].tls.ca_file",
    ),
    (
        |m| tls(m).ca_file = "ca.pem".into(),
        r#"health_checks[0] "http": tls.ca_file: "ca.pem" must begin with '/'"#,
        "health_checks[0].tls.ca_file",
    ),
    (
        |m| tls(m).ca_file = "/a\n".into(),
        r#"health_checks[0] "http": tls.ca_file: holds '\n'"#,
        "health_checks[0].tls.ca_file",
    ),
    (
        |m| tls(m).ca_file = format!("/{}", "x".repeat(4095)),
        r#"health_checks[0] "http": tls.ca_file: has 4096 bytes; at most 4095 are allowed"#,
        "health_checks[0].tls.ca_file",
    ),
    (
        |m| m.pools[0].health_checks.push("http".into()),
        r#"pools[0] "web": health_checks: "http" is named twice"#,
        "pools[0].health_checks",
    ),
    (
        |m| m.pools[0].slots = 5,
        r#"pools[0] "web": slots: 5 is not within 7 to 16777213"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = 16_777_214,
        r#"pools[0] "web": slots: 16777214 is not within 7 to 16777213"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = 65_536,
        r#"pools[0] "web": slots: 65536 is not a prime: 2 divides it"#,
        "pools[0].slots",
    ),
    (
        |m| m.pools[0].slots = 251 * 257,
        r#"pools[0] "web": slots: 64507 is not a prime: 251 divides it"#,
        "pools[0].slots",
    ),
    (
        |m| {
            m.pools[0].slots = 7;
            for n in 0..6 {
                let (address, region) = (format!("10.0.1.{n}"), "eu".into());
                m.pools[0].backends.push(v1::Backend { address, region, ..Default::default() });
            }
        },
        r#"pools[0] "web": slots: 7 must be more than the 7 backends in region "eu""#,
        "pools[0].slots",
    ),
    (
        |m| {
            for n in 0..7 {
                let (address, region) = (format!("10.0.1.{n}"), format!("r{n}"));
                m.regions.push(v1::Region { name: region.clone(), overflow_to: vec![] });
                m.pools[0].backends.push(v1::Backend { address, region, ..Default::default() });
            }
        },
        r#"pools[0] "web": backends: stand in 9 regions; at most 8 are allowed"#,
        "pools[0].backends",
    ),
    (
        |m| m.pools[0].backends.iter_mut().for_each(|backend| backend.weight = Some(0)),
        r#"pools[0] "web": backends: all weights are 0, so nobody would be served; give one of them a weight"#,
        "pools[0].backends",
    ),
    (
        |m| m.pools[0].backends[1].address = "10.0.0.1".into(),
        r#"pools[0] "web": backends[1] "10.0.0.1": address: 10.0.0.1 is already the address of backends[0]"#,
        "pools[0].backends[1].address",
    ),
    (
        |m| m.pools[0].backends[1].region.clear(),
        r#"pools[0] "web": backends[1] "10.0.0.2": region: must be set"#,
        "pools[0].backends[1].region",
    ),
    (
        |m| m.pools[0].backends[1].region = "asia".into(),
        r#"pools[0] "web": backends[1] "10.0.0.2": region: "asia" is not among the regions"#,
        "pools[0].backends[1].region",
    ),
    (
        |m| m.pools[0].backends[1].weight = Some(1_000_001),
        r#"pools[0] "web": backends[1] "10.0.0.2": weight: 1000001 is not within 0 to 1000000"#,
        "pools[0].backends[1].weight",
    ),
    (
        |m| m.pools[0].backends[1].wanted = 4,
        r#"pools[0] "web": backends[1] "10.0.0.2": wanted: 4 is no state that this version knows"#,
        "pools[0].backends[1].wanted",
    ),
    (
        |m| m.pools[0].backends[1].mtu = 1279,
        r#"pools[0] "web": backends[1] "10.0.0.2": mtu: 1279 is not within 1280 to 65535"#,
        "pools[0].backends[1].mtu",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(-5.0),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: -5 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(0.0),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 0 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(0.05),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 0.05 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(10_000_001.0),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 10000001 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(f64::NAN),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: NaN is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].capacity_per_second = Some(f64::INFINITY),
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: inf is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(0.05),
        r#"pools[0] "web": groups[0] "eu": scaler: 0.05 is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(1.5),
        r#"pools[0] "web": groups[0] "eu": scaler: 1.5 is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(-1.0),
        r#"pools[0] "web": groups[0] "eu": scaler: -1 is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[0].scaler = Some(f64::NAN),
        r#"pools[0] "web": groups[0] "eu": scaler: NaN is neither 0 nor within 0.1 to 1"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| {
            m.pools[0].groups[0].capacity_per_second = None;
        },
        r#"pools[0] "web": groups[0] "eu": scaler: 0.5 of no limit is no limit; set capacity_per_second, or the max_connection_rate_per_second of every backend there"#,
        "pools[0].groups[0].scaler",
    ),
    (
        |m| m.pools[0].groups[1].region = "asia".into(),
        r#"pools[0] "web": groups[1] "asia": region: "asia" is not among the regions"#,
        "pools[0].groups[1].region",
    ),
    (
        |m| m.pools[0].groups[1].region.clear(),
        r#"pools[0] "web": groups[1] "": region: must be set"#,
        "pools[0].groups[1].region",
    ),
    (
        |m| m.pools[0].groups[1].region = "eu".into(),
        r#"pools[0] "web": groups[1] "eu": region: "eu" is already the region of groups[0]"#,
        "pools[0].groups[1].region",
    ),
    (
        |m| drop(m.pools[0].backends.pop()),
        r#"pools[0] "web": groups[1] "us": region: the pool has no backend in "us""#,
        "pools[0].groups[1].region",
    ),
    (
        |m| m.pools[0].isolation = 4,
        r#"pools[0] "web": isolation: 4 is no isolation that this version knows"#,
        "pools[0].isolation",
    ),
    (
        |m| m.pools[0].preferred_regions = vec!["asia".into()],
        r#"pools[0] "web": preferred_regions: "asia" is not among the regions"#,
        "pools[0].preferred_regions",
    ),
    (
        |m| m.pools[0].preferred_regions = vec!["us".into(), "us".into()],
        r#"pools[0] "web": preferred_regions: "us" is named twice"#,
        "pools[0].preferred_regions",
    ),
    (
        |m| m.pools[0].panic_threshold_percent = 101,
        r#"pools[0] "web": panic_threshold_percent: 101 is not within 0 to 100"#,
        "pools[0].panic_threshold_percent",
    ),
    (
        |m| m.pools[0].settle_time = Some(Duration { seconds: 0, nanos: 999_999_999 }),
        r#"pools[0] "web": settle_time: 999.999999ms is not within 1s to 24h"#,
        "pools[0].settle_time",
    ),
    (
        |m| m.pools[0].settle_time = Some(Duration { seconds: 86_401, nanos: 0 }),
        r#"pools[0] "web": settle_time: 86401s is not within 1s to 24h"#,
        "pools[0].settle_time",
    ),
    (
        |m| m.pools[0].slow_start = Some(Duration { seconds: 0, nanos: 1 }),
        r#"pools[0] "web": slow_start: 1ns is not within 1s to 1h"#,
        "pools[0].slow_start",
    ),
    (
        |m| m.pools[0].slow_start = Some(Duration { seconds: 3600, nanos: 1 }),
        r#"pools[0] "web": slow_start: 3600.000000001s is not within 1s to 1h"#,
        "pools[0].slow_start",
    ),
    (
        |m| m.pools[0].backends[1].max_connection_rate_per_second = Some(-0.5),
        r#"pools[0] "web": backends[1] "10.0.0.2": max_connection_rate_per_second: -0.5 is not within 0.1 to 10000000 new connections a second"#,
        "pools[0].backends[1].max_connection_rate_per_second",
    ),
    (
        |m| m.pools[1].backends[0].region = "us".into(),
        r#"pools[1] "dns": backends[0] "10.0.0.1": region: is "us" here but "eu" in pool "web""#,
        "pools[1].backends[0].region",
    ),
    (
        |m| m.pools[1].backends[0].mtu = 1400,
        r#"pools[1] "dns": backends[0] "10.0.0.1": mtu: is 1400 here but unset in pool "web""#,
        "pools[1].backends[0].mtu",
    ),
    (
        |m| m.pools[1].backends[0].address = "192.0.2.1".into(),
        r#"pools[1] "dns": backends[0] "192.0.2.1": address: 192.0.2.1 is the address of service "dns""#,
        "pools[1].backends[0].address",
    ),
    (
        |m| m.services[1].address.clear(),
        r#"services[1] "dns": address: must be set"#,
        "services[1].address",
    ),
    (
        |m| m.services[1].address = "192.0.2.1:53".into(),
        r#"services[1] "dns": address: "192.0.2.1:53" is not an IPv4 or IPv6 address"#,
        "services[1].address",
    ),
    (
        |m| m.services[1].port = 70_000,
        r#"services[1] "dns": port: 70000 is not a port; give 1 to 65535"#,
        "services[1].port",
    ),
    (
        |m| m.services[1].protocol = 0,
        r#"services[1] "dns": protocol: must be set; give tcp or udp"#,
        "services[1].protocol",
    ),
    (
        |m| m.services[1].protocol = -1,
        r#"services[1] "dns": protocol: -1 is no protocol that this version knows"#,
        "services[1].protocol",
    ),
    (|m| m.services[1].pool.clear(), r#"services[1] "dns": pool: must be set"#, "services[1].pool"),
    (
        |m| m.services[1].pool = "mail".into(),
        r#"services[1] "dns": pool: "mail" is not among the pools"#,
        "services[1].pool",
    ),
    (
        |m| m.services[1].affinity = 3,
        r#"services[1] "dns": affinity: 3 is no affinity that this version knows"#,
        "services[1].affinity",
    ),
    (
        |m| {
            m.services[1].protocol = 1;
            m.services[1].udp = 0;
            m.services[1].port = 80;
        },
        r#"services[1] "dns": address: 192.0.2.1, port 80, tcp is already service "web""#,
        "services[1].address",
    ),
    (
        |m| m.services[1].when_full = 3,
        r#"services[1] "dns": when_full: 3 is no answer that this version knows"#,
        "services[1].when_full",
    ),
    (
        |m| {
            m.services[1].when_full = 2;
            m.services[1].udp = 1;
        },
        r#"services[1] "dns": when_full: reject is not for stateless UDP, which knows no new connections"#,
        "services[1].when_full",
    ),
    (
        |m| m.services[1].udp = 3,
        r#"services[1] "dns": udp: 3 is no mode that this version knows"#,
        "services[1].udp",
    ),
    (
        |m| m.services[0].udp = 1,
        r#"services[0] "web": udp: is for UDP; this service is TCP"#,
        "services[0].udp",
    ),
    (
        |m| m.services[0].idle_timeout = Some(Duration { seconds: 60, nanos: 0 }),
        r#"services[0] "web": idle_timeout: is for tracked UDP; this service is not"#,
        "services[0].idle_timeout",
    ),
    (
        |m| {
            m.services[1].udp = 0;
            m.services[1].idle_timeout = Some(Duration { seconds: 60, nanos: 0 });
        },
        r#"services[1] "dns": idle_timeout: is for tracked UDP; this service is not"#,
        "services[1].idle_timeout",
    ),
    (
        |m| m.services[1].idle_timeout = Some(Duration { seconds: 0, nanos: 999_999_999 }),
        r#"services[1] "dns": idle_timeout: 999.999999ms is not within 1s to 18h"#,
        "services[1].idle_timeout",
    ),
    (
        |m| m.services[1].idle_timeout = Some(Duration { seconds: 64_801, nanos: 0 }),
        r#"services[1] "dns": idle_timeout: 64801s is not within 1s to 18h"#,
        "services[1].idle_timeout",
    ),
    (
        |m| {
            m.balancers = 2;
            m.pools[0].groups[0].capacity_per_second = Some(0.3);
            m.pools[0].groups[0].scaler = Some(0.1);
        },
        r#"pools[0] "web": groups[0] "eu": capacity_per_second: 0.3/s times a scaler of 0.1 among 2 balancers is less than one connection a minute for each"#,
        "pools[0].groups[0].capacity_per_second",
    ),
    (
        |m| {
            m.balancers = 10;
            m.pools[0].backends[1].max_connection_rate_per_second = Some(0.1);
        },
        r#"pools[0] "web": backends[1] "10.0.0.2": max_connection_rate_per_second: 0.1/s times a scaler of 1 among 10 balancers is less than one connection a minute for each"#,
        "pools[0].backends[1].max_connection_rate_per_second",
    ),
    (
        |m| {
            m.balancers = 2;
            m.pools[0].groups[0].capacity_per_second = None;
            m.pools[0].groups[0].scaler = Some(0.1);
            m.pools[0].backends[0].max_connection_rate_per_second = Some(0.3);
        },
        r#"pools[0] "web": backends[0] "10.0.0.1": max_connection_rate_per_second: 0.3/s times a scaler of 0.1 among 2 balancers is less than one connection a minute for each"#,
        "pools[0].backends[0].max_connection_rate_per_second",
    ),
    (|m| m.balancers = 1001, "balancers: 1001 is not within 1 to 1000", "balancers"),
    (
        |m| m.hash_key = "0123".into(),
        "hash_key: give 32 hexadecimal digits; these are 4 bytes",
        "hash_key",
    ),
    (
        |m| m.hash_key = "+123456789abcdef+123456789abcdef".into(),
        "hash_key: give 32 hexadecimal digits; these are 32 bytes",
        "hash_key",
    ),
];
