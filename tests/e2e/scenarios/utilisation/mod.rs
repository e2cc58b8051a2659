//! New connections follow the utilisation that backends of unequal speed report, and a backend can drain itself.

mod load;
mod worker;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, HASH_KEY};
use lb_e2e::harness::{self, Case};
use lb_tests::daemon::{Balancer, Binaries, Receiver, answers};
use lb_tests::process::{pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Backend, Fabric, REGIONS};
use lb_tests::traffic::{Echo, Stream};
use load::{Load, p99, part};
use spillway_proto::v1::{BackendState, BackendStatus};
use worker::{AGENT, Worker};

/// What a request costs each of three, milliseconds: 225 a second in all.
const WORK: [u64; 3] = [10, 10, 40];
/// The slow one, which does 25 a second.
const SLOW: &str = "eu3";
/// New connections a second: a third is too much for the slow one, and all is half of what they can do.
const RATE: u32 = 110;
/// How long each way of spreading is looked at.
const LOOK: Duration = Duration::from_secs(10);
/// By how much the slowest hundredth must be quicker.
const FACTOR: f64 = 5.0;
/// Longest wait for what the daemon does by itself.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) const CASES: &[Case] = &[Case::measures(
    "new_connections_follow_utilisation_and_a_backend_drains_itself",
    utilisation,
)];

/// Three servers of unequal speed behind a balancer.
struct Workers {
    workers: Vec<Worker>,
    _echoes: Vec<Echo>,
    _receivers: Vec<Receiver>,
    balancer: Balancer,
    fabric: Fabric,
}

