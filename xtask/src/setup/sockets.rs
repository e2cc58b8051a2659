//! Who listens on this host: it must be the same before and after an installation.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result};

/// A socket that waits for others to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listener {
    protocol: &'static str,
    address: SocketAddr,
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol, self.address)
    }
}

/// The kernel's numbers: TCP_LISTEN; and TCP_CLOSE, which UDP uses for "not connected".
const TCP_LISTEN: &str = "0A";
const UDP_UNCONNECTED: &str = "07";

/// Every listening socket of the network namespace that we are in.
pub(crate) fn listening() -> Result<BTreeSet<Listener>> {
    let ephemeral = ephemeral(&read("/proc/sys/net/ipv4/ip_local_port_range")?);
    let mut all = BTreeSet::new();
    for (protocol, state) in [("tcp", TCP_LISTEN), ("udp", UDP_UNCONNECTED)] {
        all.extend(parse(protocol, state, &read(&format!("/proc/net/{protocol}"))?));
        // Absent where IPv6 is.
        if let Ok(table) = fs::read_to_string(format!("/proc/net/{protocol}6")) {
            all.extend(parse(protocol, state, &table));
        }
    }
    // A UDP socket with a port of the kernel's choice is somebody's question, not a service.
    all.retain(|listener| listener.protocol == "tcp" || listener.address.port() < ephemeral);
    Ok(all)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.to_owned())
}

/// The first port that the kernel may choose.
fn ephemeral(range: &str) -> u16 {
    range.split_whitespace().next().and_then(|port| port.parse().ok()).unwrap_or(u16::MAX)
}

/// The sockets of `/proc/net/tcp` and its like that are in one state.
fn parse(protocol: &'static str, state: &str, table: &str) -> Vec<Listener> {
    let sockets = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _remote, its_state) = (fields.next()?, fields.next()?, fields.next()?);
        (its_state == state).then(|| address(local))?
    });
    sockets.map(|address| Listener { protocol, address }).collect()
}

/// `0100007F:0050`: words of 32 bits in the machine's byte order, then the port as a number.
fn address(local: &str) -> Option<SocketAddr> {
    let (words, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let bytes: Vec<u8> = (0..words.len() / 8)
        .map(|word| u32::from_str_radix(words.get(word * 8..word * 8 + 8)?, 16).ok())
        .collect::<Option<Vec<u32>>>()?
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    let ip = match *bytes {
        [a, b, c, d] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:0051 0200007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
";
    const UDP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue
   7: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 3 2 0 0
";

    fn shown(listeners: &[Listener]) -> Vec<String> {
        listeners.iter().map(Listener::to_string).collect()
    }

    #[test]
    fn listeners_are_told_from_connections() {
        assert_eq!(shown(&parse("tcp", TCP_LISTEN, TCP)), ["tcp 127.0.0.1:80"]);
        assert_eq!(shown(&parse("udp", UDP_UNCONNECTED, UDP6)), ["udp [::1]:53"]);
        assert_eq!(parse("tcp", TCP_LISTEN, ""), []);
        assert_eq!(ephemeral("32768\t60999\n"), 32768);
    }

    #[test]
    fn a_new_listener_is_seen() {
        let opened = TcpListener::bind("127.0.0.1:0").unwrap();
        let expected = Listener { protocol: "tcp", address: opened.local_addr().unwrap() };
        assert!(listening().unwrap().contains(&expected), "{expected}");

        let asked = UdpSocket::bind("127.0.0.1:0").unwrap();
        let passing = Listener { protocol: "udp", address: asked.local_addr().unwrap() };
        assert!(!listening().unwrap().contains(&passing), "{passing} is of the kernel's choice");
    }
}
