//! Real programs and real packets in networks of namespaces, a process and a sandbox for each case.
//!
//! `cargo xtask test root` runs them by weight; `cargo xtask test displaced` those with that in their names.

mod api_access;
mod api_queries;
mod attacks;
mod capacity;
mod capture;
mod crash;
mod dataplane;
mod demo;
mod direct_return;
mod displaced;
mod doctor;
mod example_clients;
mod explain;
mod failover;
mod fleet;
mod frozen_store;
mod history;
mod hold_down;
mod host;
mod host_changes;
mod lab;
mod large_configurations;
mod limiter;
mod logging;
mod lost_gateway;
mod many_backends;
mod map_sizes;
mod metrics;
mod next_hops;
mod objects_cli;
mod on_disk;
mod overload;
mod overrides;
mod packet_path_behind;
mod packet_programs;
mod port_ranges;
mod receiver;
mod receiver_tc;
mod reconcile;
mod regions;
mod remap;
mod restart;
mod route_changes;
mod self_test;
mod shared_backends;
mod slots;
mod slow_start;
mod source_prefix;
mod startup_reload;
mod streaks;
mod top;
mod traffic;
mod tunnel_checks;
mod unhealthy;
mod unserved;
mod unusable_store;
mod unwritable_disk;
mod utilisation;

use std::process::ExitCode;

use lb_e2e::harness::{self, Case};

/// The cases of each module, long ones first: they are begun in this order.
const MODULES: &[(&str, &[Case])] = &[
    ("reconcile", reconcile::CASES),
    ("capture", capture::CASES),
    ("crash", crash::CASES),
    ("remap", remap::CASES),
    ("api_queries", api_queries::CASES),
    ("fleet", fleet::CASES),
    ("demo", demo::CASES),
    ("lab", lab::CASES),
    ("startup_reload", startup_reload::CASES),
    ("api_access", api_access::CASES),
    ("packet_path_behind", packet_path_behind::CASES),
    ("doctor", doctor::CASES),
    ("displaced", displaced::CASES),
    ("unhealthy", unhealthy::CASES),
    ("history", history::CASES),
    ("hold_down", hold_down::CASES),
    ("streaks", streaks::CASES),
    ("slots", slots::CASES),
    ("overrides", overrides::CASES),
    ("unserved", unserved::CASES),
    ("unusable_store", unusable_store::CASES),
    ("unwritable_disk", unwritable_disk::CASES),
    ("host_changes", host_changes::CASES),
    ("next_hops", next_hops::CASES),
    ("explain", explain::CASES),
    ("port_ranges", port_ranges::CASES),
    ("objects_cli", objects_cli::CASES),
    ("route_changes", route_changes::CASES),
    ("lost_gateway", lost_gateway::CASES),
    ("receiver", receiver::CASES),
    ("dataplane", dataplane::CASES),
    ("top", top::CASES),
    ("direct_return", direct_return::CASES),
    ("tunnel_checks", tunnel_checks::CASES),
    ("receiver_tc", receiver_tc::CASES),
    ("example_clients", example_clients::CASES),
    ("self_test", self_test::sandbox::CASES),
    ("self_test", self_test::frame_checks::CASES),
    ("self_test", self_test::topology::CASES),
    ("packet_programs", packet_programs::CASES),
    ("shared_backends", shared_backends::CASES),
    ("attacks", attacks::CASES),
    ("capacity", capacity::CASES),
    ("failover", failover::CASES),
    ("frozen_store", frozen_store::CASES),
    ("large_configurations", large_configurations::CASES),
    ("limiter", limiter::CASES),
    ("logging", logging::CASES),
    ("map_sizes", map_sizes::CASES),
    ("metrics", metrics::CASES),
    ("overload", overload::CASES),
    ("regions", regions::CASES),
    ("restart", restart::CASES),
    ("many_backends", many_backends::CASES),
    ("slow_start", slow_start::CASES),
    ("source_prefix", source_prefix::CASES),
    ("traffic", traffic::CASES),
    ("utilisation", utilisation::CASES),
];

fn main() -> ExitCode {
    // What a case starts of this very program, to end it.
    let victim = reconcile::crash::victim().or_else(self_test::sandbox::victim);
    victim.unwrap_or_else(|| harness::run(MODULES))
}
