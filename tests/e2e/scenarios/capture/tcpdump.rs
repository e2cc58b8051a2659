//! Compares a capture with what tcpdump saw on the wire.

use anyhow::{Context as _, Result, ensure};
use lb_tests::capture::Frames;

/// What must be there of some packets.
pub(crate) struct ExpectedFrames<'a> {
    /// Their frames on the way to the balancer.
    pub(crate) came: Vec<Vec<u8>>,
    /// Their frames on the way from it.
    pub(crate) left: Vec<Vec<u8>>,
    /// The interface of the balancer that they leave by.
    pub(crate) out: &'a str,
    /// What is said of one that came so.
    pub(crate) decided: &'a dyn Fn(&[u8]) -> Result<String>,
    /// What of a frame that came is in the one that leaves for it.
    pub(crate) kept: fn(&[u8]) -> Result<&[u8]>,
}

impl ExpectedFrames<'_> {
    /// Compares: each packet stands there twice, as it came and as it left, byte by byte; and nothing else does.
    /// How many packets there are is answered.
    pub(crate) fn compare(&self, taken: &Frames) -> Result<usize> {
        taken.assert_faultless()?;
        let fields = ["frame.interface_name", "frame.packet_id", "frame.comment"];
        let (fields, bytes) = (taken.fields("frame", fields)?, taken.bytes("frame")?);
        let (mut came, mut left) = (Vec::new(), Vec::new());
        let pairs = fields.chunks(2).zip(bytes.chunks(2));
        for (number, (fields, bytes)) in (1..).zip(pairs) {
            let ([before, after], [in_, out]) = (fields, bytes) else {
                anyhow::bail!("packet {number} stands there once");
            };
            let decided = (self.decided)(in_).with_context(|| format!("packet {number}"))?;
            let line = |interface: &str, place: &str| {
                let comment = format!("packet {number}: {decided}, {place}");
                [interface.to_owned(), number.to_string(), comment]
            };
            let expected = [line("eth0 in", "before"), line(&format!("{} out", self.out), "after")];
            ensure!([before, after] == expected.each_ref(), "{fields:?}\nexpected\n{expected:?}");
            let kept = (self.kept)(in_)?;
            let has_it = out.windows(kept.len()).any(|part| part == kept);
            ensure!(has_it, "packet {number}: {in_:02x?}\nleft as\n{out:02x?}");
            came.push(in_);
            left.push(out);
        }
        same("as they came", came, &self.came)?;
        same("as they left", left, &self.left)?;
        Ok(self.came.len())
    }
}

/// The last packets of one connection and the first of the next may change places.
fn same(what: &str, mut there: Vec<&Vec<u8>>, wire: &[Vec<u8>]) -> Result<()> {
    let mut wire: Vec<_> = wire.iter().collect();
    ensure!(!wire.is_empty(), "{what}: nothing on the wire");
    there.sort();
    wire.sort();
    ensure!(there == wire, "{what}:\n{there:02x?}\nthe wire has\n{wire:02x?}");
    Ok(())
}

/// What is behind the IP header, without options, and its tags.
pub(crate) fn transport(frame: &[u8]) -> Result<&[u8]> {
    let ip = packet(frame)?;
    ip.get(if ip[0] >> 4 == 4 { 20 } else { 40 }..).context("no transport")
}

/// The IP packet of a frame.
pub(crate) fn packet(frame: &[u8]) -> Result<&[u8]> {
    let mut at = 12;
    while let Some([0x81, 0x00] | [0x88, 0xa8]) = frame.get(at..at + 2) {
        at += 4;
    }
    frame.get(at + 2..).filter(|ip| !ip.is_empty()).context("no packet")
}
