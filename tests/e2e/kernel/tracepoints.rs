//! The kernel's tracepoints count what is dropped after the packet program, of the balancer's own interfaces only. The
//! host's kernel may have no tracepoints.

use std::{collections::HashSet, net::SocketAddr};

use anyhow::{Context as _, Result, ensure};
use aya::programs::XdpMode;
use lb_e2e::fixture::{add_second_link, datagram_service};
use lb_maps::TracedDrops;
use lb_tests::{
    daemon::{Balancer, Binaries, HTTP_ADDRESS, scrape},
    packets::objects,
    process::until,
    sandbox::Sandbox,
    topology::{Fabric, Node, REGIONS},
    traffic::datagrams,
};

use super::service::LIMIT;

const PORT: u16 = 7;
const DATAGRAMS: u64 = 40;
const PINGS: u64 = 5;

/// Frames that each tracepoint has reported of an interface: `xdp_exception`, `xdp_redirect_err`, `xdp_devmap_xmit`.
type Traced = [u64; 3];
const NAMES: [&str; 3] = ["xdp_exception", "xdp_redirect_err", "xdp_devmap_xmit"];

/// A balancer on `eth0`, whose packets to backends leave by `eth1`, to the end `second` of the router.
struct Fixture {
    fabric: Fabric,
    balancer: Balancer,
}

pub(super) fn run(sandbox: &Sandbox) -> Result<()> {
    // The balancers of trials before this one have left theirs.
    let others = programs()?;
    let programs = || -> Result<usize> { Ok(programs()?.difference(&others).count()) };
    let mut fixture = Fixture::start(sandbox)?;
    let router = fixture.fabric.router.clone();
    ensure!(fixture.send("redirected")? == [[0; 3]; 2], "with a right peer none is dropped");

    router.run("ethtool", ["-K", "second", "gro", "off"])?;
    // Since Linux 6.3 the kernel asks before it puts a frame into the queue of a device.
    let lost = match is_refused_early()? {
        true => [[0, DATAGRAMS, 0], [0; 3]],
        false => [[0; 3], [0, 0, DATAGRAMS]],
    };
    let traced = fixture.send("redirected")?;
    ensure!(traced == lost, "{traced:?}, not {lost:?}");
    fixture.says(lost)?;
    fixture.until_scraped(lost)?;

    // What another program fails at is counted, but not as a packet of ours.
    let failing_here = failing(&fixture.fabric.balancer, "eth1")?;
    fixture.fail("by the first daemon")?;
    fixture.says(fixture.traced()?)?;
    // An interface of another namespace is none of ours, though its index may be the same.
    router.run("ip", ["link", "set", "balancer", "xdp", "off"])?;
    let failing_elsewhere = failing(&router, "balancer")?;
    let before = ethtool(&router, "balancer")?;
    ping(&fixture.fabric.balancer, "10.0.0.1")?;
    ensure!(
        ethtool(&router, "balancer")? >= before + PINGS,
        "the router's program failed for none"
    );
    let [eth0, _] = fixture.traced()?;
    ensure!(eth0 == lost[0], "frames of the router are counted: {eth0:?}");
    let (index, own) = (index(&router, "balancer")?, index(&fixture.fabric.balancer, "eth1")?);
    let traced = TracedDrops::read(&fixture.balancer.bpffs);
    ensure!(index == own || traced.of(index).all(|(_, frames)| frames == 0), "{traced:?}");
    drop(failing_elsewhere);

    // The programs do not need the daemon, and the next one counts on.
    fixture.balancer.kill()?;
    fixture.fail("without a daemon")?;
    let [_, before] = fixture.traced()?;
    fixture.balancer.start()?;
    ensure!(fixture.balancer.traces_drops()?, "the next daemon does not trace");
    let [_, after] = fixture.traced()?;
    ensure!(after >= before, "the counts began anew: {after:?} after {before:?}");
    fixture.fail("by the next daemon")?;
    // The kernel frees replaced ones a while after their pins are gone.
    until("one program for each tracepoint", LIMIT, || {
        Ok((programs()? == NAMES.len()).then_some(()))
    })
    .with_context(|| format!("{:?} programs on tracepoints", programs()))?;
    drop(failing_here);

    fixture.balancer.stop()?;
    fixture.balancer.cli(&["detach", "--yes"])?;
    until("the programs are gone", LIMIT, || Ok((programs()? == 0).then_some(())))
}

