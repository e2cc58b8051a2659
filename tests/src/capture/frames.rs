//! Reading a capture.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::topology::Node;

/// Validate every checksum, of which a UDP tunnel over IPv6 may have none (RFC 6935); do not follow conversations,
/// of which a one-way path shows one half.
const PREFERENCES: [&str; 5] = [
    "ip.check_checksum:TRUE",
    "tcp.check_checksum:TRUE",
    "udp.check_checksum:TRUE",
    "udp.ignore_ipv6_zero_checksum:TRUE",
    "tcp.analyze_sequence_numbers:FALSE",
];

/// What applications say to each other is theirs, and tshark would guess at it.
const APPLICATIONS: [&str; 2] = ["tcp.port==1-65535,data", "udp.port==1-65535,data"];

/// What a frame must not be: broken, with a wrong checksum, or anything else that tshark warns of.
/// That a client resets a connection or hears of a packet that came twice is no fault of a frame.
/// Nor is a TCP checksum of ffff where 0000 would do as well: of the two zeros of such sums, the
/// kernel always writes that one (`skb_checksum_help`), once in 65,536 segments.
const FAULTY: &str = "_ws.malformed || ip.checksum.status == 0 \
                      || (tcp.checksum.status == 0 && !tcp.checksum.ffff) \
                      || udp.checksum.status == 0 || icmpv6.checksum.status == 0 \
                      || (_ws.expert.severity >= 6291456 && !tcp.checksum.ffff \
                          && !tcp.connection.rst && !tcp.options.sack.dsack)";

/// Captured frames.
#[derive(Debug)]
pub struct Frames {
    node: Node,
    file: PathBuf,
}

impl Frames {
    /// Those of a file that tshark can read, from a node that reaches it.
    pub fn new(node: Node, file: PathBuf) -> Self {
        Self { node, file }
    }

    /// The file they are in.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Fields of each frame that matches `filter` (in tshark's language), in order. A field that
    /// occurs more than once, as addresses in a tunnel do, has its values outermost first, separated
    /// by commas.
    ///
    /// # Errors
    /// When tshark cannot read the file or knows no such filter or field.
    pub fn fields<const N: usize>(
        &self,
        filter: &str,
        fields: [&str; N],
    ) -> Result<Vec<[String; N]>> {
        let file = self.file.display().to_string();
        let mut arguments = vec!["-n", "-r", &file];
        arguments.extend(PREFERENCES.iter().flat_map(|preference| ["-o", preference]));
        arguments.extend(APPLICATIONS.iter().flat_map(|rule| ["-d", rule]));
        arguments.extend(["-Y", filter, "-T", "fields", "-E", "separator=/t"]);
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        let text = self.node.run("tshark", arguments)?;
        text.lines()
            .map(|line| {
                let values: Vec<_> = line.split('\t').map(str::to_owned).collect();
                <[String; N]>::try_from(values)
                    .ok()
                    .with_context(|| format!("tshark: {N} fields expected in {line:?}"))
            })
            .collect()
    }

    /// The bytes of each frame that matches, in order, as many as were taken down.
    ///
    /// # Errors
    /// As [`Self::fields`].
    pub fn bytes(&self, filter: &str) -> Result<Vec<Vec<u8>>> {
        let file = self.file.display().to_string();
        let arguments = ["-n", "-r", &file, "-Y", filter, "-T", "jsonraw"];
        let decoding = APPLICATIONS.iter().flat_map(|rule| ["-d", rule]);
        let text = self.node.run("tshark", arguments.into_iter().chain(decoding))?;
        let frames: Vec<Value> = serde_json::from_str(&text).context("tshark: no JSON")?;
        let of = |frame: &Value| -> Option<Vec<u8>> {
            let digits = frame["_source"]["layers"]["frame_raw"][0].as_str()?;
            let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
            (0..digits.len()).step_by(2).map(byte).collect()
        };
        frames.iter().map(|frame| of(frame).context("tshark: a frame without bytes")).collect()
    }

    /// Number of frames that match.
    ///
    /// # Errors
    /// As [`Self::fields`].
    pub fn count(&self, filter: &str) -> Result<usize> {
        Ok(self.fields(filter, ["frame.number"])?.len())
    }

    /// Fails if tshark finds fault with any frame, and if there is none to look at.
    ///
    /// # Errors
    /// Lists the faulty frames.
    pub fn assert_faultless(&self) -> Result<()> {
        ensure!(self.count("frame")? > 0, "{}: no frames", self.file.display());
        let faulty =
            self.fields(FAULTY, ["frame.number", "frame.protocols", "_ws.expert.message"])?;
        let list: Vec<_> = faulty.iter().take(10).map(|fields| fields.join(" ")).collect();
        let count = faulty.len();
        ensure!(count == 0, "tshark finds fault with {count} frames:\n{}", list.join("\n"));
        Ok(())
    }
}
