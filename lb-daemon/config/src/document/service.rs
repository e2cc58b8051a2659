use std::{fmt, num::NonZeroU32, time::Duration};

use lb_model::{Affinity, Fragments, Protocol, UdpMode, WhenFull};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};

use super::units::duration;

/// `[[service]]`: a virtual address that clients connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// The VIP.
    #[serde(default)]
    pub address: String,
    /// Its one port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<NonZeroU32>,
    /// Its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRange>,
    /// Whether it has all ports that no other service of the address and protocol has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_port: bool,
    /// Protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Name of the pool that serves it.
    #[serde(default)]
    pub pool: String,
    /// What a connection is hashed by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// What becomes of a new connection when every region is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_full: Option<WhenFull>,
    /// How packets of a UDP service find their backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpMode>,
    /// How long a tracked flow without packets is remembered.
    #[serde(default, with = "duration", skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// What becomes of fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragments: Option<Fragments>,
}

/// One port, or those from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u32,
    /// The last; that of one port is the first.
    pub last: u32,
}

/// Reads `80` or `8000-8099`; `None`: it is neither.
pub fn parse_ports(text: &str) -> Option<PortRange> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((first, last)) => (number(first.trim_end())?, number(last.trim_start())?),
    };
    (last != 0 || first == 0).then_some(PortRange { first, last })
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { first, last } = self;
        match first == last {
            true => serializer.serialize_u32(*first),
            false => serializer.serialize_str(&format!("{first}-{last}")),
        }
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ports;
        impl Visitor<'_> for Ports {
            type Value = PortRange;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port, or a range such as \"8000-8099\"")
            }

            fn visit_i64<E: Error>(self, port: i64) -> Result<PortRange, E> {
                let port = u32::try_from(port)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(port), &self))?;
                Ok(PortRange { first: port, last: port })
            }

            fn visit_u64<E: Error>(self, port: u64) -> Result<PortRange, E> {
                let port = u32::try_from(port)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(port), &self))?;
                Ok(PortRange { first: port, last: port })
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PortRange, E> {
                parse_ports(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Ports)
    }
}
