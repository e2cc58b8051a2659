//! The receiver at tc's hook shares it with other programs, and real traffic gets through it.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::verdict::{Action, Verdict};
use lb_e2e::{
    fixture::{self, Fixture, Health},
    harness::{self, Case},
    receiver_hooks,
};
use lb_maps::ReceiverMaps;
use lb_tests::{random::Random, sandbox::Sandbox, topology::Backend, traffic::Curl};

/// Bytes that are sent each way.
const BULK: usize = 3_000_000;

pub(crate) const CASES: &[Case] = &[
    Case::waits("others_at_the_hook_stay_and_a_change_leaves_one_program", receiver_hooks::at_tc),
    Case::waits("bulk_gets_through_every_tunnel_merged_or_not", bulk),
];

/// Files go both ways in each form of tunnel, with GRO and without. Nothing is dropped, and what GRO merges is
/// counted once.
fn bulk(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start_with(sandbox, "bulk", Health::QUICK, &["--hook", "tc"])?;
    for encapsulation in ["ip_in_ip", "gue"] {
        for pool in ["v4", "v6"] {
            fixture.balancer.cli(&["pool", "update", pool, "--encapsulation", encapsulation])?;
        }
        for merges in [false, true] {
            let largest = if merges { 65_536 } else { 1 };
            for Backend { node, .. } in &fixture.fabric.backends {
                node.ip(&format!("link set eth0 gro_max_size {largest}"))?;
            }
            for tunnel in fixture::Tunnel::ALL {
                let what = || format!("{tunnel:?}, {encapsulation}, GRO merges: {merges}");
                let size = both_ways(sandbox, &fixture, tunnel).with_context(what)?;
                harness::note(format!("{}: {size} bytes a packet", what()));
                // The kernel merges tunnels of IP in IP; of UDP it does where a socket of its own asks for it.
                let is_merged = size > 3_000;
                ensure!(is_merged == (merges && encapsulation == "ip_in_ip"), "{}: {size}", what());
            }
        }
    }
    Ok(())
}

/// Sends a file there and back; answers how many bytes a packet had on its way there.
fn both_ways(sandbox: &Sandbox, fixture: &Fixture, tunnel: fixture::Tunnel) -> Result<u64> {
    let directory = fixture.fabric.client.directory();
    let curl = Curl::new(&fixture.fabric.client);
    let content = Random::new(tunnel as u64).bytes(BULK);
    let (here, back) = (directory.join("here"), directory.join("back"));
    fs::write(&here, &content)?;
    let url = format!("http://{}/files/bulk.bin", tunnel.endpoint(80));
    let before = counted(sandbox, fixture)?;
    curl.upload(&here, &url)?;
    let after = counted(sandbox, fixture)?;
    let uploads = fixture.servers.iter().map(|server| server.files().join("bulk.bin"));
    let there: Vec<_> = uploads.filter_map(|file| fs::read(file).ok()).collect();
    ensure!(there.len() == 1 && there[0] == content, "{} uploads", there.len());
    for server in &fixture.servers {
        fs::write(server.files().join("bulk.bin"), &content)?;
    }
    curl.download(&url, Path::new(&back))?;
    ensure!(fs::read(&back)? == content, "the download differs");
    for server in &fixture.servers {
        fs::remove_file(server.files().join("bulk.bin"))?;
    }
    Ok((after.1 - before.1) / (after.0 - before.0))
}

/// Packets and bytes that lost an outer header on all backends, where nothing may have been dropped.
fn counted(sandbox: &Sandbox, fixture: &Fixture) -> Result<(u64, u64)> {
    let mut sum = (0, 0);
    for backend in &fixture.fabric.backends {
        let bpffs = sandbox.bpffs(backend.node.namespace())?;
        for (verdict, counter) in ReceiverMaps::open(&bpffs)?.verdicts()? {
            let is_fault = verdict.action() == Action::Drop && counter.packets > 0;
            ensure!(!is_fault, "{}: {} {}", backend.name(), counter.packets, verdict.name());
            if verdict == Verdict::Decapsulated {
                sum = (sum.0 + counter.packets, sum.1 + counter.bytes);
            }
        }
    }
    Ok(sum)
}
