//! Each way to ask a silent host finds it by its own kind of reply, with the others barred, and sends nothing else.

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use lb_base::{
    heartbeat::Heartbeat,
    queue::{QueueCounters, Receiver, bounded},
};
use lb_health::{Health, HealthChange, Prober, Streaks, Target, Tunnels};
use lb_model::{CheckKind, Encapsulation, HealthCheck, HostProbe, Name, Via};
use lb_net::SourceRules;
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

/// The port that hosts are asked at.
const PORT: u16 = 9;

const ON_PORT: &str = "but the host answers on another port";
const ECHO: &str = "but the host answers echo requests";
const ON_LINK: &str = "but the host answers for its address on the link";
const SILENT: &str = "and the host is silent";

/// Which groups may send echo requests.
const PING_GROUPS: &str = "net.ipv4.ping_group_range";

/// The prober in `a`, the host `near` beyond a switch, and `far` beyond a router at that switch. Hosts drop what they would
/// answer from the port that is checked.
struct Network {
    _topology: Topology,
    a: Node,
    near: Node,
    far: Node,
    switch: Node,
}

/// A host, and the address of the prober that it answers.
struct Host<'a> {
    node: &'a Node,
    family: &'static str,
    asker: &'static str,
    address: IpAddr,
}

impl Network {
    fn new(sandbox: &Sandbox) -> Result<Self> {
        let mut net = Topology::new(sandbox, "ways")?;
        let (a, near, switch) = (net.node("a")?, net.node("near")?, net.node("switch")?);
        let (router, far) = (net.node("router")?, net.node("far")?);
        net.link(&a, "eth0", &switch, "port-a", 1500)?;
        net.link(&near, "eth0", &switch, "port-near", 1500)?;
        net.link(&router, "eth0", &switch, "port-router", 1500)?;
        net.link(&router, "eth1", &far, "eth0", 1500)?;
        switch.ip(
            "link add bridge0 type bridge\nlink set port-a master bridge0\nlink set port-near master bridge0\n\
             link set port-router master bridge0\nlink set bridge0 up",
        )?;
        a.ip("address add 192.0.2.1/24 dev eth0\naddress add 2001:db8::1/64 dev eth0 nodad")?;
        near.ip("address add 192.0.2.2/24 dev eth0\naddress add 2001:db8::2/64 dev eth0 nodad")?;
        router
            .ip("address add 192.0.2.3/24 dev eth0\naddress add 2001:db8::3/64 dev eth0 nodad\n\
             address add 198.51.100.3/24 dev eth1\naddress add 2001:db8:1::3/64 dev eth1 nodad")?;
        far.ip(
            "address add 198.51.100.4/24 dev eth0\naddress add 2001:db8:1::4/64 dev eth0 nodad",
        )?;
        a.sysctls(&[(PING_GROUPS, "0 0")])?;
        router.sysctls(&[("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")])?;
        net.ready()?;
        a.ip("route add 198.51.100.0/24 via 192.0.2.3\nroute add 2001:db8:1::/64 via 2001:db8::3")?;
        far.ip("route add default via 198.51.100.3\nroute add default via 2001:db8:1::3")?;
        Ok(Self { _topology: net, a, near, far, switch })
    }

    fn hosts<'a>(&self, node: &'a Node, v4: &str, v6: &str) -> Result<[Host<'a>; 2]> {
        let host = |family, asker, address: &str| -> Result<Host<'a>> {
            Ok(Host { node, family, asker, address: address.parse()? })
        };
        Ok([host("-4", "192.0.2.1", v4)?, host("-6", "2001:db8::1", v6)?])
    }

    fn probing(&self, host: &Host<'_>, how: HostProbe) -> Result<Probing> {
        Probing::start(&self.a, host.address, how)
    }

    /// Each of these ways to ask a host is answered so.
    fn expect(&self, host: &Host<'_>, expected: &[(HostProbe, &str)]) -> Result<()> {
        for (how, words) in expected {
            let words = format!("no connection within {TIMEOUT_MS} ms, {words}");
            let mut probing = self.probing(host, *how)?;
            probing.expect(Health::Failing, &words).with_context(|| format!("{how:?}"))?;
        }
        Ok(())
    }
}

impl Host<'_> {
    /// Drops its answers of a kind, or no longer.
    fn bar(&self, verb: &str, what: &str) -> Result<()> {
        let Self { node, family, asker, .. } = self;
        let line = format!("{family} rule {verb} to {asker} {what} blackhole");
        node.run("ip", line.split_whitespace()).map(drop)
    }

    /// A listener at the port that hosts are asked at, so that connections to it can be counted.
    fn listen(&self) -> Result<TcpListener> {
        let listener = self.node.enter(|| TcpListener::bind((self.address, PORT)))??;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Echo requests that came to it so far.
    fn echo_requests(&self) -> Result<u64> {
        let is_v4 = self.address.is_ipv4();
        let file = if is_v4 { "snmp" } else { "snmp6" };
        let text =
            self.node.enter(|| fs::read_to_string(format!("/proc/thread-self/net/{file}")))??;
        let count = if is_v4 {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix("Icmp: "));
            let (names, counts) = (lines.next().context("names")?, lines.next().context("counts")?);
            let mut fields = names.split(' ').zip(counts.split(' '));
            fields.find(|(name, _)| *name == "InEchos").map(|(_, count)| count)
        } else {
            let mut lines = text.lines().map(str::split_whitespace);
            lines.find_map(|mut words| {
                (words.next() == Some("Icmp6InEchos")).then(|| words.next())?
            })
        };
        Ok(count.context("no count of echo requests")?.parse()?)
    }
}

