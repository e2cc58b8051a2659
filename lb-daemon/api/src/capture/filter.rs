use std::{collections::BTreeSet, fmt, net::IpAddr, num::NonZeroU32, time::Duration};

use lb_common::abi::{
    capture::{Capture, Ends, MAX_SNAP, Prefix, version_of},
    limiter::LimitWord,
    service::address_words,
    verdict::{Action, Verdict},
};
use lb_common::wire;

use lb_secure::access::TcpEnds;

/// Which packets to capture; unset fields match any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureFilter {
    /// Source prefix of the packet on arrival.
    pub client: Option<(IpAddr, u8)>,
    /// Destination, of the same IP version.
    pub vip: Option<IpAddr>,
    /// Destination port, not 0.
    pub port: Option<u16>,
    /// The chosen backend.
    pub backend: Option<IpAddr>,
    /// Verdicts; empty: any.
    pub verdicts: BTreeSet<Verdict>,
    /// Only dropped packets.
    pub dropped: bool,
    /// How much to capture.
    pub bounds: CaptureBounds,
}

/// How much to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureBounds {
    /// Most bytes of a frame, 1 to [`CaptureBounds::MOST_SNAP`].
    pub snap: u32,
    /// Packets after which a capture ends, 1 to [`CaptureBounds::MOST_PACKETS`].
    pub packets: u32,
    /// Time after which a capture ends, above zero and at most [`CaptureBounds::MOST_DURATION`].
    pub duration: Duration,
    /// Most packets a second, at most [`CaptureBounds::MOST_PACKETS`]; `None`: no limit.
    pub per_second: Option<NonZeroU32>,
}

impl CaptureBounds {
    /// Most bytes of a frame.
    pub const MOST_SNAP: u32 = MAX_SNAP;
    /// Most packets.
    pub const MOST_PACKETS: u32 = 1_000_000;
    /// Most time.
    pub const MOST_DURATION: Duration = Duration::from_secs(3_600);
}

impl Default for CaptureBounds {
    fn default() -> Self {
        Self { snap: 256, packets: 1_000, duration: Duration::from_secs(30), per_second: None }
    }
}

impl CaptureFilter {
    /// The filter in the form of the map, for the capture with this number. It leaves out the caller's `own` connection,
    /// and has no deadline yet.
    pub(super) fn to_abi(&self, number: u64, own: Option<TcpEnds>) -> Capture {
        let whole = |address: IpAddr| Prefix::new(address, 128);
        let matches = |verdict: &&Verdict| {
            (self.verdicts.is_empty() || self.verdicts.contains(verdict))
                && (!self.dropped || verdict.action() == Action::Drop)
        };
        let verdicts = Verdict::ALL.iter().filter(matches);
        let version = self.client.map(|(address, _)| address).or(self.vip);
        Capture {
            until: 0,
            number,
            verdicts: verdicts.fold(0, |bits, verdict| bits | 1 << *verdict as u32),
            client: self.client.map_or(Prefix::ANY, |(address, bits)| Prefix::new(address, bits)),
            vip: self.vip.map_or(Prefix::ANY, whole),
            backend: self.backend.map_or(Prefix::ANY, whole),
            except: own.map_or(Ends::NONE, arriving),
            port: self.port.unwrap_or(0).to_be(),
            version: version.map_or(0, version_of),
            reserved: 0,
            snap: self.bounds.snap,
        }
    }

    /// The limiter of captured packets.
    pub(super) fn limit(&self) -> LimitWord {
        const SECOND: u64 = 1_000_000_000 * LimitWord::PER_NANOSECOND;
        self.bounds.per_second.map_or(LimitWord::UNLIMITED, |rate| {
            LimitWord::new(SECOND.div_ceil(u64::from(rate.get())), (rate.get() / 10).max(10))
        })
    }
}

/// The packets from the client of a connection, as they arrive.
fn arriving(connection: TcpEnds) -> Ends {
    let TcpEnds { client, daemon } = connection;
    // A dual-stack socket shows IPv4 addresses in IPv6 form; packets have plain ones.
    let (source, destination) = (client.ip().to_canonical(), daemon.ip().to_canonical());
    Ends {
        source: address_words(source),
        destination: address_words(destination),
        source_port: client.port().to_be(),
        port: daemon.port().to_be(),
        version: version_of(source),
        protocol: wire::TCP,
        reserved: 0,
    }
}

