//! Two pools that share a small flow table, of which one is attacked.

use std::net::{SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::counter::Event;
use lb_e2e::fixture::{ECHO, Fixture, Health, LONG_CONNECTIONS, Tunnel, configuration};
use lb_tests::sample;
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::{self, Flood, Forged, Pair, Paired, Pairs};
use lb_tests::traffic::{LongConnectionServer, LongConnections};

/// Cells of a flow table that floods fill soon: a power of two.
pub(crate) const CELLS: u64 = 65_536;
const VARIABLE: &str = "SPILLWAY_ATTACK_CELLS";
/// Cells of the default table, and flows a second for which it has as few cells for each as a test's table for its flood.
const DEFAULT: u64 = 1 << 20;
const PER_SECOND: u64 = 150_000;
/// A port whose service refuses what it has no room for, at the attacked pool.
pub(crate) const REJECTING: u16 = 4001;
/// Of a region that has a connection every ten seconds: all others overflow.
pub(crate) const FULL: &str = "[[pool.group]]\nregion = \"eu\"\ncapacity = \"0.1/s\"\n";
/// Time from an honest client's SYN to its ACK.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(300);
/// Connections that [`FULL`] admits while a test runs, at most.
pub(crate) const NEAR: usize = 20;
/// Where no backend is to fall: probes may wait while floods have both CPUs.
const PATIENT: Health = Health { interval_ms: 2000, fall: 20 };

/// The attacked pool, and the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    Attacked,
    Other,
}

impl Pool {
    /// The VIP that leads to it, and a port.
    pub(crate) fn endpoint(self, port: u16) -> SocketAddr {
        match self {
            Self::Attacked => Tunnel::Ipip.endpoint(port),
            Self::Other => Tunnel::Ip4In6.endpoint(port),
        }
    }

    pub(crate) fn endpoint_v4(self, port: u16) -> Result<SocketAddrV4> {
        let SocketAddr::V4(endpoint) = self.endpoint(port) else { anyhow::bail!("not IPv4") };
        Ok(endpoint)
    }
}

/// A fixture whose backends forget the clients of [`syns::SOURCES`], and serve long connections.
#[derive(Debug)]
pub(crate) struct AttackFixture {
    _servers: LongConnectionServer,
    pub(crate) fixture: Fixture,
    /// Cells of the flow table.
    pub(crate) cells: u64,
    /// Flows a second of a flood beside honest clients.
    pub(crate) per_second: u64,
    runs: u64,
}

impl AttackFixture {
    /// With so many cells, unless [`VARIABLE`] says more.
    pub(crate) fn start(sandbox: &Sandbox, name: &str, cells: u64) -> Result<Self> {
        let cells = sample::number(VARIABLE)?.unwrap_or(cells);
        let fixture = Fixture::idle_with(sandbox, name, &[], &["--flows", &cells.to_string()])?;
        syns::forget(&fixture.fabric.backends)?;
        let nodes = fixture.fabric.backends.iter().map(|backend| &backend.node);
        let servers = LongConnectionServer::start(nodes, LONG_CONNECTIONS)?;
        let per_second = cells * PER_SECOND / DEFAULT;
        Ok(Self { _servers: servers, fixture, cells, per_second, runs: 0 })
    }

    /// The same where both pools have a full region and open connections, most of which are not there.
    pub(crate) fn start_full(sandbox: &Sandbox, name: &str) -> Result<(Self, LongConnections)> {
        let attack = Self::start(sandbox, name, CELLS)?;
        attack.apply([FULL, FULL])?;
        let mut connections = LongConnections::new(&attack.fixture.fabric.client)?;
        for pool in [Pool::Attacked, Pool::Other] {
            connections.open(pool.endpoint(LONG_CONNECTIONS), 60)?;
        }
        connections.all_go_on(&[])?;
        Ok((attack, connections))
    }

    /// Puts a configuration in force that says this of the pools, the attacked one first, and waits until all backends are
    /// up.
    pub(crate) fn apply(&self, pools: [&str; 2]) -> Result<()> {
        let mut document = configuration(&self.fixture.fabric, PATIENT);
        for (tunnel, name, port) in [
            (Tunnel::Ipip, "connections", LONG_CONNECTIONS),
            (Tunnel::Ip4In6, "other-connections", LONG_CONNECTIONS),
            (Tunnel::Ipip, "rejecting", REJECTING),
        ] {
            document.services.push(tunnel.service(name, port, "tcp"));
        }
        let mut text = document.text();
        let rejecting = format!("port = {REJECTING}\n");
        ensure!(text.contains(&rejecting), "{text}");
        text = text.replace(&rejecting, &format!("{rejecting}when_full = \"reject\"\n"));
        let udp = "protocol = \"udp\"\n";
        text = text.replace(udp, &format!("{udp}udp = \"tracked\"\n"));
        let pool = "health_checks = [\"page\"]\n";
        let parts: Vec<_> = text.split(pool).collect();
        let [before, first, second] = parts[..] else { anyhow::bail!("not two pools: {text}") };
        let [attacked, other] = pools;
        let text = format!("{before}{pool}{attacked}\n{first}{pool}{other}\n{second}");
        self.fixture.balancer.apply(&text)?;
        self.fixture.wait_up(&[])
    }

