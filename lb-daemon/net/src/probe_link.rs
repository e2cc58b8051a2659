//! The link by which packets of health checks leave that go through tunnels: a pair of veths that leads
//! nowhere. What has the mark of such checks is routed there, where a program takes it up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lb_common::abi::form::{PROBE_MARK, PROBE_MARK_MASK};
use netlink_packet_core::ErrorMessage;
use netlink_packet_route::{
    AddressFamily,
    link::LinkAttribute,
    route::{RouteMessage, RouteProtocol, RouteScope},
    rule::{RuleAction, RuleAttribute, RuleMessage},
};
use nix::errno::Errno;
use rtnetlink::{Error, Handle, LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::{
    NetError, Unresolved, interface_by_name, lookup,
    route::{Route, route_to},
};
use lb_base::error_chain;

/// Name of the link.
pub const PROBE_LINK: &str = "spillway0";
/// Name of its other end.
const END: &str = "spillway0-end";
/// The routing table that leads there.
const TABLE: u32 = PROBE_MARK >> 16;
/// Place of the rules among those of this host: behind its own addresses (0), before rules of others.
const PRIORITY: u32 = 50;
/// Largest packet that the link takes, bytes: whether one fits the tunnel is the sender's affair.
const MTU: u32 = 65_535;

/// The link, set up.
#[derive(Debug)]
pub struct ProbeLink {
    handle: Handle,
    index: u32,
    /// Why packets of that version cannot be sent by it.
    no_v6: Option<String>,
}

impl ProbeLink {
    /// Makes the link, in this thread's network namespace, and anew if there is one of that name: a daemon
    /// that was killed left it. Nothing is led there yet.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn make() -> Result<Self, NetError> {
        let (handle, _) = lookup::connect()?;
        remove(&handle).await?;
        // The kernel puts no segments together for the program, which would have to tell them apart.
        let whole = LinkAttribute::GsoMaxSegs(1);
        let link = LinkVeth::new(PROBE_LINK, END).mtu(MTU).arp(false).up();
        let link = link.append_extra_attribute(whole).build();
        handle.link().add(link).execute().await.map_err(NetError::request("make a link"))?;
        let end = LinkUnspec::new_with_name(END).up().build();
        handle.link().set(end).execute().await.map_err(NetError::request("set a link up"))?;
        let index = interface_by_name(PROBE_LINK).await?.index;
        Ok(Self { handle, index, no_v6: None })
    }

    /// Leads what has the mark of checks there.
    ///
    /// # Errors
    /// Netlink fails for IPv4; a host may have no IPv6.
    pub async fn lead(&mut self) -> Result<(), NetError> {
        let v4 = RouteMessageBuilder::<Ipv4Addr>::new();
        let v4 = v4.output_interface(self.index).table_id(TABLE).scope(RouteScope::Link).build();
        self.lead_version(AddressFamily::Inet, v4)
            .await
            .map_err(NetError::request("lead checks to their link"))?;
        let v6 = RouteMessageBuilder::<Ipv6Addr>::new();
        let v6 = v6.output_interface(self.index).table_id(TABLE).build();
        let led = self.lead_version(AddressFamily::Inet6, v6).await;
        self.no_v6 = led.err().map(|error| error_chain::message(&error));
        Ok(())
    }

    async fn lead_version(&self, family: AddressFamily, route: RouteMessage) -> Result<(), Error> {
        self.handle.route().add(route).execute().await?;
        for rule in rules(family) {
            let mut request = self.handle.rule().add();
            *request.message_mut() = rule;
            match request.execute().await {
                // One that was left behind.
                Err(Error::NetlinkError(error)) if is(&error, Errno::EEXIST) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Why packets to an address cannot be sent by the link.
    pub fn bars(&self, address: IpAddr) -> Option<&str> {
        self.no_v6.as_deref().filter(|_| address.is_ipv6())
    }

    /// Whether packets of checks to an address get to the link; one of this host's own is
    /// [`Unresolved::Own`].
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn leads_to(&self, address: IpAddr) -> Result<Result<bool, Unresolved>, NetError> {
        let answer = route_to(self.handle.clone(), address, PROBE_MARK).await;
        Ok(match answer.map_err(NetError::request("look up a route"))? {
            Ok(Route { neighbour, .. }) => Ok(neighbour.interface == self.index),
            Err(own @ Unresolved::Own(_)) => Err(own),
            Err(_) => Ok(false),
        })
    }

    /// The interface by which this host would send to an address, and whether that is on its link.
    ///
    /// # Errors
    /// Netlink fails; that there is no way is an answer.
    pub async fn way_to(
        &self,
        address: IpAddr,
    ) -> Result<Result<(u32, bool), Unresolved>, NetError> {
        let answer = route_to(self.handle.clone(), address, 0).await;
        let answer = answer.map_err(NetError::request("look up a route"))?;
        Ok(answer
            .map(|Route { neighbour, .. }| (neighbour.interface, neighbour.address == address)))
    }

    /// Takes it away with all that leads there.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn take_away() -> Result<(), NetError> {
        let (handle, _) = lookup::connect()?;
        remove(&handle).await
    }
}

/// Removes rules and link, with which its routes go, if they are there.
async fn remove(handle: &Handle) -> Result<(), NetError> {
    // What a kernel says that has no such rule, no IPv6, or no rules.
    let lacks = [Errno::ENOENT, Errno::EAFNOSUPPORT, Errno::EOPNOTSUPP];
    for rule in [AddressFamily::Inet, AddressFamily::Inet6].into_iter().flat_map(rules) {
        match handle.rule().del(rule).execute().await {
            Ok(()) => {}
            Err(Error::NetlinkError(error)) if lacks.iter().any(|errno| is(&error, *errno)) => {}
            Err(error) => return Err(NetError::request("remove a rule")(error)),
        }
    }
    let there = match interface_by_name(PROBE_LINK).await {
        Ok(there) => there,
        Err(NetError::NoInterface(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let removed = handle.link().del(there.index).execute().await;
    removed.map_err(NetError::request("remove a link"))
}

/// What has the mark goes by the table, and nowhere where that has no route: by another one it would
/// get to a balancer, and from there to any backend. They say that they are the kernel's own, for of
/// others systemd-networkd thinks that it may remove them.
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
    let mut lead = rule(RuleAction::ToTable, PRIORITY);
    lead.attributes.push(RuleAttribute::Table(TABLE));
    [lead, rule(RuleAction::Unreachable, PRIORITY + 1)]
}

fn is(error: &ErrorMessage, errno: Errno) -> bool {
    Errno::from_raw(-error.raw_code()) == errno
}
