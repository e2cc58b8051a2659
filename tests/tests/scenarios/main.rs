//! Real programs and real packets in networks of namespaces, a process and a sandbox for each case.
//!
//! `cargo xtask test root` runs them by weight; `cargo xtask test gates` those with that in their names.

mod capacity;
mod capture;
mod crash;
mod dataplane;
mod demo;
mod direct;
mod doctor;
mod doors;
mod explain;
mod failover;
mod gates;
mod homes;
mod large;
mod limits;
mod metrics;
mod next_hops;
mod objects_cli;
mod overload;
mod ports;
mod programs;
mod python;
mod receiver;
mod reconcile;
mod regions;
mod restart;
mod rpcs;
mod sandbox;
mod scale;
mod seeing;
mod several_pools;
mod shares;
mod tc;
mod through;
mod top;
mod topology;
mod traffic;
mod unfit;
mod unusable;
mod utilisation;
mod ways;

use std::process::ExitCode;

use lb_tests::harness::{self, Case};

/// The cases of each module, long ones first: they are begun in this order.
const MODULES: &[(&str, &[Case])] = &[
    ("reconcile", reconcile::CASES),
    ("seeing", seeing::CASES),
    ("crash", crash::CASES),
    ("homes", homes::CASES),
    ("rpcs", rpcs::CASES),
    ("demo", demo::CASES),
    ("doors", doors::CASES),
    ("doctor", doctor::CASES),
    ("gates", gates::CASES),
    ("unfit", unfit::CASES),
    ("unusable", unusable::CASES),
    ("next_hops", next_hops::CASES),
    ("explain", explain::CASES),
    ("ports", ports::CASES),
    ("objects_cli", objects_cli::CASES),
    ("ways", ways::CASES),
    ("receiver", receiver::CASES),
    ("dataplane", dataplane::CASES),
    ("top", top::CASES),
    ("direct", direct::CASES),
    ("through", through::CASES),
    ("tc", tc::CASES),
    ("python", python::CASES),
    ("sandbox", sandbox::CASES),
    ("capture", capture::CASES),
    ("topology", topology::CASES),
    ("programs", programs::CASES),
    ("several_pools", several_pools::CASES),
    ("capacity", capacity::CASES),
    ("failover", failover::CASES),
    ("large", large::CASES),
    ("limits", limits::CASES),
    ("metrics", metrics::CASES),
    ("overload", overload::CASES),
    ("regions", regions::CASES),
    ("restart", restart::CASES),
    ("scale", scale::CASES),
    ("shares", shares::CASES),
    ("traffic", traffic::CASES),
    ("utilisation", utilisation::CASES),
];

fn main() -> ExitCode {
    // What a case starts of this very program, to end it.
    let victim = reconcile::crash::victim().or_else(sandbox::victim);
    victim.unwrap_or_else(|| harness::run(MODULES))
}
