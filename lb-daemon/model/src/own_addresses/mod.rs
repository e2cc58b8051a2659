//! Addresses of the balancers themselves, which services should not have: packets for such a service do not reach what else
//! listens there, such as SSH, etcd or another balancer.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use crate::{Configuration, Name, Ports, Service};

/// What an address of a balancer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnAddress {
    /// An address of an interface of this balancer.
    Interface(String),
    /// This balancer listens or sends there by one of its settings.
    Setting(&'static str),
    /// The address at which another balancer of the fleet is reached.
    Member(Name),
}

/// As it stands in a sentence after `which is`.
impl fmt::Display for OwnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(interface) => write!(f, "an address of {interface} of this balancer"),
            Self::Setting(setting) => write!(f, "the address in {setting} of this balancer"),
            Self::Member(name) => write!(f, "the address of balancer {name}"),
        }
    }
}

/// Addresses of balancers.
pub type OwnAddresses = BTreeMap<IpAddr, OwnAddress>;

/// A service that gets an address of a balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    pub service: Name,
    pub address: IpAddr,
    pub own: OwnAddress,
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, address, own } = self;
        write!(f, "service {service} has {address}, which is {own}")
    }
}

/// The services by which a change from `old` to `new` takes packets for addresses of balancers that no service took before.
pub fn takeovers(
    old: &Configuration,
    new: &Configuration,
    own_addresses: &OwnAddresses,
) -> Vec<Takeover> {
    let taking = new.services.iter().filter_map(|(name, service)| {
        let own = own_addresses.get(&service.address)?;
        let was_taken = old.services.values().any(|before| takes_all(before, service));
        let takeover =
            || Takeover { service: name.clone(), address: service.address, own: own.clone() };
        (!was_taken).then(takeover)
    });
    taking.collect()
}

/// Whether a service takes all packets that another one takes.
fn takes_all(one: &Service, other: &Service) -> bool {
    (one.address, one.protocol) == (other.address, other.protocol)
        && has_all(&one.ports, &other.ports)
}

fn has_all(some: &Ports, others: &Ports) -> bool {
    let (some, others) = match (some, others) {
        (Ports::Any, _) => return true,
        (Ports::Listed(_), Ports::Any) => return false,
        (Ports::Listed(some), Ports::Listed(others)) => (some, others),
    };
    let is_had = |(first, last): &(u16, u16)| {
        some.ranges().iter().any(|(begin, end)| begin <= first && last <= end)
    };
    others.ranges().iter().all(is_had)
}

#[cfg(test)]
mod tests;
