//! Each kind of reply shows that a host is reachable, with the others barred; without any it is unreachable.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use lb_base::{
    heartbeat::Heartbeat,
    queue::{QueueCounters, Receiver, bounded},
};
use lb_health::{Health, HealthChange, Prober, Target, Tunnels};
use lb_model::{CheckKind, Encapsulation, HealthCheck, Name, Via, plan::Sources};
use lb_tests::{
    process::PATIENCE,
    sandbox::Sandbox,
    topology::{Node, Topology},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    time::timeout,
};

/// Interval and timeout of checks.
const TIMEOUT_MS: u64 = 800;

/// Longest wait for what must come.
const LIMIT: Duration = PATIENCE;

/// The prober in `a`, the host `b` beyond a switch. `b` drops what it would answer from the port that
/// is checked, then all that is TCP, then all that is IP; then it is gone.
pub(crate) fn each_alone(sandbox: &Sandbox) -> Result<()> {
    let mut net = Topology::new(sandbox, "ways")?;
    let (a, b, switch) = (net.node("a")?, net.node("b")?, net.node("switch")?);
    net.link(&a, "eth0", &switch, "port-a", 1500)?;
    net.link(&b, "eth0", &switch, "port-b", 1500)?;
    switch.ip(
        "link add bridge0 type bridge\nlink set port-a master bridge0\nlink set port-b master bridge0\nlink set bridge0 up",
    )?;
    a.ip("address add 192.0.2.1/24 dev eth0\naddress add 2001:db8::1/64 dev eth0 nodad")?;
    b.ip("address add 192.0.2.2/24 dev eth0\naddress add 2001:db8::2/64 dev eth0 nodad")?;
    a.sysctls(&[("net.ipv4.ping_group_range", "0 0")])?;
    net.ready()?;
    one_family((&a, &b, &switch), "-4", "192.0.2.1", "192.0.2.2".parse()?).context("IPv4")?;
    one_family((&a, &b, &switch), "-6", "2001:db8::1", "2001:db8::2".parse()?).context("IPv6")
}

fn one_family(
    (a, b, switch): (&Node, &Node, &Node),
    family: &str,
    asker: &str,
    host: IpAddr,
) -> Result<()> {
    let rule = |what: &str, more: &str| {
        let line = format!("{family} rule {what} to {asker} {more} blackhole");
        b.run("ip", line.split_whitespace()).map(drop)
    };
    // Nobody listens: the check itself is answered.
    Probing::start(a, host)?.expect(Health::Failing, "connection refused")?;
    let barred = [
        ("ipproto tcp sport 80", "answers on another port"),
        ("ipproto tcp", "answers echo requests"),
        ("", "answers for its address on the link"),
    ];
    for (what, sign) in barred {
        rule("add", what)?;
        let words = format!("no connection within {TIMEOUT_MS} ms, but the host {sign}");
        Probing::start(a, host)?.expect(Health::Failing, &words)?;
    }
    let mut probing = Probing::start(a, host)?;
    probing.expect(Health::Failing, "answers for its address on the link")?;
    switch.ip("link set port-b nomaster")?;
    // Three such checks in a row; a single one proves nothing.
    probing.expect(Health::Failing, "and the host is silent")?;
    probing.expect(Health::Silent, "and the host is silent")?;
    switch.ip("link set port-b master bridge0")?;
    probing.expect(Health::Failing, "but the host")?;
    for (what, _) in barred {
        rule("del", what)?;
    }
    Ok(())
}

/// A prober of one host in a node.
struct Probing {
    _targets: watch::Sender<Arc<Vec<Target>>>,
    changes: Receiver<HealthChange>,
    runtime: Runtime,
}

impl Probing {
    fn start(node: &Node, host: IpAddr) -> Result<Self> {
        let check = HealthCheck {
            kind: CheckKind::Tcp,
            tls: None,
            via: Via::Address,
            port: 80,
            interval: Duration::from_millis(TIMEOUT_MS),
            fast_interval: Duration::from_millis(TIMEOUT_MS),
            timeout: Duration::from_millis(TIMEOUT_MS),
            rise: 2,
            fall: 3,
            jitter_percent: 0,
        };
        let name = |text| Name::new(text).context("name");
        let target = Target {
            pool: name("web")?,
            address: host,
            checks: vec![(name("open")?, check)],
            vips: BTreeSet::new(),
            encapsulation: Encapsulation::IpInIp,
            urgent: true,
        };
        let (targets, wanted) = watch::channel(Arc::new(vec![target]));
        let (told, changes) = bounded(64, &QueueCounters::default());
        let runtime = node.enter(|| -> Result<_> {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            let entered = runtime.enter();
            Prober::spawn(
                wanted,
                told,
                Heartbeat::unwatched(Duration::from_secs(1)),
                lb_health::Counters::default(),
                Tunnels::new(Sources::default(), lb_daemon::attach_tunnel_program),
            );
            drop(entered);
            Ok(runtime)
        })??;
        Ok(Self { _targets: targets, changes, runtime })
    }

    fn next(&mut self) -> Result<HealthChange> {
        let change = self.runtime.block_on(async { timeout(LIMIT, self.changes.recv()).await });
        change.context("nothing was told")?.context("the prober has ended")
    }

    /// This is told, after nothing worse than other reasons to fail: which of several signs comes
    /// first is up to the machine.
    fn expect(&mut self, health: Health, words: &str) -> Result<()> {
        loop {
            let change = self.next()?;
            if change.health == health && change.reason.contains(words) {
                return Ok(());
            }
            ensure!(change.health == Health::Failing, "{change:?}, expected {health:?}: {words}");
        }
    }
}
