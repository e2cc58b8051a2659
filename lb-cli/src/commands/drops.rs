//! `spillway drops`: one line for each dropped packet, rate-limited.

use std::ops::ControlFlow;

use lb_common::{
    abi::{capture::Ends, service::address_of},
    wire,
};
use serde::Serialize;
use spillway_proto::v1::CapturedPacket;

use super::capture::session::{Filter, Limits, receive};
use crate::{
    arguments::{Options, parse_duration},
    client::block_on,
    failure::Failure,
    output::{Report, count, print_line},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,
    /// Stop after this number of lines
    #[arg(long, short, value_name = "LINES", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Stop after this time, at most 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    duration: prost_types::Duration,
    /// Maximum packets per second, after a burst of ten; more are counted but not printed
    #[arg(long, value_name = "PACKETS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
}

/// # Errors
/// The daemon does not answer or refuses.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<(), Failure> {
    let Arguments { filter, count: most, duration, rate } = arguments;
    let request = filter.request(true, &Limits { count: most, duration, rate: Some(rate) });
    let result = block_on(receive(&options, "drops", request, |packets| {
        for packet in packets {
            if print_line(&DroppedPacket::new(packet), options.output)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }))?;
    eprintln!("{}; {}", count(result.written, "packet"), result.describe());
    Ok(())
}

#[derive(Debug, Serialize)]
pub(super) struct DroppedPacket {
    at: String,
    interface: String,
    verdict: String,
    /// "tcp", "udp", "icmp", "icmpv6" or a number; `null`: not an IP packet.
    protocol: Option<String>,
    /// Address, and port if there is one.
    source: Option<String>,
    destination: Option<String>,
    length: u32,
    /// The chosen backend; `null`: none was chosen.
    backend: Option<String>,
}

impl DroppedPacket {
    pub(super) fn new(packet: &CapturedPacket) -> Self {
        let ends = lb_common::capture::ends(&*packet.frame);
        let format_end =
            |end: Option<(String, u16)>| end.map(|(address, port)| with_port(&address, port));
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
                .map(|ends| protocol_name(ends.protocol)),
            source: format_end(source),
            destination: format_end(destination),
            length: packet.length,
            backend: Some(packet.backend.clone()).filter(|backend| !backend.is_empty()),
        }
    }
}

/// The port is in network byte order; 0: none.
fn with_port(address: &str, port: u16) -> String {
    match u16::from_be(port) {
        0 => address.to_owned(),
        port if address.contains(':') => format!("[{address}]:{port}"),
        port => format!("{address}:{port}"),
    }
}

fn protocol_name(number: u8) -> String {
    match number {
        wire::TCP => "tcp".into(),
        wire::UDP => "udp".into(),
        wire::ICMP => "icmp".into(),
        wire::ICMPV6 => "icmpv6".into(),
        number => format!("protocol {number}"),
    }
}

impl Report for DroppedPacket {
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
    fn a_line_has_time_interface_verdict_and_packet() {
        let mut frame = [2; 12].to_vec();
        frame.extend([8, 0, 0x45, 0, 5, 0xdc, 0, 1, 0x20, 0, 64, 17, 0, 0]);
        frame.extend([198, 51, 100, 7, 203, 0, 113, 1, 0x9c, 0x40, 0, 53, 0, 9, 0, 0]);
        let drop = DroppedPacket::new(&packet(&frame));
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
            DroppedPacket::new(&six).table(),
            "1970-01-12T13:46:40.000000007Z eth0 fragment: icmpv6 2001:db8::7 > 2001:db8:f::1, 1514 \
             bytes, backend fd00::1\n"
        );
        assert_eq!(
            DroppedPacket::new(&packet(&[2; 20])).table(),
            "1970-01-12T13:46:40.000000007Z eth0 fragment: not IP, 1514 bytes\n"
        );
    }
}
