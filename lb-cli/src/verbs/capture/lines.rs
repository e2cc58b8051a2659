//! A line for a packet.

use lb_common::{
    abi::{capture::Ends, service::address_of},
    capture, wire,
};
use serde::Serialize;
use spillway_proto::v1::CapturedPacket;

use crate::output::Report;

/// A packet that was dropped.
#[derive(Debug, Serialize)]
pub(super) struct Drop {
    at: String,
    interface: String,
    verdict: String,
    /// "tcp", "udp", "icmp", "icmpv6" or a number; `null`: not of IP.
    protocol: Option<String>,
    /// Address, and port if there is one.
    source: Option<String>,
    destination: Option<String>,
    length: u32,
    /// The backend it was meant for; `null`: none was chosen.
    backend: Option<String>,
}

impl Drop {
    pub(super) fn new(packet: &CapturedPacket) -> Self {
        let ends = capture::ends(&*packet.frame);
        let of = |end: Option<(String, u16)>| end.map(|(address, port)| with_port(&address, port));
        let [source, destination] = match &ends {
            Ends { version: 0, .. } => [None, None],
            ends => [
                Some((address_of(&ends.source, ends.version).to_string(), ends.source_port)),
                Some((address_of(&ends.destination, ends.version).to_string(), ends.port)),
            ],
        };
        Self {
            at: packet.at.map(|at| at.to_string()).unwrap_or_default(),
            interface: packet.interface.clone(),
            verdict: packet.verdict.clone(),
            protocol: Some(ends)
                .filter(|ends| ends.version != 0)
                .map(|ends| protocol(ends.protocol)),
            source: of(source),
            destination: of(destination),
            length: packet.length,
            backend: Some(packet.backend.clone()).filter(|backend| !backend.is_empty()),
        }
    }
}

/// Ports are as in the packet; 0: none.
fn with_port(address: &str, port: u16) -> String {
    match u16::from_be(port) {
        0 => address.to_owned(),
        port if address.contains(':') => format!("[{address}]:{port}"),
        port => format!("{address}:{port}"),
    }
}

fn protocol(number: u8) -> String {
    match number {
        wire::TCP => "tcp".into(),
        wire::UDP => "udp".into(),
        wire::ICMP => "icmp".into(),
        wire::ICMPV6 => "icmpv6".into(),
        number => format!("protocol {number}"),
    }
}

impl Report for Drop {
    fn table(&self) -> String {
        let Self { at, interface, verdict, length, .. } = self;
        let what = match (&self.protocol, &self.source, &self.destination) {
            (Some(protocol), Some(source), Some(destination)) => {
                format!("{protocol} {source} > {destination}")
            }
            _ => "not IP".into(),
        };
        let backend = self.backend.as_ref().map(|backend| format!(", backend {backend}"));
        let backend = backend.unwrap_or_default();
        format!("{at} {interface} {verdict}: {what}, {length} bytes{backend}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(frame: &[u8]) -> CapturedPacket {
        CapturedPacket {
            at: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 7 }),
            interface: "eth0".into(),
            verdict: "fragment".into(),
            frame: frame.into(),
            length: 1_514,
            ..CapturedPacket::default()
        }
    }

    #[test]
    fn a_line_says_when_where_why_and_what() {
        let mut frame = [2; 12].to_vec();
        frame.extend([8, 0, 0x45, 0, 5, 0xdc, 0, 1, 0x20, 0, 64, 17, 0, 0]);
        frame.extend([198, 51, 100, 7, 203, 0, 113, 1, 0x9c, 0x40, 0, 53, 0, 9, 0, 0]);
        let drop = Drop::new(&packet(&frame));
        assert_eq!(
            drop.table(),
            "1970-01-12T13:46:40.000000007Z eth0 fragment: udp 198.51.100.7:40000 > 203.0.113.1:53, \
             1514 bytes\n"
        );
        let json = serde_json::to_value(&drop).unwrap();
        assert_eq!(
            (&json["protocol"], &json["backend"]),
            (&"udp".into(), &serde_json::Value::Null)
        );

        let mut six = [2; 12].to_vec();
        six.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 58, 64]);
        six.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        six.extend([0x20, 1, 0xd, 0xb8, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let six = CapturedPacket { backend: "fd00::1".into(), ..packet(&six) };
        assert_eq!(
            Drop::new(&six).table(),
            "1970-01-12T13:46:40.000000007Z eth0 fragment: icmpv6 2001:db8::7 > 2001:db8:f::1, 1514 \
             bytes, backend fd00::1\n"
        );
        assert_eq!(
            Drop::new(&packet(&[2; 20])).table(),
            "1970-01-12T13:46:40.000000007Z eth0 fragment: not IP, 1514 bytes\n"
        );
    }
}