/// Connections since this was last asked.
fn connections(listener: &TcpListener) -> usize {
    std::iter::from_fn(|| listener.accept().ok()).count()
}

/// On the balancer's own link `auto` asks below IP alone, and no way but `tcp` connects to another port.
pub(crate) fn on_the_link(sandbox: &Sandbox) -> Result<()> {
    use HostProbe::{Auto, Icmp, Neighbour, Tcp};
    let net = Network::new(sandbox)?;
    for host in net.hosts(&net.near, "192.0.2.2", "2001:db8::2")? {
        // Nobody listens: the check itself is answered.
        net.probing(&host, Auto)?.expect(Health::Failing, "connection refused")?;
        host.bar("add", "ipproto tcp sport 80")?;
        let listener = host.listen()?;
        let before = host.echo_requests()?;
        net.expect(&host, &[(Auto, ON_LINK), (Neighbour, ON_LINK)])?;
        ensure!(host.echo_requests()? == before, "an echo request where ARP or NDP is enough");
        net.expect(&host, &[(Icmp, ECHO)])?;
        ensure!(host.echo_requests()? > before, "no echo request");
        ensure!(connections(&listener) == 0, "a connection without being asked to");
        net.probing(&host, Tcp)?.expect(Health::Failing, "but the host answers")?;
        ensure!(connections(&listener) > 0, "no connection");
        host.bar("add", "")?;
        // No firewall bars ARP and NDP.
        net.expect(&host, &[(Auto, ON_LINK), (Tcp, ON_LINK)])?;
        net.probing(&host, Icmp)?.expect(Health::Silent, SILENT)?;

        let mut probing = net.probing(&host, Auto)?;
        probing.expect(Health::Failing, ON_LINK)?;
        net.switch.ip("link set port-near nomaster")?;
        // Three such checks in a row; a single one proves nothing.
        probing.expect(Health::Failing, SILENT)?;
        probing.expect(Health::Silent, SILENT)?;
        net.switch.ip("link set port-near master bridge0")?;
        probing.expect(Health::Failing, "but the host")?;
        host.bar("del", "")?;
        host.bar("del", "ipproto tcp sport 80")?;
    }
    Ok(())
}

/// Behind a router `auto` sends echo requests. A host that filters them is found by `tcp`, and by `auto` if echo requests are
/// not permitted.
pub(crate) fn behind_a_router(sandbox: &Sandbox) -> Result<()> {
    use HostProbe::{Auto, Icmp, Neighbour, Tcp};
    let net = Network::new(sandbox)?;
    for host in net.hosts(&net.far, "198.51.100.4", "2001:db8:1::4")? {
        host.bar("add", "ipproto tcp sport 80")?;
        let listener = host.listen()?;
        net.expect(&host, &[(Auto, ECHO), (Icmp, ECHO)])?;
        net.probing(&host, Neighbour)?.expect(Health::Silent, SILENT)?;

        let icmp = if host.family == "-4" { "ipproto icmp" } else { "ipproto ipv6-icmp" };
        host.bar("add", icmp)?;
        net.probing(&host, Auto)?.expect(Health::Silent, SILENT)?;
        ensure!(connections(&listener) == 0, "a connection without being asked to");
        net.expect(&host, &[(Tcp, ON_PORT)])?;
        ensure!(connections(&listener) > 0, "no connection");
        drop(listener);
        // A refusal is an answer too.
        net.expect(&host, &[(Tcp, ON_PORT)])?;
        net.a.sysctls(&[(PING_GROUPS, "1 0")])?;
        net.expect(&host, &[(Auto, ON_PORT)])?;
        net.probing(&host, Icmp)?.expect(Health::Silent, SILENT)?;
        net.a.sysctls(&[(PING_GROUPS, "0 0")])?;
        host.bar("del", icmp)?;
        host.bar("del", "ipproto tcp sport 80")?;
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
    fn start(node: &Node, host: IpAddr, host_probe: HostProbe) -> Result<Self> {
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
            host_probe,
            host_probe_port: PORT,
        };
        let name = |text| Name::new(text).context("name");
        let target = Target {
            pool: name("web")?,
            address: host,
            checks: vec![(name("open")?, check)],
            vips: BTreeSet::new(),
            encapsulation: Encapsulation::IpInIp,
            urgent: true,
            is_up: false,
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
                Tunnels::new(SourceRules::default(), lb_daemon::attach_tunnel_program),
                Streaks::default(),
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
            if change.health == health && change.reason.text.contains(words) {
                return Ok(());
            }
            ensure!(change.health == Health::Failing, "{change:?}, expected {health:?}: {words}");
        }
    }
}