    /// A flood at the attacked pool. Floods with one seed have the same sources in the same order.
    pub(crate) fn flood(&self, port: u16, packets: &[Forged], seed: u64) -> Result<Flood> {
        Flood::with(&self.fixture.fabric, Pool::Attacked.endpoint_v4(port)?, packets, seed)
    }

    /// Honest clients of a pool's echo, none of which came before: their second packet comes `wait` after the first.
    pub(crate) fn honest(&mut self, pool: Pool, pair: Pair, wait: Duration) -> Result<Pairs> {
        self.honest_at(pool, ECHO, pair, wait)
    }

    /// The same of both pools.
    pub(crate) fn honest_of_both(&mut self, pair: Pair, wait: Duration) -> Result<[Pairs; 2]> {
        Ok([self.honest(Pool::Attacked, pair, wait)?, self.honest(Pool::Other, pair, wait)?])
    }

    /// The same of one at another port.
    pub(crate) fn honest_at(
        &mut self,
        pool: Pool,
        port: u16,
        pair: Pair,
        wait: Duration,
    ) -> Result<Pairs> {
        self.runs += 1;
        let to = pool.endpoint_v4(port)?;
        Ok(Pairs { pair, to, seed: self.runs, number: 300, per_second: 100, wait })
    }

    /// Sends several kinds of honest clients beside each other, and nothing else; answers what became of each kind.
    pub(crate) fn alone(&self, honest: &[Pairs]) -> Result<Vec<Paired>> {
        Pairs::run(honest, &self.fixture.fabric.client, &self.fixture.fabric.backends)
    }

    /// Does something beside a flood of so many flows a second that goes on until it is done; answers how many flows the
    /// flood sent a second, too.
    pub(crate) fn beside<T>(
        &self,
        flood: &mut Flood,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, f64)> {
        let is_done = &AtomicBool::new(false);
        let send = || -> Result<f64> {
            let begun = Instant::now();
            let should = |_, _| !is_done.load(Ordering::Relaxed);
            let sent = flood.send_while(self.per_second, should)?;
            Ok(sent as f64 / begun.elapsed().as_secs_f64())
        };
        std::thread::scope(|scope| {
            let flood = scope.spawn(send);
            let done = work();
            is_done.store(true, Ordering::Relaxed);
            let rate = flood.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((done?, rate))
        })
    }

    /// Sends flows of a flood, as fast as a busy machine can, until something has happened so often; answers how many.
    pub(crate) fn fill(&self, flood: &mut Flood, event: Event, number: u64) -> Result<u64> {
        let (goal, mut sent) = (self.fixture.count(event)? + number, 0);
        for _ in 0..100 {
            if self.fixture.count(event)? >= goal {
                return Ok(sent);
            }
            sent += flood.send(self.cells / 4, self.fast(), Duration::from_secs(5))?;
        }
        anyhow::bail!("{event:?}: not {number} times")
    }

    /// Flows a second that fill the table soon.
    pub(crate) fn fast(&self) -> u64 {
        50_000.max(self.cells / 8)
    }

    /// Whether a backend, by its place, is in the near region.
    pub(crate) fn is_near(&self, backend: usize) -> bool {
        self.fixture.fabric.backends[backend].region == "eu"
    }

    /// Cells with one state.
    pub(crate) fn held(&self, state: &str) -> Result<u64> {
        let flows = self.fixture.balancer.stats()?.remembered.flows;
        let found = flows.iter().find(|it| it.state == state);
        found.map(|it| it.held).with_context(|| format!("no state {state:?}"))
    }

    /// Packets that the balancer has dropped.
    pub(crate) fn dropped(&self) -> Result<u64> {
        let verdicts = self.fixture.balancer.stats()?.verdicts;
        Ok(verdicts.iter().filter(|it| it.action == "drop").map(|it| it.packets).sum())
    }

    /// Whether the daemon shows that the flow table is short of room.
    pub(crate) fn is_short_of_room(&self) -> Result<bool> {
        let conditions = self.fixture.balancer.status()?.conditions;
        Ok(conditions.iter().any(|condition| condition.subject == "flows"))
    }
}
