//! The setup: a client, one web server, and between them a balancer and proxies beside each other.
//!
//! ```text
//!           ┌── slow ──┐          ┌─ balancer ─┐ ┌─ proxies ─┐
//!  client ──┤          ├── router ┴────────────┴─┴───────────┴──┬──────────┬── server
//!           └──────────┘                                         └── slow ──┘
//! ```
//! A long way is beside the short one; routes tell which is taken.

use std::{
    fs::File,
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result};
use lb_tests::{
    daemon::{Balancer, Check, Document, Member, Pool, Receiver, Service},
    process::{PATIENCE, Running, until},
    topology::{Backend, Fabric, Node, REGIONS, SlowLink},
    traffic::{Front, Nginx, NginxProxy, UPLOAD_PORT, UploadServer, haproxy, nginx_stream},
};

use super::{Distance, ROUND_TRIP, Way};
use crate::shared::{Environment, Screen, balancer, natives, receivers};

/// The file that is downloaded.
pub(crate) const FILE: &str = "/files/download";
/// Its size, bytes.
const FILE_SIZE: u64 = 1 << 30;
/// Largest IP packet on the slow link behind the router: a client's with a tunnel's header.
const BEHIND_MTU: u32 = 1600;
const BEFORE_MTU: u32 = 1500;
/// Ends of slow links at the router and beyond it.
const BEFORE: [&str; 2] = ["198.18.1.1", "198.18.1.2"];
const BEHIND: [&str; 2] = ["198.18.2.1", "198.18.2.2"];
/// The far end's address in the server's subnet.
const FAR_GATEWAY: &str = "10.1.0.2";

/// Everything that plays.
#[derive(Debug)]
pub(crate) struct Site {
    _slow: [SlowLink; 2],
    _server: Nginx,
    _uploads: UploadServer,
    _proxies: (Vec<Running>, NginxProxy),
    _receivers: Vec<Receiver>,
    _balancer: Balancer,
    pub(crate) fabric: Fabric,
}

impl Site {
    pub(crate) fn new(environment: &Environment, screen: &mut Screen) -> Result<Self> {
        screen.heading("The setup");
        let mut fabric = Fabric::with_regions(&environment.sandbox, "profile", 1, 1)?;
        let mut arm = |way, name| fabric.add_arm(name, number(way), vip(way));
        let arms = [
            arm(Way::NginxStream, "nginx-stream")?,
            arm(Way::Haproxy, "haproxy")?,
            arm(Way::NginxHttp, "nginx-http")?,
        ];
        fabric.add_hop("hop", number(Way::Hop), vip(Way::Hop))?;
        fabric.backends[0].add_vip(vip(Way::Hop).into())?;
        let slow = slow_links(&mut fabric)?;
        fabric.net.ready()?;
        make_room(&fabric, &arms)?;
        screen.done("network: a client, a router, one server; on arms of the router the balancer, three proxies, and a node that only forwards");
        screen.done("a long way beside the short one, before the router and behind it");
        let server = Nginx::start_with_keepalive(&fabric.backends[0].node)?;
        let file = server.files().join("download");
        File::create(&file)?.set_len(FILE_SIZE).context("the file to download")?;
        let uploads = UploadServer::start([&fabric.backends[0].node])?;
        let proxies = proxies(&fabric, &arms)?;
        screen.done("nginx as the server; before it nginx (stream), haproxy (TCP) and nginx (HTTP, connections kept)");
        let receivers = receivers(environment, &fabric, screen)?;
        let balancer = balancer(environment, &fabric, screen)?;
        natives(&fabric, screen)?;
        let document = document(&fabric.backends[0]).text();
        environment.write("web.toml", &document)?;
        screen.command("balancer", "spillway apply -f web.toml");
        screen.quote(&balancer.apply(&document)?);
        balancer.wait_up(&[fabric.backends[0].v4.into()], PATIENCE)?;
        let site = Self {
            _slow: slow,
            _server: server,
            _uploads: uploads,
            _proxies: proxies,
            _receivers: receivers,
            _balancer: balancer,
            fabric,
        };
        site.put(Distance::Near)?;
        screen.done("each way leads to the server");
        Ok(site)
    }

    pub(crate) fn client(&self) -> &Node {
        &self.fabric.client
    }

    /// What a client connects to.
    pub(crate) fn address(&self, way: Way) -> Ipv4Addr {
        if way == Way::Direct { self.fabric.backends[0].v4 } else { vip(way) }
    }

