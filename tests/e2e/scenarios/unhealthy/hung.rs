//! A server that hangs costs its new clients a repeated SYN, with a capacity as without.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, HTTP, Health, Tunnel, configuration};
use lb_e2e::harness;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Node;

use super::failing_check::FullQueue;

const VICTIM: &str = "eu2";
/// Connections to each pool: of 24 hardly all have their home elsewhere.
const CONNECTIONS: usize = 24;
/// A client repeats its SYN after 1, 3, 7 and 15 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// The accept queue of one backend is full: its kernel drops SYNs. Their repeats go to another backend as soon as checks have
/// noticed, in the pool with a capacity, where the first SYN has a cell, and in the control without one.
pub(crate) fn with_a_capacity(sandbox: &Sandbox) -> Result<()> {
    // So slow that clients ask the server before checks have noticed, also on a busy machine.
    let health = Health { interval_ms: 2000, fall: 3 };
    let mut fixture = Fixture::start(sandbox, "hung", health)?;
    let text = configuration(&fixture.fabric, health).text();
    let pool = "health_checks = [\"page\"]\n";
    ensure!(text.contains(pool), "{text}");
    let more = format!("{pool}[[pool.group]]\nregion = \"eu\"\ncapacity = \"1000/s\"\n");
    // The pool of IPv4 comes first.
    fixture.balancer.apply(&text.replacen(pool, &more, 1))?;
    fixture.wait_up(&[])?;

    let victim = fixture.number(VICTIM)?;
    fixture.servers[victim].kill()?;
    let _full = FullQueue::new(&fixture.fabric.backends[victim].node, HTTP)?;
    let client = &fixture.fabric.client;
    let [limited, control] = thread::scope(|scope| {
        [Tunnel::Ipip, Tunnel::Ip6Ip6]
            .map(|tunnel| scope.spawn(move || connect(client, tunnel)))
            .map(|all| all.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    for (name, took) in [("with a capacity", limited?), ("without", control?)] {
        let slowest = took.iter().max().copied().unwrap_or_default();
        harness::note(format!("{name}: the slowest took {:.1} s", slowest.as_secs_f64()));
        // Without a repeat nobody had asked the one that hangs.
        ensure!(slowest > Duration::from_millis(900), "{name}: {took:?}");
    }
    Ok(())
}

/// How long connections took that were begun at the same time.
fn connect(client: &Node, tunnel: Tunnel) -> Result<Vec<Duration>> {
    let one = || -> Result<Duration> {
        let begun = Instant::now();
        let to = tunnel.endpoint(HTTP);
        let made = client.enter(|| TcpStream::connect_timeout(&to, PATIENCE))?;
        made.with_context(|| format!("{tunnel:?}, after {:?}", begun.elapsed()))?;
        Ok(begun.elapsed())
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(one)).collect();
        let join = |one: thread::ScopedJoinHandle<'_, Result<Duration>>| {
            one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        all.into_iter().map(join).collect()
    })
}
