//! Writes the four block types of pcap-ng (draft-ietf-opsawg-pcapng) that a capture needs. The only crate that
//! writes pcap-ng is a release candidate, and using it takes more code than this.

use std::io::{self, Write};

use spillway_proto::v1::CapturedPacket;

use super::session::{CaptureCounts, CaptureResult};

/// Block types.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

/// Option codes.
const COMMENT: u16 = 1;
const SECTION_PROGRAM: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const STATISTICS_ACCEPTED: u16 = 6;
const STATISTICS_DROPPED: u16 = 7;
const PACKET_FLAGS: u16 = 2;
const PACKET_NUMBER: u16 = 5;

/// Shows a reader the byte order of numbers.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;
/// A power of ten: nanoseconds.
const NANOSECONDS: u8 = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    In = 1,
    Out = 2,
}

pub(super) struct PcapNg<W> {
    sink: W,
    snap: u32,
    /// Interfaces described so far; the index is the number.
    interfaces: Vec<(String, Direction)>,
    /// Time of the last packet, nanoseconds.
    last: u64,
}

impl<W: Write> PcapNg<W> {
    /// Writes the section header. `snap` is the maximum length of a frame, `program` names the writer.
    pub(super) fn new(mut sink: W, snap: u32, program: &str) -> io::Result<Self> {
        let mut body = Body::default();
        body.number(BYTE_ORDER);
        // Version 1.0, of unknown length.
        body.bytes(&[1, 0, 0, 0]).bytes(&[0xff; 8]);
        body.option(SECTION_PROGRAM, program.as_bytes()).end_of_options();
        body.write(&mut sink, SECTION)?;
        sink.flush()?;
        Ok(Self { sink, snap, interfaces: Vec::new(), last: 0 })
    }

    /// Writes a packet as received, and as sent if it was.
    pub(super) fn packet(&mut self, packet: &CapturedPacket) -> io::Result<()> {
        let at = packet.at.unwrap_or_default();
        self.last = at.seconds as u64 * 1_000_000_000 + at.nanos as u64;
        let comment = comment(packet);
        let Some(left) = &packet.left else {
            let frame = (&*packet.frame, packet.length);
            return self.frame(&packet.interface, Direction::In, frame, packet.number, &comment);
        };
        let before = format!("{comment}, before");
        let frame = (&*packet.frame, packet.length);
        self.frame(&packet.interface, Direction::In, frame, packet.number, &before)?;
        let after = format!("{comment}, after");
        let frame = (&*left.frame, left.length);
        self.frame(&left.interface, Direction::Out, frame, packet.number, &after)
    }

    /// Writes the counts, at the first interface: they are not counted by interface.
    pub(super) fn summary(&mut self, result: &CaptureResult) -> io::Result<()> {
        let Some(CaptureCounts { matched, lost, .. }) = result.counted else { return Ok(()) };
        if self.interfaces.is_empty() {
            return Ok(());
        }
        let mut body = Body::default();
        body.number(0).time(self.last);
        body.option(COMMENT, format!("of all interfaces: {}", result.describe()).as_bytes());
        body.option(STATISTICS_ACCEPTED, &matched.to_le_bytes());
        body.option(STATISTICS_DROPPED, &lost.to_le_bytes()).end_of_options();
        body.write(&mut self.sink, STATISTICS)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    fn frame(
        &mut self,
        interface: &str,
        direction: Direction,
        (frame, length): (&[u8], u32),
        number: u64,
        comment: &str,
    ) -> io::Result<()> {
        let interface = self.interface(interface, direction)?;
        let mut body = Body::default();
        body.number(interface).time(self.last);
        body.number(frame.len() as u32).number(length).bytes(frame);
        body.option(COMMENT, comment.as_bytes());
        body.option(PACKET_FLAGS, &(direction as u32).to_le_bytes());
        body.option(PACKET_NUMBER, &number.to_le_bytes()).end_of_options();
        body.write(&mut self.sink, PACKET)
    }

    /// The number of an interface. Writes its description the first time.
    fn interface(&mut self, name: &str, direction: Direction) -> io::Result<u32> {
        let known =
            self.interfaces.iter().position(|known| (&*known.0, known.1) == (name, direction));
        if let Some(known) = known {
            return Ok(known as u32);
        }
        let mut body = Body::default();
        body.bytes(&ETHERNET.to_le_bytes()).bytes(&[0, 0]).number(self.snap);
        let suffix = match direction {
            Direction::In => "in",
            Direction::Out => "out",
        };
        body.option(INTERFACE_NAME, format!("{name} {suffix}").as_bytes());
        body.option(INTERFACE_RESOLUTION, &[NANOSECONDS]).end_of_options();
        body.write(&mut self.sink, INTERFACE)?;
        self.interfaces.push((name.into(), direction));
        Ok(self.interfaces.len() as u32 - 1)
    }
}

fn comment(packet: &CapturedPacket) -> String {
    let CapturedPacket { number, verdict, action, backend, .. } = packet;
    let backend = match &**backend {
        "" => String::new(),
        backend => format!(", backend {backend}"),
    };
    format!("packet {number}: verdict {verdict} ({action}){backend}")
}

/// The body of a block.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn number(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Two numbers, the high one first.
    fn time(&mut self, nanoseconds: u64) -> &mut Self {
        self.number((nanoseconds >> 32) as u32).number(nanoseconds as u32)
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    /// Pads to a multiple of four bytes.
    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        self.pad();
        // Lengths have 16 bits; nothing here is longer.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.bytes(&code.to_le_bytes()).bytes(&(value.len() as u16).to_le_bytes()).bytes(value);
        self.pad();
        self
    }

    fn end_of_options(&mut self) -> &mut Self {
        self.number(0)
    }

    fn write(&self, sink: &mut impl Write, kind: u32) -> io::Result<()> {
        // Type and length come before the body, the length again after it.
        let length = self.0.len() as u32 + 12;
        sink.write_all(&kind.to_le_bytes())?;
        sink.write_all(&length.to_le_bytes())?;
        sink.write_all(&self.0)?;
        sink.write_all(&length.to_le_bytes())
    }
}
