//! A whole service at work on the standard network: what most scenarios begin with.
//!
//! Four VIPs lead to the same backends, one through each form of tunnel, and each has nginx on port
//! 80 and an [`Echo`] on port 7, TCP and UDP. All flows are hashed by one fixed key, so a scenario
//! that passes once passes each time.

mod configuration;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context as _, Result};

pub use configuration::{HASH_KEY, Health, configuration};

use crate::daemon::{Balancer, Binaries, Receiver};
use crate::process::PATIENCE;
use crate::sandbox::Sandbox;
use crate::topology::{Backend, Fabric, REGIONS};
use crate::traffic::{Echo, Nginx};

/// The port of nginx.
pub const HTTP: u16 = 80;
/// The port of the echo.
pub const ECHO: u16 = 7;

/// A VIP, told by the tunnel that leads from it to the backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// IPv4 in IPv4.
    Ipip,
    /// IPv6 in IPv6.
    Ip6Ip6,
    /// IPv4 in IPv6.
    Ip4In6,
    /// IPv6 in IPv4.
    Ip6In4,
}

impl Tunnel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ipip, Self::Ip6Ip6, Self::Ip4In6, Self::Ip6In4];

    /// The VIP.
    pub const fn vip(self) -> IpAddr {
        match self {
            Self::Ipip => IpAddr::V4(Fabric::VIP_V4),
            Self::Ip6Ip6 => IpAddr::V6(Fabric::VIP_V6),
            Self::Ip4In6 => IpAddr::V4(Ipv4Addr::new(203, 0, 113, 2)),
            Self::Ip6In4 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 2)),
        }
    }

    /// Whether its outer header is IPv4.
    pub const fn is_outer_v4(self) -> bool {
        matches!(self, Self::Ipip | Self::Ip6In4)
    }

    /// The address that it ends at on a backend.
    pub fn end(self, backend: &Backend) -> IpAddr {
        if self.is_outer_v4() { backend.v4.into() } else { backend.v6.into() }
    }

    /// The pool with those addresses.
    pub const fn pool(self) -> &'static str {
        if self.is_outer_v4() { "v4" } else { "v6" }
    }

    /// Its name in services.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipip => "ipip",
            Self::Ip6Ip6 => "ip6ip6",
            Self::Ip4In6 => "ip4in6",
            Self::Ip6In4 => "ip6in4",
        }
    }

    /// The VIP with a port.
    pub const fn endpoint(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.vip(), port)
    }

    /// The page that names the backend.
    pub fn url(self) -> String {
        format!("http://{}/", self.endpoint(HTTP)).replace(":80/", "/")
    }

    /// tshark's filter for frames in this tunnel to the VIP.
    pub fn filter(self) -> String {
        let vip = self.vip();
        match self {
            Self::Ipip => format!("ip.proto == 4 && ip.dst == {vip}"),
            Self::Ip6Ip6 => format!("ipv6.nxt == 41 && ipv6.dst == {vip}"),
            Self::Ip4In6 => format!("ipv6.nxt == 4 && ip.dst == {vip}"),
            Self::Ip6In4 => format!("ip.proto == 41 && ipv6.dst == {vip}"),
        }
    }
}

/// The standard network with everything running in it.
#[derive(Debug)]
pub struct Scene {
    /// One for each backend, in their order.
    pub servers: Vec<Nginx>,
    /// One for each backend, in their order.
    pub echoes: Vec<Echo>,
    /// One for each backend, in their order.
    pub receivers: Vec<Receiver>,
    /// The balancer, at work.
    pub balancer: Balancer,
    /// The network.
    pub fabric: Fabric,
}

impl Scene {
    /// Builds it with three backends in each region, applies its configuration, and waits until all
    /// are up.
    ///
    /// # Errors
    /// When a part cannot be had.
    pub fn start(sandbox: &Sandbox, name: &str, health: Health) -> Result<Self> {
        Self::start_with(sandbox, name, health, &[])
    }

    /// The same with more arguments for the receivers.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with(
        sandbox: &Sandbox,
        name: &str,
        health: Health,
        receivers: &[&str],
    ) -> Result<Self> {
        let scene = Self::idle_with(sandbox, name, receivers)?;
        scene.balancer.apply(&configuration(&scene.fabric, health).text())?;
        scene.wait_up(&[])?;
        Ok(scene)
    }

    /// Builds it up to a daemon that was told nothing.
    ///
    /// # Errors
    /// When a part cannot be had.
    pub fn idle(sandbox: &Sandbox, name: &str) -> Result<Self> {
        Self::idle_with(sandbox, name, &[])
    }

    fn idle_with(sandbox: &Sandbox, name: &str, more: &[&str]) -> Result<Self> {
        let binaries = Binaries::find()?;
        let fabric = Fabric::new(sandbox, name, 3)?;
        for tunnel in [Tunnel::Ip4In6, Tunnel::Ip6In4] {
            fabric.route_vip(tunnel.vip())?;
            fabric.backends.iter().try_for_each(|backend| backend.add_vip(tunnel.vip()))?;
        }
        let vips = Tunnel::ALL.map(Tunnel::vip);
        let sources = [Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()];
        let (mut servers, mut echoes, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
        for Backend { node, .. } in &fabric.backends {
            servers.push(Nginx::start(node)?);
            echoes.push(Echo::start(node, &vips, ECHO)?);
            let receiver = Receiver::start_with(sandbox, &binaries, node, &sources, &vips, more)?;
            receivers.push(receiver);
        }
        let balancer = Balancer::started(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
        Ok(Self { servers, echoes, receivers, balancer, fabric })
    }

    /// Waits until all backends are up but these (by name), which are not.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub fn wait_up(&self, but: &[&str]) -> Result<()> {
        let up = self.fabric.backends.iter().filter(|backend| !but.contains(&backend.name()));
        let addresses: Vec<_> = up.flat_map(|b| [IpAddr::from(b.v4), b.v6.into()]).collect();
        self.balancer.wait_up(&addresses, PATIENCE)
    }

    /// The number of a backend by its name.
    ///
    /// # Errors
    /// When there is none.
    pub fn number(&self, name: &str) -> Result<usize> {
        let found = self.fabric.backends.iter().position(|backend| backend.name() == name);
        found.with_context(|| format!("no backend {name:?}"))
    }

    /// The backend that a tunnel's end belongs to.
    ///
    /// # Errors
    /// When it belongs to none.
    pub fn at(&self, address: IpAddr) -> Result<&Backend> {
        let found = self.fabric.backends.iter().find(|b| b.v4 == address || b.v6 == address);
        found.with_context(|| format!("no backend at {address}"))
    }

    /// Requests in each backend's log that came to a VIP.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub fn logged(&self, vip: IpAddr) -> Result<Vec<u64>> {
        let count = |server: &Nginx| {
            let requests = server.requests()?;
            Ok(requests.iter().filter(|request| request.vip == vip).count() as u64)
        };
        self.servers.iter().map(count).collect()
    }
}