impl fmt::Display for CaptureFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((address, bits)) = self.client {
            write!(f, "client {address}/{bits}, ")?;
        }
        if let Some(vip) = self.vip {
            write!(f, "vip {vip}, ")?;
        }
        if let Some(port) = self.port {
            write!(f, "port {port}, ")?;
        }
        if let Some(backend) = self.backend {
            write!(f, "backend {backend}, ")?;
        }
        for verdict in &self.verdicts {
            write!(f, "{}, ", verdict.name())?;
        }
        if self.dropped {
            f.write_str("dropped, ")?;
        }
        let CaptureBounds { snap, packets, duration, per_second } = self.bounds;
        write!(f, "{packets} packets of {snap} bytes within {duration:?}")?;
        per_second.map_or(Ok(()), |rate| write!(f, ", {rate} a second"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_common::abi::service::{IPV4, IPV6};

    #[test]
    fn an_empty_filter_matches_all() {
        let all = CaptureFilter::default().to_abi(7, None);
        assert_eq!((all.until, all.number, all.snap), (0, 7, 256));
        assert_eq!((all.version, all.port), (0, 0));
        assert_eq!([all.client, all.vip, all.backend], [Prefix::ANY; 3]);
        assert_eq!(all.verdicts, (1 << Verdict::ALL.len()) - 1);
        assert_eq!(CaptureFilter::default().limit(), LimitWord::UNLIMITED);
        assert_eq!(CaptureFilter::default().to_string(), "1000 packets of 256 bytes within 30s");
    }

    #[test]
    fn the_callers_own_connection_is_left_out_as_its_packets_come_in() {
        assert_eq!(CaptureFilter::default().to_abi(1, None).except, Ends::NONE);
        let except = |client: &str, daemon: &str| {
            let own = TcpEnds { client: client.parse().unwrap(), daemon: daemon.parse().unwrap() };
            CaptureFilter::default().to_abi(1, Some(own)).except
        };
        let words = |text: &str| address_words(text.parse().unwrap());
        let expected = Ends {
            source: words("198.51.100.7"),
            destination: words("192.0.2.10"),
            source_port: 40_000_u16.to_be(),
            port: 9_443_u16.to_be(),
            version: IPV4,
            protocol: 6,
            reserved: 0,
        };
        assert_eq!(except("198.51.100.7:40000", "192.0.2.10:9443"), expected);
        assert_eq!(except("[::ffff:198.51.100.7]:40000", "[::ffff:192.0.2.10]:9443"), expected);
        let six = except("[2001:db8::7]:40000", "[2001:db8::10]:9443");
        assert_eq!((six.version, six.source), (IPV6, words("2001:db8::7")));
    }

    #[test]
    fn conditions_are_in_the_form_of_the_packet() {
        let filter = CaptureFilter {
            client: Some(("198.51.100.7".parse().unwrap(), 24)),
            vip: Some("203.0.113.1".parse().unwrap()),
            port: Some(80),
            backend: Some("fd00:1::10".parse().unwrap()),
            verdicts: [Verdict::Transmitted, Verdict::Fragment].into(),
            dropped: true,
            bounds: CaptureBounds {
                per_second: NonZeroU32::new(1_000),
                ..CaptureBounds::default()
            },
        };
        let capture = filter.to_abi(1, None);
        assert_eq!((capture.version, capture.port), (IPV4, 0x5000_u16.to_le()));
        assert_eq!(capture.verdicts, 1 << 7, "of the two it is the one that drops");
        assert_eq!(capture.client, Prefix::new("198.51.100.0".parse().unwrap(), 24));
        assert_eq!(
            filter.to_string(),
            "client 198.51.100.7/24, vip 203.0.113.1, port 80, backend fd00:1::10, transmitted, \
             fragment, dropped, 1000 packets of 256 bytes within 30s, 1000 a second"
        );
        let six =
            CaptureFilter { vip: Some("2001:db8::1".parse().unwrap()), ..CaptureFilter::default() };
        assert_eq!(six.to_abi(1, None).version, IPV6);
        let limit = filter.limit();
        assert_eq!(limit.interval(), 1_000_000 * LimitWord::PER_NANOSECOND);
        assert_eq!(limit.burst(), 100, "a tenth of a second");
    }
}
