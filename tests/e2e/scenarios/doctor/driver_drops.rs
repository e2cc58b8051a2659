//! Frames that a driver drops after the program counted them as sent: counters, metrics and doctor say how many.
//! `ethtool` and `ip` say how many there are.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{add_second_link, datagram_service};
use lb_tests::daemon::printed::{self, Finding};
use lb_tests::daemon::{Balancer, Binaries, HTTP_ADDRESS, scrape};
use lb_tests::process::{PATIENCE, pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, Node, REGIONS};
use lb_tests::traffic::datagrams;

use super::{
    IN_ORDER,
    host::{DoctorHost, Fault},
};

const PORT: u16 = 7;
const DATAGRAMS: u64 = 40;
/// Between two of a flow that goes on.
const GAP: std::time::Duration = std::time::Duration::from_millis(20);

/// A balancer that forwards datagrams, which no backend takes out of their tunnels.
struct Fixture {
    host: DoctorHost,
    balancer: Balancer,
    fabric: Fabric,
    /// Whether the kernel's tracepoints report what is refused before a driver gets it.
    traces: bool,
}

/// What the program counted, and what driver and kernel did with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// By the verdict.
    program: u64,
    /// By the driver's counter of frames that it sent.
    sent: u64,
    /// By the driver's counter of frames that it dropped.
    dropped: u64,
    /// By the statistics of the link.
    tx_dropped: u64,
}

/// Names of what is counted.
#[derive(Clone, Copy)]
struct Counters {
    interface: &'static str,
    verdict: &'static str,
    sent: &'static str,
    dropped: &'static str,
    /// The interface of `dropped`, the counter as it is shown, and its stage.
    shown: (&'static str, &'static str, &'static str),
}

const TRANSMITTED: Counters = Counters {
    interface: "eth0",
    verdict: "transmitted",
    sent: "rx_queue_0_xdp_tx",
    dropped: "rx_queue_0_xdp_tx_errors",
    shown: ("eth0", "rx_queue_N_xdp_tx_errors", "transmit"),
};

const REDIRECTED: Counters = Counters {
    interface: "eth1",
    verdict: "redirected",
    sent: "tx_queue_0_xdp_xmit",
    // The kernel refuses them where they come in.
    dropped: "rx_queue_0_drops",
    shown: ("eth0", "rx_queue_N_drops", "mixed"),
};

impl Fixture {
    fn start(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let fabric = Fabric::new(sandbox, name, 1)?;
        fabric.balancer.sysctls(&IN_ORDER)?;
        let binaries = Binaries::find()?;
        let mut balancer = Balancer::new(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
        balancer.more = vec!["--http".into(), HTTP_ADDRESS.to_string()];
        balancer.start()?;
        let traces = balancer.traces_drops()?;
        balancer.apply(&datagram_service(&fabric, PORT).text())?;
        let host = DoctorHost::unprobing(&fabric.balancer, &binaries, &balancer);
        host.until_wrong(&[])?;
        Ok(Self { host, balancer, fabric, traces })
    }

    /// Sends datagrams, waits until program and driver have counted all of them, and answers what they counted more.
    fn send(&self, of: Counters, is_lost: bool) -> Result<Counts> {
        let before = self.counts(of)?;
        let from = Fabric::CLIENT_V4.into();
        let to = SocketAddr::from((Fabric::VIP_V4, PORT));
        let _sockets = datagrams(&self.fabric.client, from, to, DATAGRAMS as usize, 100)?;
        until("all are counted", PATIENCE, || {
            let now = self.counts(of)?;
            let gone = match is_lost {
                true => now.dropped - before.dropped,
                false => now.sent - before.sent,
            };
            let program = now.program - before.program;
            Ok((program >= DATAGRAMS && gone >= DATAGRAMS).then_some(()))
        })?;
        let after = self.counts(of)?;
        self.says(of, after)?;
        Ok(Counts {
            program: after.program - before.program,
            sent: after.sent - before.sent,
            dropped: after.dropped - before.dropped,
            tx_dropped: after.tx_dropped - before.tx_dropped,
        })
    }

    fn counts(&self, of: Counters) -> Result<Counts> {
        let node = &self.fabric.balancer;
        let link = &node.ip_json(&format!("-statistics link show dev {}", of.interface))?[0];
        let tx_dropped = link["stats64"]["tx"]["dropped"].as_u64().context("no statistics")?;
        Ok(Counts {
            program: self.balancer.packets(of.verdict)?,
            sent: ethtool(node, of.interface, of.sent)?,
            dropped: ethtool(node, of.shown.0, of.dropped)?,
            tx_dropped,
        })
    }

    /// From the pins and from the daemon, as text, and in the metrics.
    fn says(&self, of: Counters, counts: Counts) -> Result<()> {
        let (at, counter, stage) = of.shown;
        let is_after = stage != "mixed";
        let is_counted_after = is_after || self.traces;
        let socket = self.balancer.socket.display().to_string();
        let spillway = &self.host.spillway;
        let asked = ["--output", "json", "--socket", &socket, "stats"];
        let by_daemon = printed::read(self.fabric.balancer.run(spillway, asked)?.as_bytes())?;
        for stats in [self.balancer.stats()?, by_daemon] {
            let link = &stats.interface(of.interface)?.link;
            ensure!(link.tx_dropped == counts.tx_dropped, "{link:?}, not {counts:?}");
            let it = stats.interface(at)?;
            let mut drops = it.driver_drops.iter();
            let drops = drops.find(|it| it.counter == counter).context("no counter")?;
            ensure!(it.driver == "veth" && drops.frames == counts.dropped, "{it:?}");
            ensure!(drops.stage == stage && drops.after_program == is_after, "{drops:?}");
        }
        let text = self.balancer.cli(&["stats"])?;
        let row = [at, counter, stage, &counts.dropped.to_string()];
        let is_row = |line: &str| line.split_whitespace().eq(row);
        ensure!(text.lines().any(is_row) == (counts.dropped > 0), "{row:?} in\n{text}");

        // A scrape may be of a moment ago.
        let labels = [("interface", at), ("counter", counter), ("stage", stage)];
        let lost = [("interface", of.interface), ("counter", "tx_dropped")];
        let after = if is_counted_after { counts.dropped } else { 0 };
        let mut seen = String::new();
        until("the metrics say so", PATIENCE, || {
            let now = scrape(&self.fabric.balancer)?;
            let value =
                |name: &str, labels: &[_]| now.value(&format!("spillway_{name}_total"), labels);
            let all = [
                value("interface_driver_drops", &labels),
                value("interface_dropped_after_program", &labels[..1]),
                value("interface_errors", &lost),
            ];
            let expected = [counts.dropped, after, counts.tx_dropped];
            seen = format!("{all:?}, not {expected:?}");
            Ok((all == expected.map(|count| Some(count as f64))).then_some(()))
        })
        .with_context(|| seen)
    }

    /// What the doctor finds while datagrams are lost all the time.
    fn wrong_meanwhile(&self, faults: &[Fault]) -> Result<Vec<Finding>> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| -> Result<()> {
                let to = SocketAddr::from((Fabric::VIP_V4, PORT));
                while !done.load(Ordering::Relaxed) {
                    datagrams(&self.fabric.client, Fabric::CLIENT_V4.into(), to, 1, 100)?;
                    pause(GAP);
                }
                Ok(())
            });
            let wrong = self.host.until_wrong(faults);
            done.store(true, Ordering::Relaxed);
            sending.join().map_err(|_| anyhow::anyhow!("the sender panicked"))??;
            wrong
        })
    }
}

