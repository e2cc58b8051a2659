use clap::{Args as _, Command, FromArgMatches as _};
use prost_types::Duration;
use spillway_proto::v1::{self, health_check::Probe};

use super::super::{
    edit::Edit,
    kind::{Fields as _, Kind},
};

/// What flags make of an object, and the paths that they name.
fn of<K: Kind>(flags: &[&str], current: Option<&K>) -> Result<Edit<K>, String> {
    let command = K::Fields::augment_args(Command::new("fields"));
    let matches = command
        .try_get_matches_from([&["fields"], flags].concat())
        .map_err(|error| error.to_string())?;
    let fields = K::Fields::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    let mut edit = Edit::default();
    fields.write(&mut edit, current).map_err(|failure| failure.to_string())?;
    Ok(edit)
}

#[test]
fn no_flag_names_no_field() {
    assert!(of::<v1::Region>(&[], None).unwrap().paths.is_empty());
    assert!(of::<v1::HealthCheck>(&[], None).unwrap().paths.is_empty());
    assert!(of::<v1::Pool>(&[], None).unwrap().paths.is_empty());
    assert!(of::<v1::Backend>(&[], None).unwrap().paths.is_empty());
    assert!(of::<v1::Service>(&[], None).unwrap().paths.is_empty());
}

#[test]
fn flags_of_a_service_are_its_fields() {
    let flags = "--address 192.0.2.1 --port 53 --protocol udp --pool dns --affinity client \
                 --when-full reject --udp tracked --idle-timeout 1500ms --fragments served";
    let edit = of::<v1::Service>(&flags.split_whitespace().collect::<Vec<_>>(), None).unwrap();
    let wanted = v1::Service {
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
    };
    assert_eq!(edit.object, wanted);
    let paths =
        "address port ports any_port protocol pool affinity when_full udp idle_timeout fragments";
    assert_eq!(edit.paths.join(" "), paths);
}

/// So a service that had one port can be given others.
#[test]
fn whichever_flag_says_the_ports_unsets_what_said_them_before() {
    let said = |flags: &[&str]| {
        let edit = of::<v1::Service>(flags, None).unwrap();
        assert_eq!(edit.paths, ["port", "ports", "any_port"]);
        (edit.object.port, edit.object.ports, edit.object.any_port)
    };
    let range = |first, last| v1::PortRange { first, last };
    let ranges = vec![range(80, 80), range(443, 443), range(8000, 8099)];
    assert_eq!(said(&["--ports", "80,443,8000-8099"]), (0, ranges, false));
    assert_eq!(said(&["--port", "80"]), (80, Vec::new(), false));
    assert_eq!(said(&["--any-port"]), (0, Vec::new(), true));
    for flags in [
        &["--ports", "80-"][..],
        &["--ports", "http"],
        &["--ports", "80,"],
        &["--port", "80", "--ports", "81"],
        &["--port", "80", "--any-port"],
        &["--ports", "80", "--any-port"],
    ] {
        assert!(of::<v1::Service>(flags, None).is_err(), "{flags:?}");
    }
}

#[test]
fn a_weight_of_nothing_is_a_weight_that_is_given() {
    let edit = of::<v1::Backend>(&["--weight", "0", "--max-connection-rate", "600/m"], None);
    let edit = edit.unwrap();
    assert_eq!(
        (edit.object.weight, edit.object.max_connection_rate_per_second),
        (Some(0), Some(10.0))
    );
    assert_eq!(edit.paths, ["weight", "max_connection_rate_per_second"]);
}

#[test]
fn a_list_is_given_whole_and_can_be_emptied() {
    let edit = of::<v1::Region>(&["--overflow-to", "us,asia"], None).unwrap();
    assert_eq!(edit.object.overflow_to, ["us", "asia"]);
    let none = of::<v1::Region>(&["--overflow-to", ""], None).unwrap();
    assert!(none.object.overflow_to.is_empty());
    assert_eq!(none.paths, ["overflow_to"]);
}