    /// Has traffic take a long way, or none.
    pub(crate) fn put(&self, distance: Distance) -> Result<()> {
        let Fabric { client, router, backends, .. } = &self.fabric;
        let Backend { node: server, v4, .. } = &backends[0];
        let is_far = distance == Distance::FarClient;
        let before = if is_far { BEFORE[0] } else { "198.51.100.1" };
        client.ip(&format!("route replace default via {before}"))?;
        let is_far = distance == Distance::FarServer;
        let behind = if is_far { FAR_GATEWAY } else { "10.1.0.1" };
        server.ip(&format!("route replace default via {behind}"))?;
        let to_server =
            if is_far { format!("via {}", BEHIND[1]) } else { format!("dev {}", REGIONS[0]) };
        let by_hop = if is_far { BEHIND[1].to_owned() } else { v4.to_string() };
        router.ip(&format!(
            "route replace {v4}/32 {to_server}\nroute replace {} via {by_hop} table {}",
            vip(Way::Hop),
            number(Way::Hop)
        ))?;
        // Neighbours are looked for before the first packet that is measured.
        self.wait_until_ready()
    }

    fn wait_until_ready(&self) -> Result<()> {
        for way in Way::ALL {
            for port in [80].into_iter().chain(way.is_l4().then_some(UPLOAD_PORT)) {
                let to = (self.address(way), port).into();
                until(&format!("{}: a connection to {to}", way.name()), PATIENCE, || {
                    let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(1));
                    Ok(self.client().enter(connect)?.ok().map(drop))
                })?;
            }
        }
        Ok(())
    }
}

/// The address of a way that is not the server's own.
fn vip(way: Way) -> Ipv4Addr {
    Ipv4Addr::new(203, 0, 113, number(way))
}

/// The last part of it, which also tells the subnet of what has an arm of its own.
const fn number(way: Way) -> u8 {
    match way {
        Way::Direct | Way::Spillway => Fabric::VIP_V4.octets()[3],
        Way::Hop => 14,
        Way::NginxStream => 11,
        Way::Haproxy => 12,
        Way::NginxHttp => 13,
    }
}

/// A long way from the client to the router, and one from the router to the server's switch.
fn slow_links(fabric: &mut Fabric) -> Result<[SlowLink; 2]> {
    let (net, router) = (&mut fabric.net, &fabric.router);
    let one_way = ROUND_TRIP / 2;
    let ends = [(router, "far-client"), (&fabric.client, "far")];
    let before = net.slow_link(1, ends, BEFORE_MTU, one_way)?;
    router.ip(&format!("address add {}/24 dev far-client", BEFORE[0]))?;
    fabric.client.ip(&format!("address add {}/24 dev far", BEFORE[1]))?;

    let gateway = net.node("gateway")?;
    net.link(&gateway, "eth0", router, "gateway", BEHIND_MTU)?;
    router.ip(&format!("link set gateway master {}", REGIONS[0]))?;
    gateway.ip(&format!("address add {FAR_GATEWAY}/24 dev eth0"))?;
    let behind =
        net.slow_link(2, [(router, "far-server"), (&gateway, "far")], BEHIND_MTU, one_way)?;
    router.ip(&format!("address add {}/24 dev far-server", BEHIND[0]))?;
    gateway.ip(&format!(
        "address add {}/24 dev far\nroute add default via {}\nroute add {} via {}",
        BEHIND[1],
        BEHIND[0],
        vip(Way::Hop),
        fabric.backends[0].v4
    ))?;
    gateway.sysctls(&[("net.ipv4.ip_forward", "1")])?;
    Ok([before, behind])
}

/// Windows for a long way, and ports for many connections.
fn make_room(fabric: &Fabric, arms: &[Node]) -> Result<()> {
    for node in [&fabric.client, &fabric.backends[0].node].into_iter().chain(arms) {
        node.sysctls(&[
            ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
            ("net.ipv4.tcp_wmem", "4096 131072 67108864"),
            ("net.ipv4.ip_local_port_range", "1024 65535"),
        ])?;
    }
    Ok(())
}

fn proxies(fabric: &Fabric, arms: &[Node; 3]) -> Result<(Vec<Running>, NginxProxy)> {
    let [stream, tcp, http] = arms;
    let backends = [fabric.backends[0].v4];
    let front = |way| Front { vip: vip(way), ports: &[80, UPLOAD_PORT], backends: &backends };
    let l4 = vec![
        nginx_stream(stream, &front(Way::NginxStream)).context("nginx, stream")?,
        haproxy(tcp, &front(Way::Haproxy)).context("haproxy")?,
    ];
    http.ip(&format!("address add {}/32 dev lo", vip(Way::NginxHttp)))?;
    Ok((l4, NginxProxy::start_with_kept_upstream(http, &backends).context("nginx, HTTP")?))
}

fn document(backend: &Backend) -> Document {
    let service = |name: &str, port| Service {
        name: name.into(),
        address: Fabric::VIP_V4.into(),
        port,
        protocol: "tcp",
        pool: "web".into(),
    };
    Document {
        hash_key: None,
        regions: vec![REGIONS[0].into()],
        checks: vec![Check {
            name: "page".into(),
            path: Some("/healthz".into()),
            port: 80,
            interval_ms: 1000,
            fall: 3,
            is_tunnelled: false,
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["page".into()],
            members: vec![Member {
                address: backend.v4.into(),
                region: REGIONS[0].into(),
                weight: 1,
            }],
        }],
        services: vec![service("web", 80), service("upload", UPLOAD_PORT)],
    }
}
