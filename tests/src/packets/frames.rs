//! Frames, built and taken apart by `etherparse`.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    IpDscp, IpEcn, IpHeaders, IpNumber, Ipv4Header, Ipv4Options, Ipv6FlowLabel, Ipv6Header,
    PacketBuilder, PacketBuilderStep, TcpHeader, UdpHeader,
};

/// Sequence number of all TCP segments.
pub const SEQUENCE: u32 = 1_000;

/// MAC of whoever sent the frame.
pub const SENDER: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0c];
/// MAC of the host under test.
pub const HOST: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// Length of an Ethernet header.
pub const ETHERNET: usize = 14;

/// Who talks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Address and port of the client.
    pub client: SocketAddr,
    /// Address and port of the service.
    pub vip: SocketAddr,
}

impl Flow {
    /// From `address:port` twice.
    ///
    /// # Panics
    /// When one of them is none.
    pub fn new(client: &str, vip: &str) -> Self {
        let parse = |text: &str| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        Self { client: parse(client), vip: parse(vip) }
    }

    /// The other direction.
    #[must_use]
    pub fn answered(&self) -> Self {
        Self { client: self.vip, vip: self.client }
    }
}

/// A packet to be: what is not said has the value that [`Packet::new`] gives it.
#[derive(Clone, Debug)]
pub struct Packet {
    flow: Flow,
    hop_limit: u8,
    traffic_class: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Packet {
    /// Hop limit 64, no DSCP or ECN, no IP options, five bytes of payload.
    pub fn new(flow: Flow) -> Self {
        let payload = b"hello".to_vec();
        Self { flow, hop_limit: 64, traffic_class: 0, options: Vec::new(), payload }
    }

    /// The same in the other direction.
    #[must_use]
    pub fn turned(mut self) -> Self {
        self.flow = self.flow.answered();
        self
    }

    /// Sets TTL or hop limit.
    #[must_use]
    pub fn hop_limit(mut self, hop_limit: u8) -> Self {
        self.hop_limit = hop_limit;
        self
    }

    /// Sets DSCP and ECN.
    #[must_use]
    pub fn traffic_class(mut self, traffic_class: u8) -> Self {
        self.traffic_class = traffic_class;
        self
    }

    /// Gives IPv4 that many bytes of options, a multiple of 4 from 4 to 40: an empty record of the
    /// route (RFC 791, 3.1) and the end.
    #[must_use]
    pub fn options(mut self, length: u8) -> Self {
        self.options = vec![0; length.into()];
        self.options[..3].copy_from_slice(&[7, length - 1, 4]);
        self
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }

    /// The frame of a TCP segment; `flags` are letters of FSRPAUEC.
    pub fn tcp(&self, flags: &str) -> Vec<u8> {
        let (from, to) = (self.flow.client.port(), self.flow.vip.port());
        let set = |flag| flags.contains(flag);
        let header = TcpHeader {
            fin: set('F'),
            syn: set('S'),
            rst: set('R'),
            psh: set('P'),
            ack: set('A'),
            urg: set('U'),
            ece: set('E'),
            cwr: set('C'),
            acknowledgment_number: if set('A') { 77 } else { 0 },
            ..TcpHeader::new(from, to, SEQUENCE, 64_000)
        };
        let mut frame = Vec::new();
        self.ip().tcp_header(header).write(&mut frame, &self.payload).expect("write to memory");
        frame
    }

    /// The frame of a UDP datagram.
    pub fn udp(&self) -> Vec<u8> {
        let (from, to) = (self.flow.client.port(), self.flow.vip.port());
        let mut frame = Vec::new();
        self.ip().udp(from, to).write(&mut frame, &self.payload).expect("write to memory");
        frame
    }

    /// The frame of another protocol or extension header, around the payload.
    pub fn other(&self, protocol: u8) -> Vec<u8> {
        /// No protocol at all, so that none is made up (RFC 3692).
        const EXPERIMENT: IpNumber = IpNumber(253);
        let mut frame = Vec::new();
        if self.flow.vip.is_ipv4() {
            let number = IpNumber(protocol);
            self.ip().write(&mut frame, number, &self.payload).expect("write to memory");
        } else {
            self.ip().write(&mut frame, EXPERIMENT, &self.payload).expect("write to memory");
            frame[ETHERNET + 6] = protocol;
        }
        frame
    }

    /// The frame of an ICMP or ICMPv6 error of a type and code, with `quoted`, an IP packet, and what stands
    /// between header and quote.
    pub fn error(&self, kind: u8, code: u8, rest: [u8; 4], quoted: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let done = if self.flow.vip.is_ipv4() {
            self.ip().icmpv4_raw(kind, code, rest).write(&mut frame, quoted)
        } else {
            self.ip().icmpv6_raw(kind, code, rest).write(&mut frame, quoted)
        };
        done.expect("write to memory");
        frame
    }

    fn ip(&self) -> PacketBuilderStep<IpHeaders> {
        let headers = match (self.flow.client.ip(), self.flow.vip.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = Ipv4Header {
                    options: Ipv4Options::try_from(&self.options[..]).expect("IP options"),
                    dont_fragment: true,
                    identification: 0x1234,
                    ..ipv4(
                        self.traffic_class,
                        self.hop_limit,
                        (source.octets(), destination.octets()),
                    )
                };
                IpHeaders::Ipv4(header, Default::default())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let addresses = (source.octets(), destination.octets());
                let header = ipv6(self.traffic_class, self.hop_limit, addresses);
                IpHeaders::Ipv6(header, Default::default())
            }
            addresses => panic!("{addresses:?}: of two IP versions"),
        };
        PacketBuilder::ethernet2(SENDER, HOST).ip(headers)
    }
}

