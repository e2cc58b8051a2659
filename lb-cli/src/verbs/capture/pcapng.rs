//! The pcap-ng format (draft-ietf-opsawg-pcapng), as far as it is written here: four kinds of blocks. The
//! one crate that writes them is at a release candidate, and this is less than its use would be.

use std::io::{self, Write};

use spillway_proto::v1::CapturedPacket;

use super::heard::{Counted, End};

/// Types of blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

/// Codes of options.
const COMMENT: u16 = 1;
const SECTION_PROGRAM: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const STATISTICS_ACCEPTED: u16 = 6;
const STATISTICS_DROPPED: u16 = 7;
const PACKET_FLAGS: u16 = 2;
const PACKET_NUMBER: u16 = 5;

/// Says which end of numbers comes first: the one where this reads so.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;
/// A power of ten: nanoseconds.
const NANOSECONDS: u8 = 9;

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In = 1,
    Out = 2,
}

/// A file that is being written.
pub(super) struct PcapNg<W> {
    sink: W,
    snap: u32,
    /// Interfaces that were described, in this order.
    interfaces: Vec<(String, Way)>,
    /// When the last packet came, nanoseconds.
    last: u64,
}

impl<W: Write> PcapNg<W> {
    /// Begins one; `snap` is what is kept of a frame at most, `program` who writes it.
    pub(super) fn new(mut sink: W, snap: u32, program: &str) -> io::Result<Self> {
        let mut body = Body::default();
        body.number(BYTE_ORDER);
        // Version 1.0, of a length that is not known.
        body.bytes(&[1, 0, 0, 0]).bytes(&[0xff; 8]);
        body.option(SECTION_PROGRAM, program.as_bytes()).end_of_options();
        body.write(&mut sink, SECTION)?;
        sink.flush()?;
        Ok(Self { sink, snap, interfaces: Vec::new(), last: 0 })
    }

    /// A packet as it came, and as it left if it did.
    pub(super) fn packet(&mut self, packet: &CapturedPacket) -> io::Result<()> {
        let at = packet.at.unwrap_or_default();
        self.last = at.seconds as u64 * 1_000_000_000 + at.nanos as u64;
        let comment = comment(packet);
        let Some(left) = &packet.left else {
            let frame = (&*packet.frame, packet.length);
            return self.frame(&packet.interface, Way::In, frame, packet.number, &comment);
        };
        let before = format!("{comment}, before");
        let frame = (&*packet.frame, packet.length);
        self.frame(&packet.interface, Way::In, frame, packet.number, &before)?;
        let after = format!("{comment}, after");
        let frame = (&*left.frame, left.length);
        self.frame(&left.interface, Way::Out, frame, packet.number, &after)
    }

    /// What it came to, with the first interface: it is not known of each.
    pub(super) fn summary(&mut self, end: &End) -> io::Result<()> {
        let Some(Counted { matched, lost, .. }) = end.counted else { return Ok(()) };
        if self.interfaces.is_empty() {
            return Ok(());
        }
        let mut body = Body::default();
        body.number(0).time(self.last);
        body.option(COMMENT, format!("of all interfaces: {}", end.words()).as_bytes());
        body.option(STATISTICS_ACCEPTED, &matched.to_le_bytes());
        body.option(STATISTICS_DROPPED, &lost.to_le_bytes()).end_of_options();
        body.write(&mut self.sink, STATISTICS)
    }

    /// Hands all of it on.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    fn frame(
        &mut self,
        interface: &str,
        way: Way,
        (frame, length): (&[u8], u32),
        number: u64,
        comment: &str,
    ) -> io::Result<()> {
        let interface = self.interface(interface, way)?;
        let mut body = Body::default();
        body.number(interface).time(self.last);
        body.number(frame.len() as u32).number(length).bytes(frame);
        body.option(COMMENT, comment.as_bytes());
        body.option(PACKET_FLAGS, &(way as u32).to_le_bytes());
        body.option(PACKET_NUMBER, &number.to_le_bytes()).end_of_options();
        body.write(&mut self.sink, PACKET)
    }

    /// The number of an interface, which is described where it was not.
    fn interface(&mut self, name: &str, way: Way) -> io::Result<u32> {
        let known = self.interfaces.iter().position(|known| (&*known.0, known.1) == (name, way));
        if let Some(known) = known {
            return Ok(known as u32);
        }
        let mut body = Body::default();
        body.bytes(&ETHERNET.to_le_bytes()).bytes(&[0, 0]).number(self.snap);
        let direction = match way {
            Way::In => "in",
            Way::Out => "out",
        };
        body.option(INTERFACE_NAME, format!("{name} {direction}").as_bytes());
        body.option(INTERFACE_RESOLUTION, &[NANOSECONDS]).end_of_options();
        body.write(&mut self.sink, INTERFACE)?;
        self.interfaces.push((name.into(), way));
        Ok(self.interfaces.len() as u32 - 1)
    }
}

/// What became of a packet, in words.
fn comment(packet: &CapturedPacket) -> String {
    let CapturedPacket { number, verdict, action, backend, .. } = packet;
    let backend = match &**backend {
        "" => String::new(),
        backend => format!(", backend {backend}"),
    };
    format!("packet {number}: verdict {verdict} ({action}){backend}")
}

/// What stands in a block.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn number(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// As two numbers, the high one first.
    fn time(&mut self, nanoseconds: u64) -> &mut Self {
        self.number((nanoseconds >> 32) as u32).number(nanoseconds as u32)
    }

    /// Filled up to a multiple of four.
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    fn fill(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        self.fill();
        // Lengths are of 16 bits; nothing here is as long.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.bytes(&code.to_le_bytes()).bytes(&(value.len() as u16).to_le_bytes()).bytes(value);
        self.fill();
        self
    }

    fn end_of_options(&mut self) -> &mut Self {
        self.number(0)
    }

    fn write(&self, sink: &mut impl Write, kind: u32) -> io::Result<()> {
        // Type and length before it, the length once more behind it.
        let length = self.0.len() as u32 + 12;
        sink.write_all(&kind.to_le_bytes())?;
        sink.write_all(&length.to_le_bytes())?;
        sink.write_all(&self.0)?;
        sink.write_all(&length.to_le_bytes())
    }
}
