//! Lists what moves which metric, makes it happen, and fails for a metric that does not move.

mod configuration;
mod traffic;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::net::UnixStream,
};

use anyhow::{Context as _, Result, ensure};
use lb_observe::metrics;
use lb_tests::daemon::scrape;
use lb_tests::openmetrics::Exposition;
use lb_tests::process::PATIENCE;
use lb_tests::sandbox::Sandbox;
use nix::sys::signal::Signal;

use crate::metrics::fixture::MetricsFixture;
use watch::Watch;

/// What moves which metrics, by their names without prefix and suffix.
const MOVES: &[(&str, &[&str])] = &[
    (
        "a configuration is applied",
        &[
            "service",
            "service_backends",
            "service_backends_up",
            "backend_next_hop_resolved",
            "backend_mtu_bytes",
            "backend_share_ratio",
            "group_limit_connections_per_second",
            "group_capacity_connections_per_second",
            "group_configured_connections_per_second",
            "group_scaler_ratio",
            "group_portion_ratio",
            "group_backends",
            "group_backends_up",
            "balancers",
            "generation",
            "generation_applied_timestamp_seconds",
            "packet_path_published_timestamp_seconds",
            "packet_path_checksum",
            "publish_duration_seconds",
            "health_publish_delay_seconds",
            "health_published_timestamp_seconds",
            "loop_waiting_seconds",
            "loop_service_seconds",
            "loop_turn_age_seconds",
            "store_write_duration_seconds",
            "probes",
            "probe_lateness_seconds",
        ],
    ),
    ("backends say how they are", &["backend_share_ratio", "backend_utilisation_ratio"]),
    ("a route to a backend has an MTU", &["backend_mtu_bytes"]),
    (
        "datagrams come",
        &[
            "verdict_packets",
            "verdict_bytes",
            "service_packets",
            "service_bytes",
            "backend_packets",
            "backend_bytes",
            "interface_packets",
        ],
    ),
    (
        "the driver drops what is sent",
        &["interface_errors", "interface_driver_drops", "interface_dropped_after_program"],
    ),
    (
        "SYNs come, more than are taken",
        &[
            "service_connections",
            "backend_connections",
            "group_connections_offered",
            "group_connections_admitted",
            "group_connections_overflow_in",
            "group_connections_overflow_out",
            "group_connections_refused",
            "group_connections_over_capacity",
            "pool_has_displaced",
        ],
    ),
    ("connections are open away from home", &["flow_table_cells", "events"]),
    ("a group is asked for more than it takes", &["group_missing_backends"]),
    ("a listener closes", &["backend_up", "check_failing"]),
    ("an override is set", &["overrides"]),
    ("another configuration is applied", &["backend_state", "pool_settling", "group_marked_out"]),
    (
        "the daemon starts anew, with a file that is not there",
        &["start_timestamp_seconds", "conditions", "waiting_settings", "api_refused"],
    ),
    ("the kernel refuses a write", &["packet_path_behind", "publish_failures"]),
    ("the program is taken off", &["interface_attached"]),
];

/// What stays as it is, and is compared with what it must be.
const FIXED: &[&str] = &["build", "flow_table_room_cells"];

/// What moves only while the log is not read: the scenarios of `logging` look at it.
const LOG_DROPPED: &str = "log_entries_dropped";

/// What moves only while the disk does not answer, or is full: the scenarios of `frozen_store` and `overrides` look at
/// it.
const DISK: [&str; 4] =
    ["overrides_unstored", "loop_queue_entries", "store_write_age_seconds", "store_write_failures"];

/// What moves only at a member of a fleet: the scenarios of `fleet` look at it.
const LOCAL: &str = "overrides_local";

/// What there is only with certificates: `a_certificate_that_expires_is_shown_until_it_is_renewed` looks at it.
const CERTIFICATES: [&str; 2] = [
    "tls_certificate_not_before_timestamp_seconds",
    "tls_certificate_expiration_timestamp_seconds",
];

/// What moves only where tokens are needed: `tokens_guard_what_is_read_over_tls` looks at it.
const TOKENS: &str = "http_requests_refused";

/// What kernels without tracepoints never have. The trial of guests looks at it (kernel/tracepoints.rs).
const TRACED: &str = "interface_traced_drops";

/// What moves only when a backend goes down again soon after it came back (hold_down.rs).
const HELD: &[&str] = &["hold_downs", "pool_backends_held_down"];

/// What there is only in a fleet: `fleet::the_fleet_is_shown_by_metrics_and_page` looks at it.
const FLEET: &[&str] = &[
    "fleet_ready",
    "fleet_balancers",
    "fleet_balancers_alive",
    "fleet_balancers_ready",
    "fleet_balancers_differing",
    "fleet_etcd_available",
    "fleet_etcd_database_bytes",
    "fleet_etcd_database_in_use_bytes",
    "fleet_etcd_quota_bytes",
    "fleet_conflict",
    "fleet_generation",
    "fleet_revision",
    "fleet_revision_in_force",
    "fleet_schema_revision",
    "fleet_epoch",
    "fleet_epoch_open",
    "group_in_flight_ratio",
];