#[test]
fn options_of_http_make_a_check_one_of_http_and_leave_its_others() {
    let edit = of::<v1::HealthCheck>(&["--http-host", "web.example"], None).unwrap();
    assert_eq!(
        edit.object.probe,
        Some(Probe::Http(v1::HttpProbe { host: "web.example".into(), ..Default::default() }))
    );
    assert_eq!(edit.paths, ["http.host"], "the path that it asks for stays");
}

#[test]
fn a_check_asks_for_one_thing() {
    let both = of::<v1::HealthCheck>(&["--tcp", "--http-path", "/"], None).unwrap_err();
    assert!(both.starts_with("error: health check: asks for one thing, not for tcp and http\n"));
    let edit = of::<v1::HealthCheck>(
        &["--udp-request", "hex:00ff", "--udp-answer-prefix", "pong", "--tls-verify", "false"],
        None,
    );
    let edit = edit.unwrap();
    assert_eq!(
        edit.object.probe,
        Some(Probe::Udp(v1::UdpProbe {
            request: vec![0, 0xff],
            answer_prefix: b"pong".to_vec(),
            answer_contains: Vec::new(),
        }))
    );
    assert_eq!(edit.object.tls.unwrap().verify, Some(false));
    assert_eq!(edit.paths, ["udp.request", "udp.answer_prefix", "tls.verify"]);
    let edit = of::<v1::HealthCheck>(&["--agent-send", "status", "--port", "9707"], None).unwrap();
    let agent = v1::AgentProbe { send: b"status".to_vec() };
    assert_eq!(edit.object.probe, Some(Probe::Agent(agent)));
    assert_eq!(edit.paths, ["port", "agent.send"]);
    let both = of::<v1::HealthCheck>(&["--agent", "--udp"], None).unwrap_err();
    assert!(both.starts_with("error: health check: asks for one thing, not for udp and agent\n"));
    let edit = of::<v1::HealthCheck>(&["--http-agent-header", "x-load"], None).unwrap();
    assert_eq!(edit.paths, ["http.agent_header"]);
}

