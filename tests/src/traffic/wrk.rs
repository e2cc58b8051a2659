//! wrk: as many requests as it can, a connection each.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::process::PATIENCE;
use crate::topology::Node;

/// What wrk is to do.
#[derive(Clone, Copy, Debug)]
pub struct Wrk {
    /// Connections at the same time.
    pub connections: u32,
    /// How long.
    pub time: Duration,
}

/// What wrk saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrkReport {
    /// Requests with an answer.
    pub answered: u64,
    /// Connections that failed, reads and writes that failed, and answers that did not come in time.
    pub failed: u64,
    /// Answers that were no success.
    pub bad_status: u64,
}

impl Wrk {
    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be run or its report cannot be read.
    pub fn run(&self, node: &Node, url: &str) -> Result<WrkReport> {
        let connections = format!("-c{}", self.connections);
        let time = format!("-d{}s", self.time.as_secs().max(1));
        // By itself it calls an answer after two seconds none: a SYN that has to be repeated takes one.
        let patience = format!("{}s", PATIENCE.as_secs());
        let words = ["-t1", &connections, &time, "--timeout", &patience];
        let text = node.run("wrk", words.iter().chain(&["-H", "Connection: close", url]))?;
        parse(&text)
    }
}

fn parse(text: &str) -> Result<WrkReport> {
    let mut report = WrkReport::default();
    let mut seen = false;
    for line in text.lines().map(str::trim) {
        if let Some((count, _)) = line.split_once(" requests in ") {
            report.answered = count.parse().context("wrk: requests")?;
            seen = true;
        } else if let Some(errors) = line.strip_prefix("Socket errors: ") {
            for part in errors.split(", ") {
                let count = part.rsplit(' ').next().unwrap_or_default();
                report.failed += count.parse::<u64>().context("wrk: socket errors")?;
            }
        } else if let Some(count) = line.strip_prefix("Non-2xx or 3xx responses: ") {
            report.bad_status = count.parse().context("wrk: responses")?;
        }
    }
    seen.then_some(report).with_context(|| format!("wrk: no report in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report_is_read_with_and_without_errors() {
        let fine = "Running 2s test @ http://[::1]/\n  49501 requests in 2.01s, 6.89MB read\n";
        let report = WrkReport { answered: 49501, ..WrkReport::default() };
        assert_eq!(parse(fine).unwrap(), report);
        let poor = "  7 requests in 2.01s, 1KB read\n\
                    \x20 Socket errors: connect 1, read 20, write 300, timeout 4000\n\
                    \x20 Non-2xx or 3xx responses: 5\n";
        let report = WrkReport { answered: 7, failed: 4321, bad_status: 5 };
        assert_eq!(parse(poor).unwrap(), report);
        assert!(parse("unable to connect").is_err());
    }
}