pub(crate) fn every_metric(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = MetricsFixture::start(sandbox, "metrics")?;
    let mut moved = BTreeSet::new();
    let first = scrape(&fixture.fabric.balancer)?;
    configuration::fixed(&first)?;

    let mut watch = Watch { fixture: &fixture, before: first, moved: BTreeSet::new() };
    configuration::configured(&mut watch)?;
    configuration::said(&mut watch)?;
    traffic::route_mtu(&mut watch)?;
    traffic::datagrams(&mut watch)?;
    traffic::dropped(&mut watch)?;
    traffic::syns(&mut watch)?;
    traffic::displaced(&mut watch)?;
    traffic::missing(&mut watch)?;
    moved.append(&mut watch.moved);
    let before = watch.before;

    fixture.echoes[0] = None;
    let mut watch = Watch { fixture: &fixture, before, moved: BTreeSet::new() };
    let labels = [("pool", "even"), ("backend", "10.1.0.11"), ("region", "eu")];
    watch
        .until("a listener closes", |now| now.value("spillway_backend_up", &labels) == Some(0.0))?;
    let states: BTreeMap<_, _> = ["up", "unhealthy", "unreachable"]
        .map(|state| {
            let labels = [&labels[..], &[("state", state)]].concat();
            (state, watch.before.value("spillway_backend_state", &labels))
        })
        .into();
    let expected = [("up", None), ("unhealthy", Some(1.0)), ("unreachable", None)];
    ensure!(states == expected.into(), "of a host that refuses: {states:?}");
    let check = [("pool", "even"), ("backend", "10.1.0.11"), ("check", "open")];
    let failing = watch.before.samples("spillway_check_failing").count();
    ensure!(watch.before.value("spillway_check_failing", &check) == Some(1.0) && failing == 1);
    let failed = [("result", "failed")];
    ensure!(watch.before.value("spillway_probes_total", &failed) >= Some(3.0), "fall is 3");
    configuration::overridden(&mut watch)?;
    configuration::reconfigured(&mut watch)?;
    moved.append(&mut watch.moved);
    let before = watch.before;

    fixture.balancer.stop()?;
    let settings = fixture.fabric.balancer.directory().join("settings.toml");
    fs::write(&settings, "")?;
    fixture.balancer.more.extend(["--apply".into(), "/nowhere.toml".into()]);
    fixture.balancer.more.extend(["--config".into(), settings.display().to_string()]);
    fixture.balancer.start()?;
    // A setting that waits for the next start, and more connections than one user may have.
    fs::write(&settings, "interface-wait = \"5s\"\n")?;
    fixture.balancer.running().context("the daemon runs")?.signal(Signal::SIGHUP)?;
    let connections = (0..200).map(|_| UnixStream::connect(&fixture.balancer.socket));
    let connections = connections.collect::<Result<Vec<_>, _>>()?;
    let mut watch = Watch { fixture: &fixture, before, moved: BTreeSet::new() };
    let started = |of: &Exposition| of.value("spillway_start_timestamp_seconds", &[]);
    let was = started(&watch.before);
    let packets = total(&watch.before, "spillway_service_packets_total");
    watch.until("the daemon starts anew, with a file that is not there", |now| {
        let refused = [("listener", "socket"), ("limit", "connections")];
        started(now) > was
            && now.value("spillway_conditions", &[]) == Some(1.0)
            && now.value("spillway_waiting_settings", &[]) == Some(1.0)
            && now.value("spillway_api_refused_total", &refused) >= Some(1.0)
    })?;
    drop(connections);
    ensure!(total(&watch.before, "spillway_service_packets_total") >= packets, "they count on");
    configuration::refused(&mut watch)?;
    moved.append(&mut watch.moved);
    let before = watch.before;
    configuration::take_off(&mut fixture)?;
    let mut watch = Watch { fixture: &fixture, before, moved: BTreeSet::new() };
    configuration::taken_off(&mut watch)?;
    moved.append(&mut watch.moved);

    let known: BTreeSet<String> = metrics::ALL.iter().map(|it| it.family()).collect();
    let elsewhere = [LOG_DROPPED, TOKENS, TRACED, LOCAL]
        .into_iter()
        .chain(DISK)
        .chain(CERTIFICATES)
        .chain(HELD.iter().copied())
        .chain(FLEET.iter().copied());
    let fixed = FIXED.iter().copied().chain(elsewhere).map(|name| format!("spillway_{name}"));
    let looked_at: BTreeSet<String> = moved.into_iter().chain(fixed).collect();
    let differ = |other| known.symmetric_difference(other).cloned().collect::<Vec<_>>();
    ensure!(known == looked_at, "not moved: {:?}", differ(&looked_at));
    let served: BTreeSet<String> = watch.before.families.keys().cloned().collect();
    ensure!(known == served, "not served: {:?}", differ(&served));
    Ok(())
}

fn total(of: &Exposition, name: &str) -> f64 {
    of.value(name, &[]).unwrap_or_default()
}