#[test]
fn capacities_change_in_the_groups_that_are_there() {
    let group = |region: &str, capacity, scaler| v1::PoolRegion {
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
    let edit = of::<v1::Pool>(&flags, Some(&current)).unwrap();
    assert_eq!(
        edit.object.groups,
        [
            group("eu", Some(20.0), Some(0.5)),
            group("sa", None, None),
            group("asia", Some(1.0), None),
        ],
        "of what is unset in a region nothing is left, but that it is drained"
    );
    assert_eq!(edit.paths, ["groups"]);
}

#[test]
fn a_value_without_its_unit_is_told_how_it_is_written() {
    for (flags, how) in [
        (["--settle-time", "10"], "as 500ms, 2s or 10m"),
        (["--capacity", "10/s"], "as eu=10000/s"),
        (["--capacity", "eu=10"], "as 10/s or 600/m"),
        (["--scaler", "eu=half"], "a number from 0 to 1"),
    ] {
        let error = of::<v1::Pool>(&flags, None).unwrap_err();
        assert!(error.contains(how), "{flags:?}: {error}");
    }
}

#[test]
fn what_is_unset_is_named_as_the_api_names_it() {
    let mut edit = of::<v1::Backend>(&["--weight", "2"], None).unwrap();
    edit.unset(&["max-connection-rate".into(), "mtu".into()]).unwrap();
    assert_eq!(edit.paths, ["weight", "max_connection_rate_per_second", "mtu"]);
    let twice = edit.unset(&["weight".into()]).unwrap_err();
    assert_eq!(twice.message, "weight: is both set and unset");
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
    // Names are said without a flag; backends are objects of their own, groups have two flags.
    assert_eq!(without(fields_and_flags::<v1::Region>("spillway.v1.Region")), ["name"]);
    assert_eq!(without(fields_and_flags::<v1::HealthCheck>("spillway.v1.HealthCheck")), ["name"]);
    assert_eq!(
        without(fields_and_flags::<v1::Pool>("spillway.v1.Pool")),
        ["name", "backends", "groups"]
    );
    assert_eq!(without(fields_and_flags::<v1::Backend>("spillway.v1.Backend")), ["address"]);
    assert_eq!(without(fields_and_flags::<v1::Service>("spillway.v1.Service")), ["name"]);
}

/// What the parser says of flags: its first line.
fn refused<K: Kind>(flags: &str) -> String {
    let error = of::<K>(&flags.split_whitespace().collect::<Vec<_>>(), None).unwrap_err();
    error.lines().next().unwrap().to_owned()
}

#[test]
fn nothing_as_a_number_is_refused_and_never_the_default() {
    let health = refused::<v1::HealthCheck>;
    let (pool, backend) = (refused::<v1::Pool>, refused::<v1::Backend>);
    let unset = "the default is had by leaving it out or by --unset";
    for (said, flag, range) in [
        (health("--rise 0"), "--rise <RISE>", "1 to 100"),
        (health("--fall 0"), "--fall <FALL>", "1 to 100"),
        (health("--http-status-min 0"), "--http-status-min <STATUS>", "100 to 599"),
        (health("--http-status-max 0"), "--http-status-max <STATUS>", "100 to 599"),
        (pool("--slots 0"), "--slots <SLOTS>", "7 to 16777213"),
        (pool("--panic-threshold-percent 0"), "--panic-threshold-percent <PERCENT>", "1 to 100"),
        (backend("--mtu 0"), "--mtu <BYTES>", "1280 to 65535"),
    ] {
        let expected = format!(
            "error: invalid value '0' for '{flag}': give a whole number from {range}; {unset}"
        );
        assert_eq!(said, expected);
    }
    let port = "error: invalid value '0' for '--port <PORT>': give a whole number from 1 to 65535";
    assert_eq!(health("--port 0"), port);
    assert_eq!(refused::<v1::Service>("--port 0"), port);
}

#[test]
fn what_is_no_number_or_a_negative_one_is_told_what_is_allowed() {
    for (said, value, flag, allowed) in [
        (refused::<v1::Service>("--port 90-80"), "90-80", "--port <PORT>", "1 to 65535"),
        (refused::<v1::Service>("--port 65536"), "65536", "--port <PORT>", "1 to 65535"),
        (refused::<v1::Pool>("--slots abc"), "abc", "--slots <SLOTS>", "7 to 16777213"),
        (refused::<v1::Pool>("--slots -3"), "-3", "--slots <SLOTS>", "7 to 16777213"),
        (refused::<v1::Backend>("--weight -1"), "-1", "--weight <WEIGHT>", "0 to 1000000"),
        (refused::<v1::Backend>("--mtu -1"), "-1", "--mtu <BYTES>", "1280 to 65535"),
        (refused::<v1::HealthCheck>("--rise -1"), "-1", "--rise <RISE>", "1 to 100"),
        (
            refused::<v1::HealthCheck>("--jitter-percent -1"),
            "-1",
            "--jitter-percent <PERCENT>",
            "0 to 50",
        ),
        (
            refused::<v1::HealthCheck>("--http-status-min -1"),
            "-1",
            "--http-status-min <STATUS>",
            "100 to 599",
        ),
    ] {
        let expected = format!(
            "error: invalid value '{value}' for '{flag}': give a whole number from {allowed}"
        );
        assert_eq!(said, expected);
    }
    let duration = "give a whole number and its unit, as 500ms, 2s or 10m";
    for value in ["-1", "-1s"] {
        assert_eq!(
            refused::<v1::HealthCheck>(&format!("--interval {value}")),
            format!("error: invalid value '{value}' for '--interval <DURATION>': {duration}")
        );
        assert_eq!(
            refused::<v1::Service>(&format!("--idle-timeout {value}")),
            format!("error: invalid value '{value}' for '--idle-timeout <DURATION>': {duration}")
        );
    }
    let rate = refused::<v1::Backend>("--max-connection-rate -5");
    assert!(rate.starts_with("error: invalid value '-5' for '--max-connection-rate <RATE>': "));
}
