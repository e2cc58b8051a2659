use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    time::Duration,
};

use spillway_proto::v1;

use super::{
    Names,
    invalid::{Invalid, ObjectPath, all, each},
    values,
};
use lb_model::{Affinity, Fragments, PortList, Ports, Protocol, Service, UdpMode, WhenFull};

const SHORTEST_IDLE: Duration = Duration::from_secs(1);
/// What sixteen bits of seconds hold, rounded down.
const LONGEST_IDLE: Duration = Duration::from_secs(18 * 3600);
const DEFAULT_IDLE: Duration = Duration::from_secs(60);

/// A service whose pool is known.
pub(super) fn service(
    at: &ObjectPath,
    message: &v1::Service,
    pools: &Names<'_>,
) -> Result<Service, Invalid> {
    let hashed = ports(at, message).and_then(|ports| {
        let affinity = affinity(at, message.affinity, &ports)?;
        Ok((ports, affinity, fragments(at, message.fragments, affinity)?))
    });
    let remembered = protocol(at, message.protocol).and_then(|protocol| {
        let idle_timeout = idle_timeout(at, message, protocol)?;
        Ok((protocol, idle_timeout, when_full(at, message.when_full, protocol, idle_timeout)?))
    });
    let (address, hashed, remembered, pool) = all((
        values::address(at, &message.address),
        hashed,
        remembered,
        pools.resolve(at, "pool", &message.pool),
    ))?;
    let (ports, affinity, fragments) = hashed;
    let (protocol, idle_timeout, when_full) = remembered;
    Ok(Service { address, ports, protocol, pool, affinity, when_full, idle_timeout, fragments })
}

/// What of three fields says the ports.
const PORT_FIELDS: [&str; 3] = ["port", "ports", "any_port"];

/// What of three fields says the ports, and only that.
fn ports(at: &ObjectPath, message: &v1::Service) -> Result<Ports, Invalid> {
    match (message.port, &message.ports[..], message.any_port) {
        (0, [], false) => Err(at
            .invalid("port", "must be set; give port, ports or any_port")
            .depending_on_fields(at, &PORT_FIELDS)),
        (port, [], false) => Ok(Ports::one(values::port(at, "port", port)?)),
        (0, [], true) => Ok(Ports::Any),
        (0, ranges, false) => {
            let ranges = ranges.iter().enumerate();
            let ranges: Vec<_> = each(ranges.map(|(index, range)| ports_from(at, index, range)))?;
            // Each range was found to be one.
            let none = || at.invalid("ports", "must be set; give port, ports or any_port");
            PortList::new(ranges).map(Ports::Listed).ok_or_else(none)
        }
        (0, _, true) => Err(at.invalid("any_port", "has all ports already; leave ports out")),
        (_, [], true) => Err(at.invalid("any_port", "has all ports already; leave port out")),
        (port, ..) => {
            let cause = format!("leave port out, and put {port} among them");
            Err(at.invalid("ports", cause))
        }
    }
}

fn ports_from(at: &ObjectPath, index: usize, range: &v1::PortRange) -> Result<(u16, u16), Invalid> {
    let last = if range.last == 0 { range.first } else { range.last };
    let spelt = match last == range.first {
        true => last.to_string(),
        false => format!("{}-{last}", range.first),
    };
    let at = at.child("ports", index, &spelt);
    let first = values::port(&at, "first", range.first);
    if last == range.first {
        return first.map(|port| (port, port));
    }
    let (first, last) = all((first, values::port(&at, "last", last)))?;
    if last < first {
        return Err(at.invalid("last", format_args!("{last} is below the first, {first}")));
    }
    Ok((first, last))
}

fn affinity(at: &ObjectPath, number: i32, ports: &Ports) -> Result<Affinity, Invalid> {
    match values::value(at, "affinity", number)?.unwrap_or_default() {
        Affinity::Port if ports.single().is_some() => {
            let cause = "port would give all connections of one port to one backend; give ports or \
                         any_port, or another affinity";
            Err(at.invalid("affinity", cause).depending_on_fields(at, &PORT_FIELDS))
        }
        affinity => Ok(affinity),
    }
}

fn fragments(at: &ObjectPath, number: i32, affinity: Affinity) -> Result<Fragments, Invalid> {
    match values::value(at, "fragments", number)?.unwrap_or_default() {
        Fragments::Served if affinity != Affinity::Client => {
            let cause = "served needs affinity client, because only the first fragment has ports";
            Err(at.invalid("fragments", cause).depending_on_fields(at, &["affinity"]))
        }
        fragments => Ok(fragments),
    }
}

fn protocol(at: &ObjectPath, number: i32) -> Result<Protocol, Invalid> {
    let unset = || at.invalid("protocol", "must be set; give tcp or udp");
    values::value(at, "protocol", number)?.ok_or_else(unset)
}

