//! Two guests joined by two virtio cards each: one balances, in the driver, between clients on one link and
//! backends on the other; its neighbour is a client and two backends.
//!
//! ```text
//!   balancer                                     neighbour
//!   ┌────────────┐ eth0  10.1.0.0/24       eth0 ┌──────────┐
//!   │            ├──────────────────────────────┤ backend  │ .2 and .3
//!   │ .1         │ eth1  198.51.100.0/24   eth1 ├──────────┤
//!   │         .1 ├──────────────────────────────┤ client   │ .2
//!   └────────────┘                              └──────────┘
//! ```

mod balancer;
mod jumbo;
mod neighbour;

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::machine::{Cable, Console, Machine};
use lb_tests::sandbox::Sandbox;

use super::{Parts, Run, service::LIMIT};

/// What each guest is: who balances, and its neighbour.
const USUAL: [&str; 2] = ["balancer", "neighbour"];
const JUMBO: [&str; 2] = ["jumbo_balancer", "jumbo_neighbour"];

const VIP: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const BALANCER_BACK: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const BALANCER_FRONT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const BACKENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 1, 0, 3)];
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// Where the neighbour says that it has done all.
const DONE: u16 = 9999;
/// Requests over HTTP.
const REQUESTS: u64 = 40;

const MODULES: [&str; 2] = ["virtio_pci", "virtio_net"];

/// What this program is to do in such a guest, if it is in one.
pub(super) fn role(name: &str) -> Option<Run> {
    let roles: [(&str, Run); 4] = [
        (USUAL[0], balancer::run),
        (USUAL[1], neighbour::run),
        (JUMBO[0], jumbo::balance),
        (JUMBO[1], jumbo::neighbour),
    ];
    roles.into_iter().find(|(role, _)| *role == name).map(|(_, run)| run)
}

/// Many small requests, in the driver.
pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    boot(sandbox, "virtio", USUAL)
}

/// Frames of more than 1500 bytes.
pub(super) fn run_jumbo(sandbox: &Sandbox) -> Result<()> {
    boot(sandbox, "jumbo", JUMBO)
}

/// Boots both, and looks at how they ended.
fn boot(sandbox: &Sandbox, place: &str, [balancer, neighbour]: [&str; 2]) -> Result<()> {
    let parts = Parts::find()?;
    let cables = sandbox.directory(place)?;
    let cable =
        |name: &str, makes: bool, mac: &'static str| Cable { path: cables.join(name), makes, mac };
    let start = |role: &str, cards: [Cable; 2]| -> Result<Machine> {
        let scratch = sandbox.directory(&format!("{place}/{role}"))?;
        let initramfs = parts.initramfs(role, "", &MODULES, &scratch)?;
        Machine::start(&parts.kernel, &initramfs, &scratch, &cards)
    };
    let balancer = start(
        balancer,
        [cable("back", true, "52:54:00:00:01:01"), cable("front", true, "52:54:00:00:02:01")],
    )?;
    let neighbour = start(
        neighbour,
        [cable("back", false, "52:54:00:00:01:02"), cable("front", false, "52:54:00:00:02:02")],
    )?;
    let neighbour = neighbour.finish().context("neighbour")?;
    let balancer = balancer.finish().context("balancer")?;
    ensure!(
        is_well(&neighbour) && is_well(&balancer),
        "neighbour:\n{}\nbalancer:\n{}",
        neighbour.text(),
        balancer.text()
    );
    Ok(())
}

fn is_well(guest: &Console) -> bool {
    guest.line("guest: exit ") == Some("0")
}
