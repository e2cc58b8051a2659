//! A service with a capacity, and runs of SYNs over it.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::counter::Event;
use lb_common::abi::counter::GroupCounter;
use lb_e2e::fixture::{ECHO, Fixture, Health, LONG_CONNECTIONS, Tunnel, configuration};
use lb_maps::PinnedMaps;
use lb_tests::process::pause;
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::{self, Arrivals, Decision, Limit};
use lb_tests::traffic::LongConnectionServer;
use nix::time::{ClockId, clock_getres};

/// Where no backend is to fall: probes may wait while SYNs have both CPUs.
pub(crate) const PATIENT: Health = Health { interval_ms: 2000, fall: 20 };

/// A fixture whose backends forget the SYNs they get, and serve long connections.
#[derive(Debug)]
pub(crate) struct OverloadFixture {
    _servers: LongConnectionServer,
    pub(crate) fixture: Fixture,
    health: Health,
    runs: u64,
}

/// What became of the SYNs of a run.
#[derive(Debug)]
pub(crate) struct Run {
    /// SYNs that were sent.
    pub(crate) sent: usize,
    /// Those that arrived, in the order in which they were sent.
    pub(crate) decisions: Vec<Decision>,
}

impl OverloadFixture {
    pub(crate) fn start(sandbox: &Sandbox, name: &str, health: Health) -> Result<Self> {
        let fixture = Fixture::idle(sandbox, name)?;
        syns::forget(&fixture.fabric.backends)?;
        let nodes = fixture.fabric.backends.iter().map(|backend| &backend.node);
        Ok(Self {
            _servers: LongConnectionServer::start(nodes, LONG_CONNECTIONS)?,
            fixture,
            health,
            runs: 0,
        })
    }

    /// Where long connections go.
    pub(crate) const fn connections() -> SocketAddr {
        Tunnel::Ipip.endpoint(LONG_CONNECTIONS)
    }

    /// Puts the fixture's configuration in force, with more said of the near region of its first pool, and
    /// waits until all are up.
    pub(crate) fn apply(&self, group: &str) -> Result<()> {
        let mut document = configuration(&self.fixture.fabric, self.health);
        document.services.push(Tunnel::Ipip.service("connections", LONG_CONNECTIONS, "tcp"));
        let (text, pool) = (document.text(), "health_checks = [\"page\"]\n");
        ensure!(text.contains(pool), "{text}");
        let more = format!("{pool}[[pool.group]]\nregion = \"eu\"\n{group}\n");
        self.fixture.balancer.apply(&text.replacen(pool, &more, 1))?;
        self.fixture.wait_up(&[])
    }

    /// The near region's limit, once nothing that came before counts for it any more.
    pub(crate) fn limit(&self, per_second: u32) -> Result<Limit> {
        self.apply(&format!("capacity = \"{per_second}/s\""))?;
        let tick = Duration::from(clock_getres(ClockId::CLOCK_REALTIME_COARSE)?).as_secs_f64();
        let limit = Limit { per_second: per_second.into(), tick };
        pause(Duration::from_secs_f64(limit.burst() / limit.per_second + 2.0 * tick));
        Ok(limit)
    }

    /// Sends a SYN of a new flow at each moment, and looks where they went. What the balancer counted
    /// is what arrived.
    pub(crate) fn run(&mut self, moments: &[Duration]) -> Result<Run> {
        let SocketAddr::V4(to) = Tunnel::Ipip.endpoint(ECHO) else { anyhow::bail!("not IPv4") };
        self.runs += 1;
        let sources = syns::sources(self.runs, moments.len());
        // A flow that comes up in two runs is a new connection in each.
        let sequence = 100_000 * self.runs as u32;
        let packet = |from: &SocketAddrV4| syns::packet(*from, to, sequence);
        let packets: Vec<_> = sources.iter().map(packet).collect();
        let before = self.counters()?;
        let arrivals = Arrivals::start(&self.fixture.fabric.backends)?;
        let sent = syns::send(&self.fixture.fabric.client, to, &packets, |number| moments[number])?;
        let arrivals = arrivals.stop()?;
        let backends = &self.fixture.fabric.backends;
        let near = |backend: usize| backends[backend].region == "eu";
        let decisions = Decision::all(&sources, &sent, &arrivals, near);
        ensure!(decisions.len() == arrivals.len(), "more arrived than were sent");
        ensure_counted(before, self.counters()?, &decisions, sent.len())?;
        Ok(Run { sent: sent.len(), decisions })
    }

    /// Events that have happened.
    pub(crate) fn events(&self) -> Result<BTreeMap<Event, u64>> {
        let maps = PinnedMaps::open(&self.fixture.balancer.bpffs)?;
        Ok(maps.events()?.into_iter().filter(|(_, count)| *count > 0).collect())
    }

    /// Counters of the first pool's groups, near and far.
    pub(crate) fn counters(&self) -> Result<[GroupCounter; 2]> {
        let maps = PinnedMaps::open(&self.fixture.balancer.bpffs)?;
        let services = maps.services()?;
        let service = services.iter().find(|service| service.key.ip() == Tunnel::Ipip.vip());
        let pool = maps.pool_view(service.context("no service")?.pool)?.context("no pool")?;
        let counter = |group: usize| -> Result<GroupCounter> {
            let (_, group) = pool.groups.get(group).context("not two groups")?;
            Ok(maps.group_connections(group.limiter)?)
        };
        Ok([counter(0)?, counter(1)?])
    }
}

/// The groups counted what arrived, and nothing else but what was lost on the way from the balancer to a
/// backend, where a link's ring was full.
fn ensure_counted(
    before: [GroupCounter; 2],
    after: [GroupCounter; 2],
    decisions: &[Decision],
    sent: usize,
) -> Result<()> {
    let arrived = decisions.len() as u64;
    let arrived_near = decisions.iter().filter(|decision| decision.near).count() as u64;
    let [eu, us] = before;
    let (all, near) = (after[0].offered - eu.offered, after[0].admitted - eu.admitted);
    let is_arrived = (arrived..=sent as u64).contains(&all)
        && (arrived_near..=arrived_near + all - arrived).contains(&near);
    ensure!(is_arrived, "{all} offered, {near} near; {arrived} arrived, {arrived_near} near");
    let expected = [
        GroupCounter {
            offered: eu.offered + all,
            admitted: eu.admitted + near,
            overflow_out: eu.overflow_out + all - near,
            ..eu
        },
        GroupCounter {
            offered: us.offered + all - near,
            admitted: us.admitted + all - near,
            overflow_in: us.overflow_in + all - near,
            ..us
        },
    ];
    ensure!(after == expected, "counted: {after:?}\nexpected: {expected:?}");
    Ok(())
}