/// How long flows are remembered; `None`: they are not.
fn idle_timeout(
    at: &ObjectPath,
    message: &v1::Service,
    protocol: Protocol,
) -> Result<Option<Duration>, Invalid> {
    let mode = values::value(at, "udp", message.udp)?;
    if mode.is_some() && protocol == Protocol::Tcp {
        return Err(at.invalid("udp", "is for UDP; this service is TCP"));
    }
    let tracked = mode == Some(UdpMode::Tracked);
    match message.idle_timeout {
        None => Ok(tracked.then_some(DEFAULT_IDLE)),
        Some(_) if !tracked => {
            let cause = "is for tracked UDP; this service is not";
            Err(at.invalid("idle_timeout", cause).depending_on_fields(at, &["udp"]))
        }
        Some(timeout) => {
            let (shortest, longest) = (SHORTEST_IDLE, LONGEST_IDLE);
            values::duration(at, "idle_timeout", timeout, shortest, longest, "18h").map(Some)
        }
    }
}

fn when_full(
    at: &ObjectPath,
    number: i32,
    protocol: Protocol,
    idle_timeout: Option<Duration>,
) -> Result<WhenFull, Invalid> {
    match values::value(at, "when_full", number)?.unwrap_or_default() {
        WhenFull::Reject if protocol == Protocol::Udp && idle_timeout.is_none() => {
            let cause = "reject cannot be used with stateless UDP, which has no new connections";
            Err(at.invalid("when_full", cause).depending_on_fields(at, &["udp"]))
        }
        when_full => Ok(when_full),
    }
}

/// What no other service may have, whatever else of this one is wrong.
struct Endpoint {
    address: IpAddr,
    protocol: Protocol,
    ports: Ports,
    fragments: Fragments,
}

impl Endpoint {
    /// # Errors
    /// It cannot be told, which [`service`] reports.
    fn new(at: &ObjectPath, message: &v1::Service) -> Result<Self, Invalid> {
        let fragments = values::value(at, "fragments", message.fragments);
        Ok(Self {
            address: values::address(at, &message.address)?,
            protocol: protocol(at, message.protocol)?,
            ports: ports(at, message)?,
            fragments: fragments.ok().flatten().unwrap_or_default(),
        })
    }
}

/// No two services of an address and protocol have the same port, nor any port, nor fragments.
pub(super) fn distinct(message: &v1::Configuration, names: &Names<'_>) -> Result<(), Invalid> {
    let (mut invalid, mut taken) = (Invalid::default(), HashMap::<_, Claims<'_>>::new());
    for (index, message) in message.services.iter().enumerate() {
        let at = ObjectPath::default().child("services", index, &message.name);
        let endpoint = names.at(index).and_then(|_| Endpoint::new(&at, message).ok());
        let Some(endpoint) = endpoint else { continue };
        let claims = taken.entry((endpoint.address, endpoint.protocol)).or_default();
        invalid.value(claims.add(&at, &message.name, &endpoint));
    }
    invalid.or(())
}

/// Who has what of an address and protocol.
#[derive(Default)]
struct Claims<'a> {
    /// Ranges of ports by their first: the last, and whose they are.
    ranges: BTreeMap<u16, (u16, &'a str)>,
    any: Option<&'a str>,
    fragments: Option<&'a str>,
}

impl<'a> Claims<'a> {
    fn add(&mut self, at: &ObjectPath, name: &'a str, endpoint: &Endpoint) -> Result<(), Invalid> {
        let (address, protocol) = (endpoint.address, endpoint.protocol);
        let taken = |field, what: &str, other: &str| {
            Err(at.invalid(field, taken(address, what, protocol, other)))
        };
        match &endpoint.ports {
            Ports::Any => {
                if let Some(other) = self.any.replace(name) {
                    return taken("any_port", "any port", other);
                }
            }
            Ports::Listed(list) => {
                for (first, last) in list.ranges() {
                    if let Some((port, other)) = self.owner(*first, *last) {
                        return taken("address", &format!("port {port}"), other);
                    }
                }
                self.ranges
                    .extend(list.ranges().iter().map(|(first, last)| (*first, (*last, name))));
            }
        }
        if endpoint.fragments == Fragments::Served
            && let Some(other) = self.fragments.replace(name)
        {
            return taken("fragments", "fragments", other);
        }
        Ok(())
    }

    /// Whose the lowest port of a range is that somebody has.
    fn owner(&self, first: u16, last: u16) -> Option<(u16, &'a str)> {
        let before = self.ranges.range(..=first).next_back();
        let before =
            before.filter(|(_, (end, _))| *end >= first).map(|(_, (_, name))| (first, *name));
        let within =
            || self.ranges.range(first..=last).next().map(|(port, (_, name))| (*port, *name));
        before.or_else(within)
    }
}

fn taken(address: IpAddr, what: &str, protocol: Protocol, other: &str) -> String {
    format!("{address}, {what}, {} is already used by service {other:?}", protocol.name())
}