impl Workers {
    fn start(sandbox: &Sandbox) -> Result<Self> {
        let binaries = Binaries::find()?;
        let fabric = Fabric::new(sandbox, "utilised", 3)?;
        let vips = [Fabric::VIP_V4.into()];
        let (mut workers, mut echoes, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
        for (backend, work) in fabric.region_backends(REGIONS[0]).zip(WORK) {
            let (node, is_slow) = (&backend.node, backend.name() == SLOW);
            // The slow one says it in a header, the others by an agent.
            workers.push(Worker::start(node, Duration::from_millis(work), !is_slow)?);
            echoes.push(Echo::start(node, &[], ECHO)?);
            let sources = [Fabric::BALANCER_V4.into()];
            receivers.push(Receiver::start(sandbox, &binaries, node, &sources, &vips)?);
        }
        let balancer = Balancer::started(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
        Ok(Self { workers, _echoes: echoes, _receivers: receivers, balancer, fabric })
    }

    fn backends(&self) -> impl Iterator<Item = &Backend> {
        self.fabric.region_backends(REGIONS[0])
    }

    fn address(&self, name: &str) -> Result<String> {
        let backend = self.backends().find(|backend| backend.name() == name);
        Ok(backend.with_context(|| format!("no backend {name}"))?.v4.to_string())
    }

    /// The configuration, where what backends say of themselves is heard or not.
    fn configuration(&self, heard: bool) -> String {
        let (header, checks) = match heard {
            true => (", agent_header = \"endpoint-load-metrics\"", "\"page\", \"load\""),
            false => ("", "\"page\""),
        };
        let mut text = format!(
            "hash_key = \"{HASH_KEY}\"\n[[region]]\nname = \"eu\"\n\
             [[health_check]]\nname = \"page\"\nport = 80\ninterval = \"500ms\"\n\
             http = {{ path = \"/load\"{header} }}\n\
             [[health_check]]\nname = \"load\"\nport = {AGENT}\ninterval = \"500ms\"\nagent = {{}}\n\
             [[pool]]\nname = \"web\"\nhealth_checks = [{checks}]\n"
        );
        for backend in self.backends() {
            text += &format!("[[pool.backend]]\naddress = \"{}\"\nregion = \"eu\"\n", backend.v4);
        }
        for (name, port) in [("web", 80), ("echo", ECHO)] {
            let vip = Fabric::VIP_V4;
            text += &format!(
                "[[service]]\nname = \"{name}\"\naddress = \"{vip}\"\nport = {port}\n\
                 protocol = \"tcp\"\npool = \"web\"\n"
            );
        }
        text
    }

    fn apply(&self, heard: bool) -> Result<()> {
        self.balancer.apply(&self.configuration(heard))?;
        let all: Vec<_> = self.backends().map(|backend| backend.v4.into()).collect();
        self.balancer.wait_up(&all, PATIENCE)
    }

    fn load(&self, a_second: u32) -> Result<Load> {
        Load::start(&self.fabric.client, vip(80), a_second)
    }

    /// A backend in the daemon's status.
    fn status(&self, name: &str) -> Result<BackendStatus> {
        answers::backend(&self.balancer.status()?, &self.address(name)?).cloned()
    }

    /// What each says it is utilised, and which share it has.
    fn shares(&self) -> Result<Vec<(f64, f64)>> {
        self.backends()
            .map(|backend| {
                let status = self.status(backend.name())?;
                Ok((status.utilisation.unwrap_or_default(), status.share.unwrap_or_default()))
            })
            .collect()
    }
}

fn vip(port: u16) -> SocketAddr {
    SocketAddr::from((Fabric::VIP_V4, port))
}

/// The highest utilisation over the lowest.
fn spread(shares: &[(f64, f64)]) -> f64 {
    let utilised = || shares.iter().map(|(utilised, _)| *utilised);
    utilised().fold(0.0, f64::max) / utilised().fold(f64::INFINITY, f64::min)
}

fn utilisation(sandbox: &Sandbox) -> Result<()> {
    let workers = Workers::start(sandbox)?;
    workers.apply(false)?;
    let streams = (0..24)
        .map(|seed| Stream::open(&workers.fabric.client, vip(ECHO), seed))
        .collect::<Result<Vec<_>>>()?;
    let on = |name: &str| streams.iter().filter(|stream| stream.backend() == name).count();
    ensure!(on("eu1") > 0 && on(SLOW) > 0, "streams are at every backend");

    // Even spread, as long as the other will be looked at.
    let load = workers.load(RATE)?;
    pause(LOOK);
    let even = load.finish()?;
    ensure!(part(&even, SLOW) > 0.25, "even is a third: {:.2}", part(&even, SLOW));

    workers.apply(true)?;
    let generation = workers.balancer.status()?.generation;
    let (began, load) = (Instant::now(), workers.load(RATE)?);
    let mut worst = 0.0_f64;
    until("utilisation is even and nobody waits", PATIENCE, || {
        let shares = workers.shares()?;
        worst = worst.max(shares[2].0);
        let done = shares[2].1 < 0.5 && shares[2].0 < 0.8 && spread(&shares) < 1.6;
        Ok((worst > 0.9 && done).then_some(()))
    })
    .with_context(|| format!("{:?}", workers.shares()))?;
    let (took, mark) = (began.elapsed(), Instant::now());
    pause(LOOK);
    let shares = workers.shares()?;
    let mut spread_by = load.finish()?;
    spread_by.retain(|answer| answer.at >= mark && answer.at < mark + LOOK);
    ensure!(workers.balancer.status()?.generation == generation, "nothing was applied");

    let (before, after) = (p99(&even).as_secs_f64(), p99(&spread_by).as_secs_f64());
    let slow = (part(&even, SLOW), part(&spread_by, SLOW));
    harness::note(format!(
        "p99 of {} connections a second: {:.0} ms spread evenly, {:.0} ms by utilisation ({:.1} times \
         less), which was even after {:.0} s; the slow one took {:.0}% and takes {:.0}% of them",
        RATE,
        before * 1e3,
        after * 1e3,
        before / after,
        took.as_secs_f64(),
        slow.0 * 100.0,
        slow.1 * 100.0,
    ));
    harness::note(format!("utilisation and share of each at the end: {shares:?}"));
    ensure!(before > FACTOR * after, "p99 {before:.3} s evenly, {after:.3} s by utilisation");
    // A ninth is what makes them even.
    ensure!((0.04..0.2).contains(&slow.1), "the slow one takes {:.2}", slow.1);
    Stream::all_go_on(&streams)?;

    drain(&workers, &streams)?;
    Stream::finish_all(streams)
}

/// A backend asks for its drain and takes it back.
fn drain(workers: &Workers, streams: &[Stream]) -> Result<()> {
    let reason = "drained: check load: the backend says maint (kernel update)";
    workers.workers[0].say("maint#kernel update");
    until("it is drained", PATIENCE, || {
        let status = workers.status("eu1")?;
        let is_draining = status.state() == BackendState::Draining;
        Ok((is_draining && answers::reason(&status) == reason).then_some(()))
    })?;
    let load = workers.load(40)?;
    pause(Duration::from_secs(2));
    let answers = load.finish()?;
    ensure!(answers.len() > 40 && part(&answers, "eu1") == 0.0, "it has new ones");
    Stream::all_go_on(streams.iter().filter(|stream| stream.backend() == "eu1"))?;
    let history = workers.balancer.cli(&["backend", "history", "web", &workers.address("eu1")?])?;
    let said: Vec<_> = history.split_whitespace().collect();
    ensure!(said.join(" ").contains("the backend says maint (kernel update)"), "{history}");

    workers.workers[0].say("ready");
    until("it is back", PATIENCE, || {
        Ok((workers.status("eu1")?.state() == BackendState::Up).then_some(()))
    })?;
    let load = workers.load(40)?;
    pause(Duration::from_secs(2));
    let answers = load.finish()?;
    ensure!(part(&answers, "eu1") > 0.1, "it has new ones again: {:.2}", part(&answers, "eu1"));
    Stream::all_go_on(streams)
}
