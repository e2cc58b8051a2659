use clap::{Args as _, Command, FromArgMatches as _};
use prost_types::Duration;
use spillway_proto::{v1, v1::health_check::Kind as CheckKind};

use super::kind::{Fields as _, Kind, Patch};

/// The patch that flags make.
fn parse_flags<K: Kind>(flags: &[&str], current: Option<&K>) -> Result<Patch<K>, String> {
    let command = K::Fields::augment_args(Command::new("fields"));
    let matches = command
        .try_get_matches_from([&["fields"], flags].concat())
        .map_err(|error| error.to_string())?;
    let fields = K::Fields::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let mut patch = Patch::default();
    fields.write(&mut patch, current).map_err(|failure| failure.to_string())?;
    Ok(patch)
}

#[test]
fn no_flag_names_no_field() {
    assert!(parse_flags::<v1::Region>(&[], None).unwrap().paths.is_empty());
    assert!(parse_flags::<v1::HealthCheck>(&[], None).unwrap().paths.is_empty());
    assert!(parse_flags::<v1::Pool>(&[], None).unwrap().paths.is_empty());
    assert!(parse_flags::<v1::Backend>(&[], None).unwrap().paths.is_empty());
    assert!(parse_flags::<v1::Service>(&[], None).unwrap().paths.is_empty());
}

#[test]
fn flags_of_a_service_are_its_fields() {
    let flags = "--address 192.0.2.1 --port 53 --protocol udp --pool dns --affinity client \
                 --when-full reject --udp tracked --idle-timeout 1500ms --fragments served";
    let patch =
        parse_flags::<v1::Service>(&flags.split_whitespace().collect::<Vec<_>>(), None).unwrap();
    let expected = v1::Service {
        name: String::new(),
        address: "192.0.2.1".into(),
        port: 53,
        protocol: v1::Protocol::Udp.into(),
        pool: "dns".into(),
        affinity: v1::Affinity::Client.into(),
        when_full: v1::WhenFull::Reject.into(),
        udp: v1::UdpMode::Tracked.into(),
        idle_timeout: Some(Duration { seconds: 1, nanos: 500_000_000 }),
        ports: Vec::new(),
        any_port: false,
        fragments: v1::Fragments::Served.into(),
        ..v1::Service::default()
    };
    assert_eq!(patch.object, expected);
    let paths =
        "address port ports any_port protocol pool affinity when_full udp idle_timeout fragments";
    assert_eq!(patch.paths.join(" "), paths);
}

/// So a service that had one port can be given others.
#[test]
fn a_flag_for_ports_unsets_the_other_fields_for_ports() {
    let ports = |flags: &[&str]| {
        let patch = parse_flags::<v1::Service>(flags, None).unwrap();
        assert_eq!(patch.paths, ["port", "ports", "any_port"]);
        (patch.object.port, patch.object.ports, patch.object.any_port)
    };
    let range = |first, last| v1::PortRange { first, last };
    let ranges = vec![range(80, 80), range(443, 443), range(8000, 8099)];
    assert_eq!(ports(&["--ports", "80,443,8000-8099"]), (0, ranges, false));
    assert_eq!(ports(&["--port", "80"]), (80, Vec::new(), false));
    assert_eq!(ports(&["--any-port"]), (0, Vec::new(), true));
    for flags in [
        &["--ports", "80-"][..],
        &["--ports", "http"],
        &["--ports", "80,"],
        &["--port", "80", "--ports", "81"],
        &["--port", "80", "--any-port"],
        &["--ports", "80", "--any-port"],
    ] {
        assert!(parse_flags::<v1::Service>(flags, None).is_err(), "{flags:?}");
    }
}

#[test]
fn a_weight_of_0_is_set() {
    let patch =
        parse_flags::<v1::Backend>(&["--weight", "0", "--max-connection-rate", "600/m"], None);
    let patch = patch.unwrap();
    assert_eq!(
        (patch.object.weight, patch.object.max_connection_rate_per_second),
        (Some(0), Some(10.0))
    );
    assert_eq!(patch.paths, ["weight", "max_connection_rate_per_second"]);
}

#[test]
fn a_list_flag_replaces_the_list_or_empties_it() {
    let patch = parse_flags::<v1::Region>(&["--overflow-to", "us,asia"], None).unwrap();
    assert_eq!(patch.object.overflow_to, ["us", "asia"]);
    let none = parse_flags::<v1::Region>(&["--overflow-to", ""], None).unwrap();
    assert!(none.object.overflow_to.is_empty());
    assert_eq!(none.paths, ["overflow_to"]);
}

#[test]
fn an_http_option_sets_only_its_own_path() {
    let patch = parse_flags::<v1::HealthCheck>(&["--http-host", "web.example"], None).unwrap();
    assert_eq!(
        patch.object.kind,
        Some(CheckKind::Http(v1::HttpCheck { host: "web.example".into(), ..Default::default() }))
    );
    assert_eq!(patch.paths, ["http.host"], "the path that it asks for stays");
}

