//! Route look-ups.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use futures::{StreamExt, stream};
use netlink_packet_core::{NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::{RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteType, RouteVia},
};
use nix::errno::Errno;
use rtnetlink::{Error, Handle};
use tokio::time::timeout;
use tracing::warn;

use super::{SourceRules, Unresolved, neighbour::NeighbourKey, sources::LocalAddress};

/// Concurrent look-ups; the answers fit the socket's buffer.
const AT_ONCE: usize = 32;

/// Time limit for an answer: the kernel gives it at once, or never if it was lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// Routes by address; `None` if the kernel did not answer.
pub(super) type Routes = Vec<(IpAddr, Option<Result<Route, Unresolved>>)>;

/// Where the kernel would send packets to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// Interface, and gateway or the address itself.
    pub(super) neighbour: NeighbourKey,
    /// The route's own MTU, bytes.
    pub(super) mtu: Option<u32>,
    /// The route's `advmss`, bytes.
    pub(super) advmss: Option<u32>,
    /// The source of packets that name none. After [`tunnel_routes`] the source of tunnels.
    pub(super) source: Option<IpAddr>,
}

/// Which packets' route is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteQuery {
    pub(super) address: IpAddr,
    /// Their mark; 0: unmarked packets.
    pub(super) mark: u32,
    /// The interface that their socket is bound to; 0: none.
    pub(super) interface: u32,
}

impl RouteQuery {
    /// Unmarked packets to an address.
    pub(super) const fn to(address: IpAddr) -> Self {
        Self { address, mark: 0, interface: 0 }
    }
}

/// Asks the kernel for the route of unmarked packets to an address.
///
/// # Errors
/// As [`look_up_route`].
pub(super) async fn route_to(
    handle: Handle,
    address: IpAddr,
) -> Result<Result<Route, Unresolved>, Error> {
    look_up_route(handle, RouteQuery::to(address)).await
}

/// Asks the kernel for the route of packets.
///
/// # Errors
/// Netlink itself fails; a missing route is an answer.
pub(super) async fn look_up_route(
    mut handle: Handle,
    RouteQuery { address, mark, interface }: RouteQuery,
) -> Result<Result<Route, Unresolved>, Error> {
    let mut request = RouteMessage::default();
    request.header.address_family =
        if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    request.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
    request.attributes.push(RouteAttribute::Destination(address.into()));
    if mark != 0 {
        request.attributes.push(RouteAttribute::Mark(mark));
    }
    if interface != 0 {
        request.attributes.push(RouteAttribute::Oif(interface));
    }
    let mut message = NetlinkMessage::from(RouteNetlinkMessage::GetRoute(request));
    message.header.flags = NLM_F_REQUEST;
    match handle.request(message)?.next().await.map(|answer| answer.payload) {
        Some(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route))) => {
            Ok(parse(address, route))
        }
        Some(NetlinkPayload::Error(error)) => {
            refusal(Errno::from_raw(-error.raw_code())).map(Err).ok_or(Error::NetlinkError(error))
        }
        _ => Err(Error::RequestFailed),
    }
}

/// Looks up the routes of all `addresses`, with the sources of tunnels.
pub(super) async fn tunnel_routes(
    handle: Handle,
    addresses: BTreeSet<IpAddr>,
    sources: SourceRules,
) -> Routes {
    let mut routes = routes(handle.clone(), addresses).await;
    let mut found: Vec<_> = routes
        .iter_mut()
        .filter_map(|(address, route)| Some((*address, route.as_mut()?.as_mut().ok()?)))
        .collect();
    let is_known = |(to, route): &(IpAddr, &mut Route)| sources.choose(*to, route, &[]).is_some();
    let listed = match found.iter().all(is_known) {
        true => Vec::new(),
        false => LocalAddress::list(&handle).await.unwrap_or_else(|error| {
            warn!("net: cannot list the addresses of this host: {error}");
            Vec::new()
        }),
    };
    for (to, route) in &mut found {
        route.source = sources.choose(*to, route, &listed);
    }
    routes
}

/// Looks up the routes of all `addresses`.
pub(super) async fn routes(handle: Handle, addresses: BTreeSet<IpAddr>) -> Routes {
    let look_up = |address| {
        let handle = handle.clone();
        async move {
            let answer = timeout(PATIENCE, route_to(handle, address)).await;
            let route = match answer {
                Ok(Ok(route)) => Some(route),
                Ok(Err(error)) => {
                    warn!("net: cannot look up the route to {address}: {error}");
                    None
                }
                Err(_) => {
                    warn!("net: route to {address}: no answer from the kernel");
                    None
                }
            };
            (address, route)
        }
    };
    stream::iter(addresses).map(look_up).buffer_unordered(AT_ONCE).collect().await
}

/// The kind of route that an error stands for, ip-route(8); `None`: a real error.
fn refusal(errno: Errno) -> Option<Unresolved> {
    match errno {
        Errno::ENETUNREACH | Errno::ESRCH => Some(Unresolved::NoRoute),
        Errno::EHOSTUNREACH => Some(Unresolved::Refused("unreachable")),
        Errno::EACCES => Some(Unresolved::Refused("prohibited")),
        Errno::EINVAL => Some(Unresolved::Refused("blackhole")),
        _ => None,
    }
}

fn parse(address: IpAddr, message: RouteMessage) -> Result<Route, Unresolved> {
    match message.header.kind {
        RouteType::Unicast => {}
        RouteType::Local => return Err(Unresolved::Own(address)),
        RouteType::BlackHole => return Err(Unresolved::Refused("blackhole")),
        RouteType::Prohibit => return Err(Unresolved::Refused("prohibited")),
        RouteType::Unreachable | RouteType::Throw => {
            return Err(Unresolved::Refused("unreachable"));
        }
        _ => return Err(Unresolved::NotUnicast(address)),
    }
    let (mut interface, mut gateway) = (None, address);
    let (mut mtu, mut advmss, mut source) = (None, None, None);
    for attribute in message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = Some(index),
            RouteAttribute::Gateway(RouteAddress::Inet(v4))
            | RouteAttribute::Via(RouteVia::Inet(v4)) => gateway = v4.into(),
            // An IPv4 route may have an IPv6 gateway, RFC 8950.
            RouteAttribute::Gateway(RouteAddress::Inet6(v6))
            | RouteAttribute::Via(RouteVia::Inet6(v6)) => gateway = v6.into(),
            RouteAttribute::PrefSource(RouteAddress::Inet(v4)) => source = Some(v4.into()),
            RouteAttribute::PrefSource(RouteAddress::Inet6(v6)) => source = Some(v6.into()),
            RouteAttribute::Metrics(metrics) => {
                for metric in metrics {
                    match metric {
                        RouteMetric::Mtu(bytes) => mtu = Some(bytes),
                        RouteMetric::Advmss(bytes) => advmss = Some(bytes),
                        _ => {}
                    }
                }
            }
            RouteAttribute::Encap(_) | RouteAttribute::EncapType(_) => {
                return Err(Unresolved::Encapsulated);
            }
            _ => {}
        }
    }
    let interface = interface.ok_or(Unresolved::NoRoute)?;
    let neighbour = NeighbourKey { interface, address: gateway };
    Ok(Route { neighbour, mtu, advmss, source })
}
