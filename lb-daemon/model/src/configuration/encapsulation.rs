use std::{fmt, net::IpAddr};

use lb_common::{abi::form::Form, wire::gue};

/// How packets get to a pool's backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encapsulation {
    /// In an IP header alone.
    #[default]
    IpInIp,
    /// In GUE, to this UDP port.
    Gue(u16),
    /// As they are, to the backend's own MAC: it has to be on a link of the balancer's.
    Direct,
}

impl Encapsulation {
    /// UDP port of GUE where the configuration says none.
    pub const DEFAULT_GUE_PORT: u16 = gue::PORT;

    /// `ip_in_ip`, `gue` or `direct`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpInIp => "ip_in_ip",
            Self::Gue(_) => "gue",
            Self::Direct => "direct",
        }
    }

    /// The UDP port that packets go to, if any.
    pub const fn gue_port(self) -> Option<u16> {
        match self {
            Self::IpInIp | Self::Direct => None,
            Self::Gue(port) => Some(port),
        }
    }

    /// The same, as packets have it.
    pub const fn form(self) -> Form {
        match self {
            Self::IpInIp => Form::IP_IN_IP,
            Self::Gue(port) => Form::gue(port),
            Self::Direct => Form::DIRECT,
        }
    }

    /// What packets have it.
    pub const fn of_form(form: Form) -> Self {
        match form {
            form if form.is_gue() => Self::Gue(form.port()),
            form if form.is_direct() => Self::Direct,
            _ => Self::IpInIp,
        }
    }

    /// Bytes that a packet grows by on its way to a backend.
    pub const fn overhead(self, backend: IpAddr) -> u16 {
        self.form().overhead(backend.is_ipv4())
    }

    /// What must be the largest outer packet towards a backend at the least, bytes, where IPv6 is in its
    /// tunnel: IPv6's least packet (RFC 8200, 5) and the outer headers.
    pub const fn least_mtu(self, backend: IpAddr) -> u16 {
        1280 + self.overhead(backend)
    }
}

/// `ip_in_ip`, `gue to port 6080` or `direct`.
impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.gue_port().map_or(Ok(()), |port| write!(f, " to port {port}"))
    }
}