/// The frame behind VLAN tags, the outermost first: each its EtherType, and its priority and id.
///
/// # Panics
/// When it is shorter than its MACs.
pub fn tagged(frame: &[u8], tags: &[[u16; 2]]) -> Vec<u8> {
    let (macs, rest) = frame.split_at(12);
    let tags: Vec<u8> = tags.iter().flatten().flat_map(|half| half.to_be_bytes()).collect();
    [macs, &tags, rest].concat()
}

/// A tunnel's header to be.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel {
    /// Destination and source of the Ethernet header.
    pub macs: ([u8; 6], [u8; 6]),
    /// Outer source.
    pub source: IpAddr,
    /// Outer destination.
    pub destination: IpAddr,
    /// Outer flow label, of an IPv6 tunnel.
    pub flow_label: u32,
}

impl Tunnel {
    /// `frame` inside the tunnel: DSCP and ECN copied, hop limit 64, DF set; the inner packet as it is.
    pub fn around(&self, frame: &[u8]) -> Vec<u8> {
        let (protocol, _) = inner_header(frame);
        self.around_with(frame, protocol, &[])
    }

    /// The same in GUE, from and to a UDP port, without a checksum.
    ///
    /// # Panics
    /// When the packet is longer than any.
    pub fn around_in_gue(&self, frame: &[u8], (from, to): (u16, u16)) -> Vec<u8> {
        let (protocol, _) = inner_header(frame);
        let length = u16::try_from(ip_length(frame) + 12).expect("length of a datagram");
        let udp = UdpHeader { source_port: from, destination_port: to, length, checksum: 0 };
        // Variant 0, no control message, no optional fields, no flags.
        let shim = [&udp.to_bytes()[..], &[0, protocol.0, 0, 0]].concat();
        self.around_with(frame, IpNumber::UDP, &shim)
    }

    fn around_with(&self, frame: &[u8], protocol: IpNumber, shim: &[u8]) -> Vec<u8> {
        let (inner, padding) = frame[ETHERNET..].split_at(ip_length(frame));
        let (_, traffic_class) = inner_header(frame);
        let mut out = [self.macs.0, self.macs.1].concat();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                out.extend([0x08, 0x00]);
                let mut header = Ipv4Header {
                    dont_fragment: true,
                    protocol,
                    ..ipv4(traffic_class, 64, (source.octets(), destination.octets()))
                };
                header
                    .set_payload_len(shim.len() + inner.len())
                    .expect("length of an inner packet");
                header.header_checksum = header.calc_header_checksum();
                header.write(&mut out).expect("write to memory");
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                out.extend([0x86, 0xdd]);
                let mut header = Ipv6Header {
                    flow_label: Ipv6FlowLabel::try_new(self.flow_label).expect("20 bits"),
                    next_header: protocol,
                    ..ipv6(traffic_class, 64, (source.octets(), destination.octets()))
                };
                header
                    .set_payload_length(shim.len() + inner.len())
                    .expect("length of an inner packet");
                header.write(&mut out).expect("write to memory");
            }
            addresses => panic!("{addresses:?}: of two IP versions"),
        }
        [&out, shim, inner, padding].concat()
    }
}