/// A counter as `ethtool -S` prints it.
fn ethtool(node: &Node, interface: &str, counter: &str) -> Result<u64> {
    let text = node.run("ethtool", ["-S", interface])?;
    let mut lines = text.lines().filter_map(|line| line.trim().split_once(": "));
    let value =
        lines.find(|(name, _)| *name == counter).with_context(|| format!("no {counter}"))?;
    value.1.parse().with_context(|| format!("{counter}: {}", value.1))
}

/// The other end of the balancer's veth has no packet program: what is sent back is dropped there.
pub(crate) fn transmitted(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "sent")?;
    let router = &fixture.fabric.router;
    let all = Counts { program: DATAGRAMS, sent: DATAGRAMS, ..Counts::default() };
    ensure!(fixture.send(TRANSMITTED, false)? == all, "with a right peer none is dropped");
    fixture.host.until_wrong(&[])?;

    router.run("ip", ["link", "set", "balancer", "xdp", "off"])?;
    router.run("ethtool", ["-K", "balancer", "gro", "off"])?;
    let (program, dropped) = (DATAGRAMS, DATAGRAMS);
    let lost = Counts { program, sent: 0, dropped, tx_dropped: DATAGRAMS };
    let counted = fixture.send(TRANSMITTED, true)?;
    ensure!(counted == lost, "{counted:?}, not {lost:?}");
    let faults = [("mode", "problem", "eth0"), ("driver_drops", "warning", "eth0")];
    let wrong = fixture.host.until_wrong(&faults)?;
    let found = "40 frames dropped after the program, which has counted 80 packets as sent \
                 (rx_queue_N_xdp_tx_errors: 40), and none now";
    ensure!(wrong[1].found == found, "{wrong:?}");
    let faults = [("mode", "problem", "eth0"), ("driver_drops", "problem", "eth0")];
    let now = fixture.wrong_meanwhile(&faults)?;

    // The command is for the other end.
    let command = now[0].first_command()?;
    ensure!(command == now[1].first_command()?, "{now:?}");
    let command = command.replace("NAMESPACE", router.namespace()).replace("PEER", "balancer");
    fixture.host.paste(&command)?;
    until("the program is there", PATIENCE, || {
        let link = &router.ip_json("link show dev balancer")?[0];
        Ok(link["xdp"].is_object().then_some(()))
    })?;
    ensure!(fixture.send(TRANSMITTED, false)? == all, "after {command}");
    Ok(())
}

/// Datagrams leave by a second interface, whose other end makes the kernel refuse them.
pub(crate) fn redirected(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "turned")?;
    let router = &fixture.fabric.router;
    add_second_link(&fixture.fabric, &fixture.balancer, PATIENCE)?;
    let all = Counts { program: DATAGRAMS, sent: DATAGRAMS, ..Counts::default() };
    let counted = fixture.send(REDIRECTED, false)?;
    ensure!(counted == all, "with a right peer none is dropped: {counted:?}");
    fixture.host.until_wrong(&[])?;

    router.run("ethtool", ["-K", "second", "gro", "off"])?;
    let lost = Counts { program: DATAGRAMS, dropped: DATAGRAMS, ..Counts::default() };
    let counted = fixture.send(REDIRECTED, true)?;
    ensure!(counted == lost, "{counted:?}, not {lost:?}");
    let traced = ("driver_drops", "warning", "eth0");
    let known = if fixture.traces { vec![traced] } else { Vec::new() };
    let faults = [known.clone(), vec![("driver_drops", "problem", "eth1")]].concat();
    let wrong = fixture.host.until_wrong(&faults)?;
    let by_peer = wrong.last().context("no fault")?;
    let command = by_peer.first_command()?;
    router.run("sh", ["-c", &command.replace("PEER", "second")])?;
    ensure!(fixture.send(REDIRECTED, false)? == all, "after {command}");
    fixture.host.until_wrong(&known).map(drop)
}