#[test]
fn a_check_has_one_kind() {
    let both = parse_flags::<v1::HealthCheck>(&["--tcp", "--http-path", "/"], None).unwrap_err();
    assert!(
        both.starts_with(
            "error: health check: has one kind, but flags of tcp and http are given\n"
        )
    );
    let patch = parse_flags::<v1::HealthCheck>(
        &["--udp-request", "hex:00ff", "--udp-answer-prefix", "pong", "--tls-verify", "false"],
        None,
    );
    let patch = patch.unwrap();
    assert_eq!(
        patch.object.kind,
        Some(CheckKind::Udp(v1::UdpCheck {
            request: vec![0, 0xff],
            answer_prefix: b"pong".to_vec(),
            answer_contains: Vec::new(),
        }))
    );
    assert_eq!(patch.object.tls.unwrap().verify, Some(false));
    assert_eq!(patch.paths, ["udp.request", "udp.answer_prefix", "tls.verify"]);
    let patch = parse_flags::<v1::HealthCheck>(&["--agent-send", "status", "--port", "9707"], None)
        .unwrap();
    let agent = v1::AgentCheck { send: b"status".to_vec() };
    assert_eq!(patch.object.kind, Some(CheckKind::Agent(agent)));
    assert_eq!(patch.paths, ["port", "agent.send"]);
    let both = parse_flags::<v1::HealthCheck>(&["--agent", "--udp"], None).unwrap_err();
    assert!(
        both.starts_with(
            "error: health check: has one kind, but flags of udp and agent are given\n"
        )
    );
    let patch = parse_flags::<v1::HealthCheck>(&["--http-agent-header", "x-load"], None).unwrap();
    assert_eq!(patch.paths, ["http.agent_header"]);
}

#[test]
fn capacities_change_in_the_groups_that_are_there() {
    let group = |region: &str, capacity, scaler| v1::Group {
        region: region.into(),
        capacity_per_second: capacity,
        scaler,
        drained: region == "sa",
    };
    let current = v1::Pool {
        groups: vec![
            group("eu", Some(10.0), Some(0.5)),
            group("us", None, Some(0.0)),
            group("sa", None, Some(1.0)),
        ],
        ..v1::Pool::default()
    };
    let flags = ["--capacity", "eu=20/s,asia=60/m", "--scaler", "us=,sa="];
    let patch = parse_flags::<v1::Pool>(&flags, Some(&current)).unwrap();
    assert_eq!(
        patch.object.groups,
        [
            group("eu", Some(20.0), Some(0.5)),
            group("sa", None, None),
            group("asia", Some(1.0), None),
        ],
        "a group with nothing set but `drained` stays"
    );
    assert_eq!(patch.paths, ["groups"]);
}

#[test]
fn an_invalid_value_is_answered_with_an_example() {
    for (flags, how) in [
        (["--settle-time", "10"], "give a unit: ms, s, m, h or d, as in 30s"),
        (["--capacity", "10/s"], "such as eu=10000/s"),
        (["--capacity", "eu=10"], "such as 10/s or 600/m"),
        (["--scaler", "eu=half"], "a number from 0 to 1"),
    ] {
        let error = parse_flags::<v1::Pool>(&flags, None).unwrap_err();
        assert!(error.contains(how), "{flags:?}: {error}");
    }
}

#[test]
fn unset_fields_are_named_as_in_the_api() {
    let mut patch = parse_flags::<v1::Backend>(&["--weight", "2"], None).unwrap();
    patch.unset(&["max-connection-rate".into(), "mtu".into()]).unwrap();
    assert_eq!(patch.paths, ["weight", "max_connection_rate_per_second", "mtu"]);
    let twice = patch.unset(&["weight".into()]).unwrap_err();
    assert_eq!(twice.message, "weight: both set and unset");
}

/// Fields of the API, as its descriptors have them, and the flags that there are.
fn fields_and_flags<K: Kind>(message: &str) -> (Vec<String>, Vec<String>) {
    let pool = prost_reflect::DescriptorPool::decode(spillway_proto::DESCRIPTORS).unwrap();
    let message = pool.get_message_by_name(message).unwrap();
    let mut fields = Vec::new();
    for field in message.fields() {
        let name = field.name().trim_end_matches("_per_second").replace('_', "-");
        fields.push(name.clone());
        let inner = field.kind().as_message().filter(|_| !field.is_list()).cloned();
        let own = inner.filter(|inner| inner.full_name().starts_with("spillway."));
        let inner = own.iter().flat_map(|inner| inner.fields().collect::<Vec<_>>());
        fields.extend(inner.map(|field| format!("{name}-{}", field.name().replace('_', "-"))));
    }
    let command = K::Fields::augment_args(Command::new("fields"));
    let flags = command.get_arguments().filter_map(|flag| flag.get_long().map(Into::into));
    (fields, flags.collect())
}