impl Fixture {
    fn start(sandbox: &Sandbox) -> Result<Self> {
        let fabric = Fabric::new(sandbox, "traced", 1)?;
        let balancer = Balancer::new(sandbox, &Binaries::find()?, &fabric.balancer, REGIONS[0])?;
        let mut fixture = Self { fabric, balancer };
        fixture.balancer.more = ["--flows", "4096"].map(Into::into).to_vec();
        fixture.balancer.more.extend(["--http".into(), HTTP_ADDRESS.to_string()]);
        fixture.balancer.start()?;
        fixture.balancer.apply(&datagram_service(&fixture.fabric, PORT).text())?;
        add_second_link(&fixture.fabric, &fixture.balancer, LIMIT)?;
        let Fabric { balancer, router, .. } = &fixture.fabric;
        // Pings must leave though answers of ARP do not come in.
        neighbour(router, "second", "10.9.0.2", balancer, "eth1")?;
        neighbour(balancer, "eth0", "10.0.0.1", router, "balancer")?;
        ensure!(fixture.balancer.traces_drops()?, "the kernel of a guest has tracepoints");
        Ok(fixture)
    }

    /// Sends datagrams, waits until the program has counted them, and answers what was traced.
    fn send(&self, verdict: &str) -> Result<[Traced; 2]> {
        let before = self.balancer.packets(verdict)?;
        let to = SocketAddr::from((Fabric::VIP_V4, PORT));
        let from = Fabric::CLIENT_V4.into();
        let _sockets = datagrams(&self.fabric.client, from, to, DATAGRAMS as usize, 100)?;
        until("all are counted", LIMIT, || {
            Ok((self.balancer.packets(verdict)? == before + DATAGRAMS).then_some(()))
        })?;
        self.traced()
    }

    /// What was traced of `eth0` and of `eth1`, from the pins.
    fn traced(&self) -> Result<[Traced; 2]> {
        let stats = self.balancer.stats()?;
        let traced = |interface| -> Result<Traced> {
            let drops = &stats.interface(interface)?.traced_drops;
            let names: Vec<_> = drops.iter().map(|it| &*it.tracepoint).collect();
            ensure!(names == NAMES, "{drops:?}");
            let frames: Vec<_> = drops.iter().map(|it| it.frames).collect();
            frames.try_into().ok().context("three tracepoints")
        };
        Ok([traced("eth0")?, traced("eth1")?])
    }

    /// Has the failing program of `eth1` fail, and compares what is traced with what the driver counts more: pings, and
    /// whatever the daemon's own checks bring.
    fn fail(&self, when: &str) -> Result<()> {
        let driver = || ethtool(&self.fabric.balancer, "eth1");
        // Both at one time, with no frame in between.
        let count = || {
            until("no frame comes", LIMIT, || {
                let (before, traced, after) = (driver()?, self.traced()?[1][0], driver()?);
                Ok((before == after).then_some([before, traced]))
            })
        };
        let before = count()?;
        ping(&self.fabric.router, "10.9.0.2")?;
        until("driver and tracepoint agree", LIMIT, || {
            let now = count()?;
            let [driver, traced] = [0, 1].map(|of| now[of] - before[of]);
            Ok((driver >= PINGS && driver == traced).then_some(()))
        })
        .with_context(|| format!("{when}: {before:?}, then {:?}", count()))
    }

    /// Waits until the metrics say the same: a scrape may be of a moment ago.
    fn until_scraped(&self, expected: [Traced; 2]) -> Result<()> {
        let mut seen = Vec::new();
        let expected: Vec<_> = expected.into_iter().flatten().map(|it| Some(it as f64)).collect();
        until("the metrics say so", LIMIT, || {
            let now = scrape(&self.fabric.balancer)?;
            let value = |interface, tracepoint| {
                let labels = [("interface", interface), ("tracepoint", tracepoint)];
                now.value("spillway_interface_traced_drops_total", &labels)
            };
            let of = |interface| NAMES.map(|tracepoint| value(interface, tracepoint));
            seen = ["eth0", "eth1"].into_iter().flat_map(of).collect();
            Ok((seen == expected).then_some(()))
        })
        .with_context(|| format!("{seen:?}, not {expected:?}"))
    }

