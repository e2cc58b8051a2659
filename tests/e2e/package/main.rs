//! The Debian package as an operator meets it: in a Debian with systemd as process 1.

mod doctor;
mod fixture;
mod host;
mod lifecycle;
mod service;
mod stopped_journal;

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    container::{self, Container, Debian},
    harness::{self, Case},
    leftovers::pinned_below,
};
use lb_tests::{
    daemon::{XdpMode, xdp_mode},
    sandbox::Sandbox,
    topology::Fabric,
    traffic::Nginx,
};

use fixture::PackageFixture;
use host::{files, given};

const CASES: &[Case] = &[
    Case::works("a_build_without_packet_programs_loads_nothing", a_stub_loads_nothing),
    Case::works("from_installation_to_purge", from_installation_to_purge),
];

fn main() -> ExitCode {
    if let Err(error) = container::sweeper() {
        eprintln!("{error:#}");
        return ExitCode::FAILURE;
    }
    harness::run(&[("package", CASES)])
}

fn a_stub_loads_nothing(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "stub", 1)?;
    let node = &fabric.balancer;
    let bpffs = sandbox.bpffs(node.namespace())?;
    let mut command = node.command(given("SPILLWAY_STUB")?);
    command.args(["balancer", "--interface", "eth0", "--bpffs"]).arg(&bpffs);
    command.arg("--state-dir").arg(node.directory());
    let output = command.arg("--socket").arg(node.directory().join("s")).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1), "{}: {said}", output.status);
    ensure!(
        said.lines()
            .any(|line| line.starts_with("spillwayd: balancer object: missing in this build")),
        "{said}"
    );
    ensure!(xdp_mode(node, "eth0")? == XdpMode::None, "something is attached");
    ensure!(pinned_below(&bpffs).is_empty(), "something is pinned");
    Ok(())
}

/// One host of each role, in one run: what one step leaves is what the next one finds.
fn from_installation_to_purge(sandbox: &Sandbox) -> Result<()> {
    let debian = Debian::unpack(sandbox)?;
    let fabric = Fabric::new(sandbox, "package", 1)?;
    let backend = fabric.backends.first().context("no backend")?.clone();
    let nginx = Nginx::start(&backend.node)?;
    let fixture = PackageFixture {
        balancer: Container::boot(sandbox, &debian, &fabric.balancer)?,
        receiver: Container::boot(sandbox, &debian, &backend.node)?,
        fabric,
        backend,
    };
    let [balancer, receiver] = [&fixture.balancer, &fixture.receiver];
    let before = [files(balancer)?, files(receiver)?];

    fixture.install()?;
    fixture.doctor_of_the_installed()?;
    fixture.refuse_without_settings()?;
    fixture.doctor_of_the_failed()?;
    fixture.set_up()?;
    fixture.confinement()?;
    fixture.socket()?;
    fixture.journal()?;
    fixture.stopped_journal(&nginx)?;
    fixture.reload()?;
    fixture.restart()?;
    fixture.upgrade()?;
    fixture.stop()?;
    fixture.by_hand()?;
    fixture.remove_and_install_again()?;
    fixture.purge()?;
    fixture.serve_at_once()?;
    fixture.purge()?;

    for (container, before) in [balancer, receiver].into_iter().zip(before) {
        let left: Vec<_> = files(container)?.difference(&before).cloned().collect();
        ensure!(left.is_empty(), "left after the purge: {left:?}");
    }
    Ok(())
}
