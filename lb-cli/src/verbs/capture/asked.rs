//! What a command line asks for.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use clap::builder::PossibleValuesParser;
use lb_common::abi::verdict::Verdict;
use lb_daemon::document;
use spillway_proto::v1;

/// Which packets.
#[derive(clap::Args, Debug)]
pub(super) struct Filter {
    /// Only packets from this address, or from those of a prefix
    #[arg(long, value_name = "PREFIX")]
    client: Option<String>,
    /// Only packets to this address, and to this port if there is one, as in
    /// 203.0.113.1:80 or [2001:db8:f::1]:80
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = vip)]
    vip: Option<Vip>,
    /// Only packets for which this backend was chosen
    #[arg(long, value_name = "ADDRESS")]
    backend: Option<IpAddr>,
    /// Only packets of this verdict (see `spillway verdicts`); of any, where there
    /// are several
    #[arg(long = "verdict", value_name = "VERDICT", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(Verdict::ALL.iter().map(|v| v.name())))]
    verdicts: Vec<String>,
}

/// How many of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) count: u32,
    pub(super) duration: prost_types::Duration,
    pub(super) rate: Option<u32>,
}

impl Filter {
    /// The same as a request.
    pub(super) fn request(self, dropped: bool, extent: &Extent) -> v1::CaptureRequest {
        let vip = self.vip;
        v1::CaptureRequest {
            client: self.client.unwrap_or_default(),
            vip: vip.map(|vip| vip.address.to_string()).unwrap_or_default(),
            port: vip.map_or(0, |vip| u32::from(vip.port)),
            backend: self.backend.map(|backend| backend.to_string()).unwrap_or_default(),
            verdicts: self.verdicts,
            dropped,
            snap_length: 0,
            packets: extent.count,
            duration: Some(extent.duration),
            packets_per_second: extent.rate.unwrap_or(0),
        }
    }
}

/// An address with or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vip {
    address: IpAddr,
    /// 0: any.
    port: u16,
}

fn vip(text: &str) -> Result<Vip, String> {
    if let Ok(address) = text.parse() {
        return Ok(Vip { address, port: 0 });
    }
    match text.parse::<SocketAddr>() {
        Ok(endpoint) if endpoint.port() != 0 => {
            Ok(Vip { address: endpoint.ip(), port: endpoint.port() })
        }
        _ => Err("write 203.0.113.1, 203.0.113.1:80, 2001:db8:f::1 or [2001:db8:f::1]:80".into()),
    }
}

/// A duration of the command line.
pub(super) fn duration(text: &str) -> Result<prost_types::Duration, String> {
    document::parse_duration(text)
        .and_then(|duration: Duration| duration.try_into().ok())
        .ok_or_else(|| "give a whole number and its unit, as 500ms, 30s or 5m".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vip_has_a_port_or_none() {
        let of = |text| vip(text).map(|vip| (vip.address.to_string(), vip.port));
        assert_eq!(of("203.0.113.1"), Ok(("203.0.113.1".into(), 0)));
        assert_eq!(of("203.0.113.1:80"), Ok(("203.0.113.1".into(), 80)));
        assert_eq!(of("2001:db8:f::1"), Ok(("2001:db8:f::1".into(), 0)));
        assert_eq!(of("[2001:db8:f::1]:443"), Ok(("2001:db8:f::1".into(), 443)));
        for wrong in ["web", "203.0.113.1:0", "203.0.113.1:", "2001:db8:f::1]:80", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
