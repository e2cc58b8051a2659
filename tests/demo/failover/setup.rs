//! The setup: three nodes, a proxy, a balancer, and a network that reports no lost host.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use lb_tests::daemon::{Balancer, Check, Document, Member, Pool, Receiver, Service};
use lb_tests::topology::{Backend, Fabric, Node, REGIONS};
use lb_tests::traffic::{Nginx, NginxProxy};

use super::{CHECK, NGINX, Options};
use crate::shared::{Environment, Screen, balancer, natives, receivers};

/// Address of the proxy, in a network of its own.
const PROXY: &str = "10.3.0.2";
const PROXY_GATEWAY: &str = "10.3.0.1";

/// Everything that plays.
#[derive(Debug)]
pub(crate) struct Setup {
    _nodes: Vec<Nginx>,
    _receivers: Vec<Receiver>,
    _proxy: NginxProxy,
    pub(crate) balancer: Balancer,
    pub(crate) fabric: Fabric,
}

impl Setup {
    pub(crate) fn set(
        environment: &Environment,
        options: &Options,
        screen: &mut Screen,
    ) -> Result<Self> {
        screen.heading("The setup");
        let mut fabric = Fabric::new(&environment.sandbox, "failover", 3)?;
        // The experiment has three nodes in one place.
        fabric.backends.retain(|backend| backend.region == REGIONS[0]);
        screen.done("network: a client, a router, a proxy, a balancer, three nodes");
        silence(&fabric)?;
        screen.done("a network that keeps silent: nobody is told that a host is unreachable");
        let nodes = fabric.backends.iter().map(|backend| Nginx::start(&backend.node));
        let nodes = nodes.collect::<Result<_>>()?;
        screen.done("nginx on every node, with a page that names the node");
        let proxy = proxy(&mut fabric, options, screen)?;
        let receivers = receivers(environment, &fabric, screen)?;
        let balancer = balancer(environment, &fabric, screen)?;
        natives(&fabric, screen)?;
        let document = document(&fabric, options).text();
        environment.write("web.toml", &document)?;
        screen.command("balancer", "spillway apply -f web.toml");
        screen.quote(&balancer.apply(&document)?);
        let all: Vec<IpAddr> = fabric.backends.iter().map(|b| b.v4.into()).collect();
        balancer.wait_up(&all, Duration::from_secs(10))?;
        screen.done("every node has passed its first check");
        Ok(Self { _nodes: nodes, _receivers: receivers, _proxy: proxy, balancer, fabric })
    }

    /// What a client asks for at the proxy.
    pub(crate) fn proxied() -> String {
        format!("http://{PROXY}/")
    }

    /// What a client asks for at the VIP.
    pub(crate) fn balanced() -> String {
        format!("http://{}/", Fabric::VIP_V4)
    }
}

/// The network knows where each node belongs whether it is there or not, as a cloud's does. A router
/// that asks by ARP would tell senders after three seconds that the host is unreachable.
fn silence(fabric: &Fabric) -> Result<()> {
    for Backend { node, v4, region, .. } in &fabric.backends {
        let link = node.ip_json("link show dev eth0")?;
        let mac = link[0]["address"].as_str().context("eth0 has no address")?;
        fabric
            .router
            .ip(&format!("neighbour replace {v4} lladdr {mac} dev {region} nud permanent"))?;
    }
    Ok(())
}

fn proxy(fabric: &mut Fabric, options: &Options, screen: &mut Screen) -> Result<NginxProxy> {
    let node: Node = fabric.net.node("proxy")?;
    fabric.net.link(&node, "eth0", &fabric.router, "proxy", 1500)?;
    fabric.router.ip(&format!("address add {PROXY_GATEWAY}/24 dev proxy"))?;
    node.ip(&format!("address add {PROXY}/24 dev eth0\nroute add default via {PROXY_GATEWAY}"))?;
    fabric.net.ready()?;
    let nodes: Vec<_> = fabric.backends.iter().map(|backend| backend.v4).collect();
    let (connect, pause) = NGINX;
    let times = (options.scale < 1.0).then(|| (options.scaled(connect), options.scaled(pause)));
    let proxy = NginxProxy::start(&node, &nodes, times)?;
    screen.done(&match times {
        None => "nginx as a reverse proxy before them, with its own defaults".to_owned(),
        Some((connect, pause)) => format!(
            "nginx as a reverse proxy before them; scaled: proxy_connect_timeout {connect:?} for \
             60 s, fail_timeout {pause:?} for 10 s"
        ),
    });
    Ok(proxy)
}

fn document(fabric: &Fabric, options: &Options) -> Document {
    let (interval, fall) = CHECK;
    let interval_ms = options.scaled(interval).as_millis() as u32;
    let member = |backend: &Backend| Member {
        address: backend.v4.into(),
        region: backend.region.into(),
        weight: 1,
    };
    Document {
        regions: vec![REGIONS[0].into()],
        checks: vec![Check {
            name: "page".into(),
            path: Some("/healthz".into()),
            port: 80,
            interval_ms,
            fall,
            is_tunnelled: false,
        }],
        pools: vec![Pool {
            name: "web".into(),
            checks: vec!["page".into()],
            members: fabric.backends.iter().map(member).collect(),
        }],
        services: vec![Service {
            name: "web".into(),
            address: Fabric::VIP_V4.into(),
            port: 80,
            protocol: "tcp",
            pool: "web".into(),
        }],
        ..Document::default()
    }
}
