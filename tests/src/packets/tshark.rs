//! What `tshark` says of frames: it shares no code with us.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

/// Validate every checksum of IP and ICMP; follow no conversations, since rows have nothing to do with each
/// other. A UDP tunnel over IPv6 may go without a checksum (RFC 6935).
const PREFERENCES: [&str; 4] = [
    "ip.check_checksum:TRUE",
    "tcp.analyze_sequence_numbers:FALSE",
    "ip.defragment:FALSE",
    "udp.ignore_ipv6_zero_checksum:TRUE",
];

/// What TCP and UDP say of themselves can be validated where all of the packet is there; `tshark` tries it
/// where a part of it is quoted, too.
const WHOLE: [&str; 2] = ["tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"];
const IN_PART: [&str; 2] = ["tcp.check_checksum:FALSE", "udp.check_checksum:FALSE"];

/// A dissector of GUE, which this tshark may not have.
const GUE: &str = include_str!("gue.lua");

/// Payloads are bytes of no meaning, whatever the port.
const PAYLOADS: [&str; 2] = ["dns", "http"];

/// Decodes frames, each with a name; gives the stack of protocols of each. What is quoted in them is there
/// whole, or else in part.
///
/// # Errors
/// When `tshark` is missing, finds fault with a frame, or tells of another number of frames.
pub fn decode(
    frames: &[Vec<u8>],
    names: &[String],
    is_whole: bool,
    file: &Path,
) -> Result<Vec<String>> {
    fs::write(file, pcap(frames)).with_context(|| file.display().to_string())?;
    let gue = file.with_extension("lua");
    fs::write(&gue, GUE).with_context(|| gue.display().to_string())?;
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(file);
    command.arg("-X").arg(format!("lua_script:{}", gue.display()));
    let transport = if is_whole { WHOLE } else { IN_PART };
    for preference in PREFERENCES.into_iter().chain(transport) {
        command.args(["-o", preference]);
    }
    for protocol in PAYLOADS {
        command.args(["--disable-protocol", protocol]);
    }
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    for field in ["frame.protocols", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message"] {
        command.args(["-e", field]);
    }
    let output = command.output().context("start tshark")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    ensure!(said.lines().count() == frames.len(), "tshark: tells of other frames:\n{said}");
    said.lines().zip(names).map(|(line, name)| judge(line).with_context(|| name.clone())).collect()
}

/// The protocols of a line of fields, if it tells of no fault.
fn judge(line: &str) -> Result<String> {
    /// `PI_WARN` of epan/proto.h; what is below is talk.
    const WARNING: u32 = 0x0060_0000;
    let fields: Vec<_> = line.split('\t').collect();
    let [protocols, malformed, severities, messages] = fields[..] else {
        anyhow::bail!("tshark: four fields expected: {line}");
    };
    ensure!(malformed.is_empty(), "malformed: {line}");
    let mut messages = messages.split(',');
    for severity in severities.split(',').filter(|severity| !severity.is_empty()) {
        let message = messages.next().unwrap_or_default();
        // A reset is no fault of a frame, though tshark warns of it.
        let is_talk = severity.parse::<u32>()? < WARNING || message == "Connection reset (RST)";
        ensure!(is_talk, "tshark warns: {line}");
    }
    Ok(protocols.to_owned())
}

/// A capture file of Ethernet frames, all taken at the same moment.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1_u32] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [0, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}
