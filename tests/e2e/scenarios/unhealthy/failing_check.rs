//! While a host is reachable, a failing check moves no open connection.

use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Node;
use lb_tests::traffic::{Requests, Stream, ensure_answered};
use socket2::{Domain, Socket, Type};
use spillway_proto::v1::BackendState;

use super::wait_for;

const VICTIM: &str = "eu2";

/// Long connections, byte-checked, through three ways of failing and a restart of the daemon.
pub(crate) fn fails_and_recovers(sandbox: &Sandbox) -> Result<()> {
    let health = Health { interval_ms: 500, fall: 3 };
    let mut fixture = Fixture::start(sandbox, "living", health)?;
    let client = fixture.fabric.client.clone();
    let victim = fixture.number(VICTIM)?;
    let mut streams = Vec::new();
    for (seed, tunnel) in (0..).zip([Tunnel::Ipip, Tunnel::Ip6Ip6].into_iter().cycle().take(48)) {
        streams.push(Stream::open(&client, tunnel.endpoint(ECHO), seed)?);
    }
    let on_victim = streams.iter().filter(|stream| stream.backend() == VICTIM).count();
    ensure!((6..=40).contains(&on_victim), "{on_victim} of 48 streams are on {VICTIM}");
    let requests =
        Requests::start(&client, Tunnel::Ipip.endpoint(HTTP), 4, Duration::from_millis(5));

    let mut stretches = Vec::new();
    let mut stretch = |fixture: &Fixture, words: &str| -> Result<()> {
        wait_for(fixture, VICTIM, BackendState::Unhealthy, words)?;
        let from = Instant::now();
        requests.wait_for(100)?;
        Stream::all_go_on(&streams)?;
        stretches.push((words.to_owned(), from, Instant::now()));
        Ok(())
    };

    fixture.servers[victim].be_sick(true)?;
    stretch(&fixture, "status 500")?;
    fixture.servers[victim].be_sick(false)?;
    fixture.wait_up(&[])?;

    fixture.servers[victim].kill()?;
    stretch(&fixture, "connection refused")?;
    fixture.balancer.kill()?;
    fixture.balancer.start()?;
    stretch(&fixture, "connection refused")?;

    let full = FullQueue::new(&fixture.fabric.backends[victim].node, HTTP)?;
    stretch(&fixture, "no connection within 500 ms, but the host answers on another port")?;
    drop(full);
    fixture.servers[victim].restart()?;
    fixture.wait_up(&[])?;
    let back = Instant::now();
    requests.wait_for(200)?;
    Stream::all_go_on(&streams)?;

    let attempts = requests.finish()?;
    for (words, from, to) in stretches {
        ensure_answered(&attempts, from, to, &[VICTIM]).context(words)?;
    }
    ensure_answered(&attempts, back, Instant::now(), &[]).context("it is back")?;
    let after = attempts.iter().filter(|attempt| attempt.at >= back);
    let by_victim = after.filter(|a| a.answer.as_deref().is_ok_and(|name| name == VICTIM)).count();
    ensure!(by_victim > 0, "{VICTIM} answers nothing after its return");
    Stream::finish_all(streams)
}

/// A listener that nobody accepts from, and what fills its queue: further SYNs are dropped.
pub(super) struct FullQueue {
    _listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl FullQueue {
    pub(super) fn new(node: &Node, port: u16) -> Result<Self> {
        node.enter(|| {
            let socket = Socket::new(Domain::IPV6, Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
            socket.listen(1)?;
            let to = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
            let mut queued = Vec::new();
            // On loopback there is an answer at once, or none.
            while let Ok(stream) = TcpStream::connect_timeout(&to, Duration::from_millis(500)) {
                queued.push(stream);
                ensure!(queued.len() < 10, "the queue has no end");
            }
            Ok(Self { _listener: socket.into(), _queued: queued })
        })?
    }
}