    /// The daemon says the same in its API, and `spillway` as text.
    fn says(&self, expected: [Traced; 2]) -> Result<()> {
        let socket = self.balancer.socket.display().to_string();
        let spillway = Binaries::find()?.spillway;
        let node = &self.fabric.balancer;
        let asked = ["--output", "json", "--socket", &socket, "stats"];
        let stats: serde_json::Value = serde_json::from_str(&node.run(spillway, asked)?)?;
        let all = stats["interfaces"].as_array().context("no interfaces")?;
        for (interface, expected) in ["eth0", "eth1"].into_iter().zip(expected) {
            let it = all.iter().find(|it| it["interface"] == interface).context(interface)?;
            for (name, frames) in NAMES.into_iter().zip(expected) {
                let drops = it["traced_drops"].as_array().context("traced_drops")?;
                let drops = drops.iter().find(|it| it["tracepoint"] == name).context(name)?;
                ensure!(drops["frames"] == frames, "{drops}, not {frames}");
                let is_after = interface == "eth0" || name == "xdp_devmap_xmit";
                ensure!(drops["after_program"] == is_after, "{drops}");
                let row = [interface, name, &frames.to_string()];
                let text = self.balancer.cli(&["stats"])?;
                let is_row = |line: &str| line.split_whitespace().eq(row);
                ensure!(text.lines().any(is_row) == (frames > 0), "{row:?} in\n{text}");
            }
        }
        Ok(())
    }
}

/// Puts a program on an interface of a node that fails for each frame (`XDP_ABORTED`), until it is dropped: the bench's
/// wrapper without a program to jump into.
fn failing(node: &Node, interface: &str) -> Result<aya::Ebpf> {
    let mut loaded = objects::load("bench", &["wrapper"])?;
    let program = objects::program_mut(&mut loaded, "wrapper")?;
    node.enter(|| program.attach(interface, XdpMode::Driver).map(drop))?
        .with_context(|| format!("attach to {interface}"))?;
    Ok(loaded)
}

/// Sends frames that get no answer.
fn ping(from: &Node, to: &str) -> Result<()> {
    let count = PINGS.to_string();
    let output = from.command("ping").args(["-c", &count, "-i", "0.2", "-W", "1", to]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(said.contains(" 0 received"), "answered: {said}");
    Ok(())
}

/// Frames that the program of an interface dropped or failed for, by its driver.
fn ethtool(node: &Node, interface: &str) -> Result<u64> {
    let text = node.run("ethtool", ["-S", interface])?;
    let counters = text.lines().filter_map(|line| line.trim().split_once(": "));
    let drops = counters.filter(|(name, _)| name.ends_with("_xdp_drops"));
    drops.map(|(_, value)| Ok(value.parse::<u64>()?)).sum()
}

/// Tells a node the MAC of its neighbour on a link.
fn neighbour(node: &Node, end: &str, address: &str, of: &Node, other_end: &str) -> Result<()> {
    let link = &of.ip_json(&format!("link show dev {other_end}"))?[0];
    let mac = link["address"].as_str().context("no MAC")?;
    node.ip(&format!("neighbour replace {address} lladdr {mac} dev {end} nud permanent"))
}

fn index(node: &Node, interface: &str) -> Result<u32> {
    let link = &node.ip_json(&format!("link show dev {interface}"))?[0];
    Ok(link["ifindex"].as_u64().context("no index")?.try_into()?)
}

/// The ids of all programs on tracepoints that the kernel has.
fn programs() -> Result<HashSet<u32>> {
    let mut ids = HashSet::new();
    for program in aya::programs::loaded_programs() {
        let program = program?;
        let name = program.name_as_str().unwrap_or_default();
        if NAMES.iter().any(|it| !name.is_empty() && it.starts_with(name)) {
            ids.insert(program.id());
        }
    }
    Ok(ids)
}

/// Whether the kernel is 6.3 or later.
fn is_refused_early() -> Result<bool> {
    let uname = nix::sys::utsname::uname()?;
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split('.').map(|it| it.parse::<u32>());
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        anyhow::bail!("a kernel named {release}")
    };
    Ok((major, minor) >= (6, 3))
}