/// Protocol number of an IP packet in another one, and its traffic class.
const fn inner_header(frame: &[u8]) -> (IpNumber, u8) {
    let (first, second) = (frame[ETHERNET], frame[ETHERNET + 1]);
    match first >> 4 {
        4 => (IpNumber::IPV4, second),
        _ => (IpNumber::IPV6, first << 4 | second >> 4),
    }
}

fn ipv4(traffic_class: u8, ttl: u8, (source, destination): ([u8; 4], [u8; 4])) -> Ipv4Header {
    Ipv4Header {
        dscp: IpDscp::try_new(traffic_class >> 2).expect("six bits"),
        ecn: IpEcn::try_new(traffic_class & 3).expect("two bits"),
        time_to_live: ttl,
        source,
        destination,
        ..Default::default()
    }
}

fn ipv6(
    traffic_class: u8,
    hop_limit: u8,
    (source, destination): ([u8; 16], [u8; 16]),
) -> Ipv6Header {
    Ipv6Header { traffic_class, hop_limit, source, destination, ..Default::default() }
}

/// Length of the IP packet in a frame, by its own header: what follows is padding.
pub fn ip_length(frame: &[u8]) -> usize {
    let at = |offset| usize::from(u16::from_be_bytes([frame[offset], frame[offset + 1]]));
    if frame[ETHERNET] >> 4 == 4 { at(16) } else { at(18) + 40 }
}

/// The IPv6 frame with extension headers in front of what it carries: each is its kind and its bytes, whose
/// first is made to say what follows.
///
/// # Panics
/// When it is longer than any IPv6 packet.
pub fn extended(frame: &[u8], headers: &[(u8, &str)]) -> Vec<u8> {
    const NEXT: usize = ETHERNET + 6;
    let mut inserted = Vec::new();
    let followed_by = headers.iter().skip(1).map(|(kind, _)| *kind).chain([frame[NEXT]]);
    for ((_, text), next) in headers.iter().zip(followed_by) {
        let header = hex(text);
        inserted.extend([&[next], &header[1..]].concat());
    }
    let (head, rest) = frame.split_at(ETHERNET + 40);
    let mut out = [head, &inserted, rest].concat();
    let length = u16::try_from(ip_length(frame) - 40 + inserted.len()).expect("an IPv6 length");
    out[ETHERNET + 4..NEXT].copy_from_slice(&length.to_be_bytes());
    if let Some((kind, _)) = headers.first() {
        out[NEXT] = *kind;
    }
    out
}

/// The frame after one hop: TTL or hop limit less by one, header checksum computed anew.
///
/// # Panics
/// When it holds no IP header.
pub fn hopped(frame: &[u8]) -> Vec<u8> {
    let (ethernet, packet) = frame.split_at(ETHERNET);
    let mut out = ethernet.to_vec();
    if packet[0] >> 4 == 4 {
        let (mut header, rest) = Ipv4Header::from_slice(packet).expect("an IPv4 header");
        header.time_to_live -= 1;
        header.header_checksum = header.calc_header_checksum();
        header.write_raw(&mut out).expect("write to memory");
        out.extend(rest);
    } else {
        let (mut header, rest) = Ipv6Header::from_slice(packet).expect("an IPv6 header");
        header.hop_limit -= 1;
        header.write(&mut out).expect("write to memory");
        out.extend(rest);
    }
    out
}

/// The frame with another traffic class, DSCP and ECN, of its first IP header; the checksum computed anew.
///
/// # Panics
/// When it holds no IP header.
pub fn classed(frame: &[u8], traffic_class: u8) -> Vec<u8> {
    let (ethernet, packet) = frame.split_at(ETHERNET);
    let mut out = ethernet.to_vec();
    let rest = if packet[0] >> 4 == 4 {
        let (mut header, rest) = Ipv4Header::from_slice(packet).expect("an IPv4 header");
        header.dscp = IpDscp::try_new(traffic_class >> 2).expect("six bits");
        header.ecn = IpEcn::try_new(traffic_class & 3).expect("two bits");
        header.header_checksum = header.calc_header_checksum();
        header.write_raw(&mut out).expect("write to memory");
        rest
    } else {
        let (mut header, rest) = Ipv6Header::from_slice(packet).expect("an IPv6 header");
        header.traffic_class = traffic_class;
        header.write(&mut out).expect("write to memory");
        rest
    };
    [&out, rest].concat()
}

/// Bytes from hexadecimal digits; white space between them is skipped.
///
/// # Panics
/// When there is anything else.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).unwrap_or_else(|| panic!("{c}: no hexadecimal digit")))
        .collect();
    assert!(digits.len().is_multiple_of(2), "half a byte in {text}");
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
