//! Services that stand are found by every packet while others come and go.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use aya::{
    EbpfLoader,
    programs::{TestRun as _, TestRunOptions, Xdp},
};
use lb_common::abi::verdict::Verdict;
use lb_maps::{Component, Pins, load_slow_path};
use lb_model::{PortList, Ports};
use lb_tests::{
    packets::frames::{Flow, Packet},
    sandbox::Sandbox,
};

use crate::reconcile::{bulk::many, fake_daemon::FakeDaemon, model, random::name};

const ROUNDS: u16 = 60;
/// Packets of a test run.
const REPEAT: u32 = 1_000;

/// The program over the daemon's own maps.
fn program(bpffs: &Path) -> Result<aya::Ebpf> {
    let pins = Pins::new(bpffs, Component::Balancer);
    let mut loader = EbpfLoader::new();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(pins.maps())? {
        names.push(entry?.file_name().into_string().ok().context("a pin without a name")?);
    }
    for name in &names {
        // Of the capture's section the object has another name, and nothing is captured here.
        loader.map_pin_path(name, pins.map(name));
    }
    let mut object = loader.load(lb_programs::OBJECTS.balancer)?;
    let balancer: &mut Xdp = object.program_mut("balancer").context("no program")?.try_into()?;
    balancer.load()?;
    load_slow_path(&mut object)?;
    Ok(object)
}

pub(crate) fn standing_services_are_found(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "services")?;
    daemon.configuration = many(2, 3, 7, 0);
    daemon.apply()?;
    let object = program(daemon.bpffs())?;
    let balancer: &Xdp = object.program("balancer").context("no program")?.try_into()?;
    let frames = [1000, 1001].map(|port| {
        Packet::new(Flow::new("198.51.100.7:4711", &format!("192.0.2.1:{port}"))).tcp("A")
    });
    let not_ours = |daemon: &FakeDaemon| -> Result<u64> {
        let verdicts = daemon.read()?.verdicts()?;
        let found = verdicts.iter().find(|(verdict, _)| *verdict == Verdict::NotOurs);
        Ok(found.context("no such verdict")?.1.packets)
    };
    ensure!(not_ours(&daemon)? == 0);

    let (is_over, packets) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let runner = scope.spawn(|| -> Result<()> {
            while !is_over.load(Ordering::Relaxed) {
                for frame in &frames {
                    let mut out = vec![0; 2048];
                    let options = TestRunOptions {
                        data_in: Some(frame),
                        data_out: Some(&mut out),
                        repeat: REPEAT,
                        ..TestRunOptions::default()
                    };
                    balancer.test_run(options)?;
                    packets.fetch_add(REPEAT.into(), Ordering::Relaxed);
                }
            }
            Ok(())
        });
        let changed = change(&mut daemon, &packets);
        is_over.store(true, Ordering::Relaxed);
        runner.join().expect("the runner panicked")?;
        changed
    })?;
    let missed = not_ours(&daemon)?;
    ensure!(missed == 0, "{missed} of {} packets met no service", packets.into_inner());
    model::check(&daemon)
}

/// Adds and removes services around those that stand: of the same address and pool, one port at a time, and thousands at
/// once, for which the index needs another size.
fn change(daemon: &mut FakeDaemon, packets: &AtomicU64) -> Result<()> {
    let standing = daemon.configuration.services[&name("service0")].clone();
    for round in 0..ROUNDS {
        let before = packets.load(Ordering::Relaxed);
        let ports = match round % 6 {
            0 => PortList::new([(2_000, 8_000)]),
            1 => PortList::new([(2_000, 2_100)]),
            _ => PortList::new([(2_000 + round * 7, 2_050 + round * 9)]),
        };
        let other =
            lb_model::Service { ports: Ports::Listed(ports.context("ports")?), ..standing.clone() };
        daemon.configuration.services.insert(name("other"), other);
        if round.is_multiple_of(4) {
            daemon.configuration.services.remove(&name("other"));
        }
        // The record of a service that stands is replaced too.
        let pool = name(if round.is_multiple_of(2) { "pool1" } else { "pool0" });
        daemon.configuration.services.insert(
            name("service1"),
            lb_model::Service { ports: Ports::one(1001), pool, ..standing.clone() },
        );
        daemon.apply()?;
        while packets.load(Ordering::Relaxed) < before + u64::from(2 * REPEAT) {
            thread::yield_now();
        }
    }
    Ok(())
}
