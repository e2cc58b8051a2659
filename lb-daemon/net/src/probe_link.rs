//! The link for health checks through tunnels: a veth pair whose other end is not connected. Packets with the mark
//! of such checks are routed to it, and a program at its egress encapsulates them.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use lb_common::abi::form::{PROBE_LINK_MAC, PROBE_MARK, PROBE_MARK_MASK};
use netlink_packet_core::{DefaultNla, Emitable as _, ErrorMessage};
use netlink_packet_route::{
    AddressFamily,
    link::{AfSpecInet, AfSpecUnspec, LinkAttribute},
    route::{RouteMessage, RouteProtocol, RouteScope},
    rule::{RuleAction, RuleAttribute, RuleMessage},
};
use nix::errno::Errno;
use rtnetlink::{Error, Handle, LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::{
    NetError, SourceRules, Unresolved, connect, interface_by_name,
    route::{Route, RouteQuery, look_up_route},
    sources::LocalAddress,
};
use lb_base::error_chain;

/// Name of the link.
pub const PROBE_LINK: &str = "spillway0";
/// Name of its other end.
const END: &str = "spillway0-end";
/// The routing table with the routes to the link.
const TABLE: u32 = PROBE_MARK >> 16;
/// Priority of the rules: after the host's own addresses (0), before other rules.
const PRIORITY: u32 = 50;
/// MTU of the link, bytes: the sender has to limit packets to what fits the tunnel.
const MTU: u32 = 65_535;

/// How the packets of a check get to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelRoute {
    /// Index of the interface.
    pub interface: u32,
    /// Whether the backend is on its link.
    pub on_link: bool,
    /// Source of the tunnel; `None`: this host has no address for it.
    pub outer_source: Option<IpAddr>,
    /// Source of the packets in the tunnel, which the backend answers directly; `None`: the kernel chooses.
    pub inner_source: Option<IpAddr>,
}

/// How packets to an address get to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRoute {
    /// By their mark.
    Marked,
    /// By their mark, but only from a socket that is bound to the link: the address is one of this host.
    Bound,
    /// Not at all.
    None,
}

/// The link, set up.
#[derive(Debug)]
pub struct ProbeLink {
    handle: Handle,
    index: u32,
    /// Why IPv6 packets cannot be routed to it.
    no_v6: Option<String>,
}

impl ProbeLink {
    /// Creates the link in this thread's network namespace. One that a killed daemon left behind is replaced.
    /// Nothing is routed to it yet.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn create() -> Result<Self, NetError> {
        let (handle, _) = connect()?;
        remove(&handle).await?;
        // No GSO packets: the program would have to segment them.
        let whole = LinkAttribute::GsoMaxSegs(1);
        let link = LinkVeth::new(PROBE_LINK, END).mtu(MTU).arp(false).up();
        let link = link.address(PROBE_LINK_MAC.to_vec()).append_extra_attribute(whole).build();
        handle.link().add(link).execute().await.map_err(NetError::request("create a link"))?;
        let end = LinkUnspec::new_with_name(END).up().build();
        handle.link().set(end).execute().await.map_err(NetError::request("set a link up"))?;
        let index = interface_by_name(PROBE_LINK).await?.index;
        let accepting = LinkUnspec::new_with_index(index);
        let accepting = accepting.append_extra_attribute(accepts_own_addresses()).build();
        let accepted = handle.link().set(accepting).execute().await;
        accepted.map_err(NetError::request("let a link accept addresses of this host"))?;
        Ok(Self { handle, index, no_v6: None })
    }

    /// Routes packets with the mark of checks to the link.
    ///
    /// # Errors
    /// Netlink fails for IPv4. A host without IPv6 is no error.
    pub async fn route_marked_packets(&mut self) -> Result<(), NetError> {
        let v4 = RouteMessageBuilder::<Ipv4Addr>::new();
        let v4 = v4.output_interface(self.index).table_id(TABLE).scope(RouteScope::Link).build();
        self.add_routes(AddressFamily::Inet, v4)
            .await
            .map_err(NetError::request("route checks to their link"))?;
        let v6 = RouteMessageBuilder::<Ipv6Addr>::new();
        let v6 = v6.output_interface(self.index).table_id(TABLE).build();
        let added = self.add_routes(AddressFamily::Inet6, v6).await;
        self.no_v6 = added.err().map(|error| error_chain::message(&error));
        Ok(())
    }

    async fn add_routes(&self, family: AddressFamily, route: RouteMessage) -> Result<(), Error> {
        self.handle.route().add(route).execute().await?;
        for rule in rules(family) {
            let mut request = self.handle.rule().add();
            *request.message_mut() = rule;
            match request.execute().await {
                // A killed daemon left it behind.
                Err(Error::NetlinkError(error)) if has_errno(&error, Errno::EEXIST) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Why packets to an address cannot be routed to the link.
    pub fn unusable_for(&self, address: IpAddr) -> Option<&str> {
        self.no_v6.as_deref().filter(|_| address.is_ipv6())
    }

    /// How marked packets to an address are routed to the link.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn receives(&self, address: IpAddr) -> Result<LinkRoute, NetError> {
        let marked = RouteQuery { mark: PROBE_MARK, ..RouteQuery::to(address) };
        let by_mark = self.look_up(marked).await?;
        // The kernel's table of its own addresses comes before all rules; its routes are of other interfaces.
        let bound = RouteQuery { interface: self.index, ..marked };
        let is_received = |route: &Result<Route, Unresolved>| {
            route.as_ref().is_ok_and(|route| route.neighbour.interface == self.index)
        };
        Ok(match &by_mark {
            route if is_received(route) => LinkRoute::Marked,
            Err(Unresolved::Own(_)) if is_received(&self.look_up(bound).await?) => LinkRoute::Bound,
            _ => LinkRoute::None,
        })
    }

    async fn look_up(&self, query: RouteQuery) -> Result<Result<Route, Unresolved>, NetError> {
        let answer = look_up_route(self.handle.clone(), query).await;
        answer.map_err(NetError::request("look up a route"))
    }

    /// How packets to a VIP get to a backend through its tunnel.
    ///
    /// # Errors
    /// Netlink fails; a missing route is an answer.
    pub async fn route_to(
        &self,
        backend: IpAddr,
        vip: IpAddr,
        sources: &SourceRules,
    ) -> Result<Result<TunnelRoute, Unresolved>, NetError> {
        let route = match self.look_up(RouteQuery::to(backend)).await? {
            Ok(route) => route,
            Err(unresolved) => return Ok(Err(unresolved)),
        };
        let by = |addresses: &[LocalAddress]| TunnelRoute {
            interface: route.neighbour.interface,
            on_link: route.neighbour.address == backend,
            outer_source: sources.choose(backend, &route, addresses),
            inner_source: sources.choose_inner((vip, backend), &route, addresses),
        };
        // A host's addresses are many on some, and the route has a source as a rule.
        let found = by(&[]);
        if found.outer_source.is_some() && found.inner_source.is_some() {
            return Ok(Ok(found));
        }
        let addresses = LocalAddress::list(&self.handle).await;
        Ok(Ok(by(&addresses.map_err(NetError::request("list addresses"))?)))
    }

    /// Removes the link with its rules and routes, if it exists.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn remove() -> Result<(), NetError> {
        let (handle, _) = connect()?;
        remove(&handle).await
    }
}