#[test]
fn every_field_of_the_api_has_its_flag() {
    let without = |of: (Vec<String>, Vec<String>)| {
        let (fields, flags) = of;
        fields.into_iter().filter(|field| !flags.contains(field)).collect::<Vec<_>>()
    };
    // Names have no flag, and --pool and --etag are those of commands; backends are objects of their own, groups have two flags.
    assert_eq!(without(fields_and_flags::<v1::Region>("spillway.v1.Region")), ["name", "etag"]);
    let check = fields_and_flags::<v1::HealthCheck>("spillway.v1.HealthCheck");
    assert_eq!(without(check), ["name", "etag"]);
    assert_eq!(
        without(fields_and_flags::<v1::Pool>("spillway.v1.Pool")),
        ["name", "backends", "groups", "etag"]
    );
    assert_eq!(
        without(fields_and_flags::<v1::Backend>("spillway.v1.Backend")),
        ["address", "pool", "etag"]
    );
    assert_eq!(without(fields_and_flags::<v1::Service>("spillway.v1.Service")), ["name", "etag"]);
}

/// The first line of the parser's refusal.
fn refusal<K: Kind>(flags: &str) -> String {
    let error = parse_flags::<K>(&flags.split_whitespace().collect::<Vec<_>>(), None).unwrap_err();
    error.lines().next().unwrap().to_owned()
}

#[test]
fn a_number_of_0_is_refused_and_not_the_default() {
    let health = refusal::<v1::HealthCheck>;
    let (pool, backend) = (refusal::<v1::Pool>, refusal::<v1::Backend>);
    let unset = "for the default, leave the flag out or use --unset";
    for (message, flag, range) in [
        (health("--rise 0"), "--rise <RISE>", "1 to 100"),
        (health("--fall 0"), "--fall <FALL>", "1 to 100"),
        (health("--http-status-min 0"), "--http-status-min <STATUS>", "100 to 599"),
        (health("--http-status-max 0"), "--http-status-max <STATUS>", "100 to 599"),
        (pool("--panic-threshold-percent 0"), "--panic-threshold-percent <PERCENT>", "1 to 100"),
        (backend("--mtu 0"), "--mtu <BYTES>", "1280 to 65535"),
    ] {
        let expected = format!(
            "error: invalid value '0' for '{flag}': give a whole number from {range}; {unset}"
        );
        assert_eq!(message, expected);
    }
    let port = "error: invalid value '0' for '--port <PORT>': give a whole number from 1 to 65535";
    assert_eq!(health("--port 0"), port);
    assert_eq!(refusal::<v1::Service>("--port 0"), port);
}

#[test]
fn an_invalid_number_is_answered_with_the_valid_range() {
    for (message, value, flag, allowed) in [
        (refusal::<v1::Service>("--port 90-80"), "90-80", "--port <PORT>", "1 to 65535"),
        (refusal::<v1::Service>("--port 65536"), "65536", "--port <PORT>", "1 to 65535"),
        (refusal::<v1::Pool>("--slots abc"), "abc", "--slots <SLOTS>", "7 to 419423, or 0"),
        (refusal::<v1::Pool>("--slots -3"), "-3", "--slots <SLOTS>", "7 to 419423, or 0"),
        (refusal::<v1::Backend>("--weight -1"), "-1", "--weight <WEIGHT>", "0 to 1000000"),
        (refusal::<v1::Backend>("--mtu -1"), "-1", "--mtu <BYTES>", "1280 to 65535"),
        (refusal::<v1::HealthCheck>("--rise -1"), "-1", "--rise <RISE>", "1 to 100"),
        (
            refusal::<v1::HealthCheck>("--jitter-percent -1"),
            "-1",
            "--jitter-percent <PERCENT>",
            "0 to 50",
        ),
        (
            refusal::<v1::HealthCheck>("--http-status-min -1"),
            "-1",
            "--http-status-min <STATUS>",
            "100 to 599",
        ),
    ] {
        let expected = format!(
            "error: invalid value '{value}' for '{flag}': give a whole number from {allowed}"
        );
        assert_eq!(message, expected);
    }
    let duration =
        "give whole numbers with units, the largest first: ms, s, m, h or d, as in 30s or 1h30m";
    for value in ["-1", "-1s"] {
        assert_eq!(
            refusal::<v1::HealthCheck>(&format!("--interval {value}")),
            format!("error: invalid value '{value}' for '--interval <DURATION>': {duration}")
        );
        assert_eq!(
            refusal::<v1::Service>(&format!("--idle-timeout {value}")),
            format!("error: invalid value '{value}' for '--idle-timeout <DURATION>': {duration}")
        );
    }
    let rate = refusal::<v1::Backend>("--max-connection-rate -5");
    assert!(rate.starts_with("error: invalid value '-5' for '--max-connection-rate <RATE>': "));
}
