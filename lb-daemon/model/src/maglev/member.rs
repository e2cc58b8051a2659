use std::net::{IpAddr, Ipv6Addr};

/// A member's address in 16 bytes, IPv4 as v4-mapped (RFC 4291, 2.5.5.2); its order is the order of
/// ranks.
///
/// That is not the order of [`IpAddr`], which puts every IPv4 address before every IPv6 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberKey(pub [u8; 16]);

impl MemberKey {
    /// The address; a v4-mapped one as IPv4.
    pub fn address(&self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }
}

impl From<IpAddr> for MemberKey {
    fn from(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        })
    }
}

/// A member of a group, as far as its table goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub key: MemberKey,
    /// Its share relative to the others; 0: it stands in no slot.
    pub weight: u32,
}