/// Removes the rules and the link, if they exist. Its routes are removed with it.
async fn remove(handle: &Handle) -> Result<(), NetError> {
    // The errors of a kernel without the rule, without IPv6, or without policy routing.
    let lacks = [Errno::ENOENT, Errno::EAFNOSUPPORT, Errno::EOPNOTSUPP];
    for rule in [AddressFamily::Inet, AddressFamily::Inet6].into_iter().flat_map(rules) {
        match handle.rule().del(rule).execute().await {
            Ok(()) => {}
            Err(Error::NetlinkError(error))
                if lacks.iter().any(|errno| has_errno(&error, *errno)) => {}
            Err(error) => return Err(NetError::request("remove a rule")(error)),
        }
    }
    let link = match interface_by_name(PROBE_LINK).await {
        Ok(link) => link,
        Err(NetError::NoInterface(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let removed = handle.link().del(link.index).execute().await;
    removed.map_err(NetError::request("remove a link"))
}

/// Marked packets use the table; if it has no route they are unreachable, as another table would route them to a
/// balancer, and from there to any backend. The rules have the kernel's protocol, because systemd-networkd removes
/// rules of other protocols that it did not create.
fn rules(family: AddressFamily) -> [RuleMessage; 2] {
    let rule = |action, priority| {
        let mut rule = RuleMessage::default();
        rule.header.family = family;
        rule.header.action = action;
        rule.header.table = 0;
        rule.attributes = vec![
            RuleAttribute::Priority(priority),
            RuleAttribute::FwMark(PROBE_MARK),
            RuleAttribute::FwMask(PROBE_MARK_MASK),
            RuleAttribute::Protocol(RouteProtocol::Kernel),
        ];
        rule
    };
    let mut table = rule(RuleAction::ToTable, PRIORITY);
    table.attributes.push(RuleAttribute::Table(TABLE));
    [table, rule(RuleAction::Unreachable, PRIORITY + 1)]
}

/// The reverse path filter of all interfaces (Linux, ip-sysctl): with 1 it drops IPv4 packets from addresses of this host,
/// whatever an interface's own is.
pub const STRICT_FILTER: &str = "net.ipv4.conf.all.rp_filter";

/// Whether [`STRICT_FILTER`] is 1.
pub fn has_strict_filter() -> bool {
    let value = fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter");
    value.is_ok_and(|value| value.trim() == "1")
}

/// Lets a link accept IPv4 packets from addresses of this host, `accept_local` of Linux's ip-sysctl document, without
/// a reverse path filter of its own. By netlink, because a unit may not write to /proc/sys.
fn accepts_own_addresses() -> LinkAttribute {
    /// IFLA_INET_CONF of linux/if_link.h.
    const CONF: u16 = 1;
    /// IPV4_DEVCONF_RP_FILTER and IPV4_DEVCONF_ACCEPT_LOCAL of linux/ip.h, with their values.
    const VALUES: [(u16, u32); 2] = [(8, 0), (23, 1)];
    let value = |(kind, value): (u16, u32)| DefaultNla::new(kind, value.to_ne_bytes().to_vec());
    let mut values = vec![0; VALUES.map(value).as_slice().buffer_len()];
    VALUES.map(value).as_slice().emit(&mut values);
    let conf = AfSpecInet::Other(DefaultNla::new(CONF, values));
    LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet(vec![conf])])
}

fn has_errno(error: &ErrorMessage, errno: Errno) -> bool {
    Errno::from_raw(-error.raw_code()) == errno
}
