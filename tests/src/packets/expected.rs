//! What must come of a frame: its verdict, the frame afterwards, and the counters that move.

use std::fmt::Write as _;

use anyhow::{Result, ensure};

use super::{
    balancer::Ran,
    counters::{BACKENDS, Counters, SERVICES, VERDICTS},
    verdicts,
};

/// `XDP_DROP`, include/uapi/linux/bpf.h.
const XDP_DROP: u32 = 1;

/// What must come of a frame.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Label of the verdict.
    pub verdict: &'static str,
    /// The frame afterwards; `None` for one that is dropped: nobody sees it.
    pub frame: Option<Vec<u8>>,
    /// Who is said to have had it: service, backend, connections.
    pub traffic: Option<(u32, u32, u64)>,
}

impl Expected {
    /// The counters that must move, by a frame of so many bytes, and no others.
    ///
    /// # Errors
    /// When the verdict is not in the document.
    pub fn counters(&self, bytes: u64) -> Result<Counters> {
        let mut counters = Counters::default();
        counters.add((VERDICTS, verdicts::named(self.verdict)?.number), [1, bytes, 0]);
        if let Some((service, backend, connections)) = self.traffic {
            counters.add((SERVICES, service), [1, bytes, connections]);
            counters.add((BACKENDS, backend), [1, bytes, connections]);
        }
        Ok(counters)
    }

    /// Compares what was expected of a frame of so many bytes with what was.
    ///
    /// # Errors
    /// Says what differs.
    pub fn check(&self, bytes: usize, ran: &Ran, moved: &Counters) -> Result<()> {
        let counters = self.counters(bytes as u64)?;
        ensure!(*moved == counters, "counters moved: {:?}\nexpected: {:?}", moved.0, counters.0);
        let action = verdicts::named(self.verdict)?.action;
        ensure!(ran.action == action, "XDP action {}, expected {action}", ran.action);
        // The row's own word on whether anybody gets the frame, not only the document's.
        let dropped = ran.action == XDP_DROP;
        ensure!(dropped == self.frame.is_none(), "{}: dropped: {dropped}", self.verdict);
        if let Some(frame) = &self.frame {
            ensure!(ran.frame == *frame, "frame:\n{}expected:\n{}", dump(&ran.frame), dump(frame));
        }
        Ok(())
    }

    /// Whether a frame goes out.
    pub fn is_sent(&self) -> bool {
        self.traffic.is_some() || self.verdict.starts_with("answered_")
    }
}

fn dump(frame: &[u8]) -> String {
    let mut text = String::new();
    for (number, line) in frame.chunks(16).enumerate() {
        let _ = write!(text, "  {:04x} ", 16 * number);
        for byte in line {
            let _ = write!(text, " {byte:02x}");
        }
        text.push('\n');
    }
    text
}
