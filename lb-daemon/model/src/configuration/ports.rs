use std::{
    fmt::{self, Display},
    net::IpAddr,
};

/// Ports of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ports {
    /// All ports that no other service of this address and protocol has.
    Any,
    Listed(PortList),
}

/// At least one port, none of them 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortList(Vec<(u16, u16)>);

impl PortList {
    /// The ports of ranges, first and last; `None` where there is none, or a range ends before it begins
    /// or begins at 0.
    pub fn new(ranges: impl IntoIterator<Item = (u16, u16)>) -> Option<Self> {
        let mut sorted: Vec<_> = ranges.into_iter().collect();
        if sorted.is_empty() || sorted.iter().any(|(first, last)| *first == 0 || first > last) {
            return None;
        }
        sorted.sort_unstable();
        let mut ranges: Vec<(u16, u16)> = Vec::with_capacity(sorted.len());
        for (first, last) in sorted {
            match ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => ranges.push((first, last)),
            }
        }
        Some(Self(ranges))
    }

    /// The ranges, first and last, in order and apart from each other.
    pub fn ranges(&self) -> &[(u16, u16)] {
        &self.0
    }

    /// Each port in order.
    pub fn each(&self) -> impl Iterator<Item = u16> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.iter().map(|(first, last)| usize::from(last - first) + 1).sum()
    }

    /// Whether a port is among them.
    pub fn has(&self, port: u16) -> bool {
        let at = self.0.partition_point(|(first, _)| *first <= port);
        at > 0 && self.0[at - 1].1 >= port
    }
}

impl Ports {
    /// One port, not 0.
    pub fn one(port: u16) -> Self {
        Self::Listed(PortList(vec![(port, port)]))
    }

    /// The port, if there is exactly one.
    pub fn single(&self) -> Option<u16> {
        match self {
            Self::Listed(PortList(ranges)) => match ranges[..] {
                [(first, last)] if first == last => Some(first),
                _ => None,
            },
            Self::Any => None,
        }
    }

    /// The ports that are listed.
    pub fn listed(&self) -> Option<&PortList> {
        match self {
            Self::Any => None,
            Self::Listed(list) => Some(list),
        }
    }
}

/// `80`, `80,443,8000-8099`, `any`.
impl Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Listed(PortList(ranges)) = self else { return f.write_str("any") };
        for (place, (first, last)) in ranges.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// An address with ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub address: IpAddr,
    pub ports: Ports,
}

/// Ranges of ports in the text of an endpoint.
const SPELT: usize = 8;

/// `192.0.2.1:80`, `[2001:db8::1]:80,443`, `192.0.2.1:any`; of many ranges the first eight and `,...`, which
/// tell it from all other services' of the address and protocol.
impl Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(v4) => write!(f, "{v4}:")?,
            IpAddr::V6(v6) => write!(f, "[{v6}]:")?,
        }
        match &self.ports {
            Ports::Listed(PortList(ranges)) if ranges.len() > SPELT => {
                let first = Ports::Listed(PortList(ranges[..SPELT].to_vec()));
                write!(f, "{first},...")
            }
            ports => ports.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn list(ranges: &[(u16, u16)]) -> PortList {
        PortList::new(ranges.iter().copied()).unwrap()
    }

    #[test]
    fn ranges_are_joined_and_spelt() {
        for (ranges, spelt) in [
            (&[(80, 80)][..], "80"),
            (&[(443, 443), (80, 80)], "80,443"),
            (&[(8000, 8099), (8100, 8200), (8150, 8160)], "8000-8200"),
            (&[(1, 65_535), (7, 7)], "1-65535"),
            (&[(65_535, 65_535), (1, 1)], "1,65535"),
        ] {
            assert_eq!(Ports::Listed(list(ranges)).to_string(), spelt);
        }
        assert_eq!(Ports::Any.to_string(), "any");
        for wrong in [&[][..], &[(0, 5)], &[(6, 5)], &[(80, 80), (0, 0)]] {
            assert_eq!(PortList::new(wrong.iter().copied()), None, "{wrong:?}");
        }
    }

    #[test]
    fn an_endpoint_is_one_text() {
        let endpoint = |address: &str, ports| Endpoint { address: address.parse().unwrap(), ports };
        assert_eq!(endpoint("192.0.2.1", Ports::one(80)).to_string(), "192.0.2.1:80");
        let two = Ports::Listed(list(&[(80, 80), (443, 444)]));
        assert_eq!(endpoint("2001:db8::1", two).to_string(), "[2001:db8::1]:80,443-444");
        assert_eq!(endpoint("192.0.2.1", Ports::Any).to_string(), "192.0.2.1:any");
        let odd =
            |last| Ports::Listed(PortList::new((1..=last).step_by(2).map(|p| (p, p))).unwrap());
        assert_eq!(endpoint("192.0.2.1", odd(15)).to_string(), "192.0.2.1:1,3,5,7,9,11,13,15");
        assert_eq!(endpoint("192.0.2.1", odd(17)).to_string(), "192.0.2.1:1,3,5,7,9,11,13,15,...");
    }

    proptest::proptest! {
        /// Against sets of ports.
        #[test]
        fn a_list_is_the_set_of_its_ports(
            a in proptest::collection::vec((1u16..60, 0u16..9), 1..6),
            b in proptest::collection::vec((1u16..60, 0u16..9), 1..6),
        ) {
            let set = |ranges: &[(u16, u16)]| -> BTreeSet<u16> {
                ranges.iter().flat_map(|(first, more)| *first..=first + more).collect()
            };
            let of = |ranges: &[(u16, u16)]| {
                PortList::new(ranges.iter().map(|(first, more)| (*first, first + more))).unwrap()
            };
            let (sets, lists) = ((set(&a), set(&b)), (of(&a), of(&b)));
            proptest::prop_assert_eq!(&lists.0.each().collect::<BTreeSet<_>>(), &sets.0);
            proptest::prop_assert_eq!(lists.0.count(), sets.0.len());
            for port in 0..80 {
                proptest::prop_assert_eq!(lists.0.has(port), sets.0.contains(&port));
            }
            proptest::prop_assert_eq!(sets.0 == sets.1, lists.0 == lists.1);
        }
    }
}
