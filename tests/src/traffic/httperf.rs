//! httperf: requests at a fixed rate, a fresh connection each, whether they are answered or not.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::topology::Node;

/// What httperf is to do.
#[derive(Clone, Copy, Debug)]
pub struct Httperf {
    /// Connections, each with one request.
    pub connections: u32,
    /// Connections opened a second.
    pub rate: f64,
    /// A connection that takes longer is given up and counted as an error.
    pub timeout: Duration,
}

/// What httperf saw. Times are milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HttperfReport {
    /// Connections that were opened.
    pub connections: u64,
    /// Answers.
    pub replies: u64,
    /// Answers with status 200 to 299.
    pub successes: u64,
    /// Timeouts, refused and reset connections, and whatever the client's own system lacked.
    pub errors: u64,
    /// From the first connection to the last answer, seconds.
    pub seconds: f64,
    /// Connections a second over that time.
    pub rate: f64,
    /// Shortest life of a connection.
    pub min_ms: f64,
    /// Average life of a connection: what the tool's users quote as response time.
    pub average_ms: f64,
    /// Longest.
    pub max_ms: f64,
    /// Median.
    pub median_ms: f64,
    /// Standard deviation.
    pub deviation_ms: f64,
    /// Average time until a connection was open.
    pub connect_ms: f64,
}

impl Httperf {
    /// The command line, as a user types it.
    pub fn arguments(&self, server: &str) -> Vec<String> {
        let Self { connections, rate, timeout } = self;
        let timeout = timeout.as_secs_f64();
        let line = format!(
            "--server {server} --num-conns {connections} --rate {rate} --timeout {timeout}"
        );
        line.split(' ').map(str::to_owned).collect()
    }

    /// Asks `server` for `/`, to the end.
    ///
    /// # Errors
    /// When it cannot be run or its report cannot be read.
    pub fn run(&self, node: &Node, server: &str) -> Result<HttperfReport> {
        parse(&node.run("httperf", self.arguments(server))?)
    }
}

/// Reads the report (httperf(1), *Output*).
fn parse(text: &str) -> Result<HttperfReport> {
    let mut report = HttperfReport::default();
    let total = line(text, "Total:")?;
    report.connections = count(after(total, "connections")?)?;
    report.replies = count(after(total, "replies")?)?;
    report.seconds = number(after(total, "test-duration")?)?;
    report.rate = number(line(text, "Connection rate:")?)?;
    let life = line(text, "Connection time [ms]: min").context("httperf: no answer at all")?;
    report.min_ms = number(life)?;
    report.average_ms = number(after(life, "avg")?)?;
    report.max_ms = number(after(life, "max")?)?;
    report.median_ms = number(after(life, "median")?)?;
    report.deviation_ms = number(after(life, "stddev")?)?;
    report.connect_ms = number(line(text, "Connection time [ms]: connect")?)?;
    report.successes = count(after(line(text, "Reply status:")?, "2xx=")?)?;
    report.errors = count(after(line(text, "Errors: total")?, "")?)?;
    Ok(report)
}

/// What follows a heading at the start of a line.
fn line<'a>(text: &'a str, heading: &str) -> Result<&'a str> {
    let found = text.lines().find_map(|line| line.strip_prefix(heading));
    found.with_context(|| format!("httperf: no line {heading:?} in:\n{text}"))
}

/// What follows a word within a line.
fn after<'a>(line: &'a str, word: &str) -> Result<&'a str> {
    let at = line.find(word).with_context(|| format!("httperf: no {word:?} in {line:?}"))?;
    Ok(&line[at + word.len()..])
}

fn first(text: &str) -> Result<&str> {
    text.split_whitespace().next().with_context(|| format!("httperf: nothing in {text:?}"))
}

fn count(text: &str) -> Result<u64> {
    let word = first(text)?;
    word.parse().with_context(|| format!("httperf: {word:?} is no count"))
}

fn number(text: &str) -> Result<f64> {
    let word = first(text)?;
    match word.parse() {
        Ok(number) if f64::is_finite(number) => Ok(number),
        _ => bail!("httperf: {word:?} is no number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by httperf 0.9.0 of a server that reset one of twenty connections and answered
    /// another with status 500.
    const PRINTED: &str = "\
httperf --timeout=2.5 --client=0/1 --server=127.0.0.1 --port=18099 --uri=/ --rate=100 \
--send-buffer=4096 --recv-buffer=16384 --num-conns=20 --num-calls=1
Maximum connect burst length: 1

Total: connections 20 requests 20 replies 19 test-duration 0.196 s

Connection rate: 102.1 conn/s (9.8 ms/conn, <=1 concurrent connections)
Connection time [ms]: min 0.1 avg 5.2 max 8.8 median 5.5 stddev 1.5
Connection time [ms]: connect 0.0
Connection length [replies/conn]: 1.000

Request rate: 102.1 req/s (9.8 ms/req)
Request size [B]: 62.0

Reply rate [replies/s]: min 0.0 avg 0.0 max 0.0 stddev 0.0 (0 samples)
Reply time [ms]: response 5.1 transfer 0.0
Reply size [B]: header 57.0 content 2.0 footer 0.0 (total 59.0)
Reply status: 1xx=0 2xx=18 3xx=0 4xx=0 5xx=1

CPU time [s]: user 0.05 system 0.14 (user 26.4% system 73.3% total 99.7%)
Net I/O: 11.8 KB/s (0.1*10^6 bps)

Errors: total 1 client-timo 0 socket-timo 0 connrefused 0 connreset 1
Errors: fd-unavail 0 addrunavail 0 ftab-full 0 other 0
";

    #[test]
    fn its_report_is_read_whole() {
        let expected = HttperfReport {
            connections: 20,
            replies: 19,
            successes: 18,
            errors: 1,
            seconds: 0.196,
            rate: 102.1,
            min_ms: 0.1,
            average_ms: 5.2,
            max_ms: 8.8,
            median_ms: 5.5,
            deviation_ms: 1.5,
            connect_ms: 0.0,
        };
        assert_eq!(parse(PRINTED).unwrap(), expected);
    }

    #[test]
    fn a_report_that_lacks_something_is_refused() {
        assert!(parse("").is_err());
        assert!(parse(&PRINTED.replace("avg 5.2", "avg nan")).is_err());
        assert!(parse(&PRINTED.replace("Errors: total", "Errors:")).is_err());
    }

    #[test]
    fn the_rate_is_passed_as_it_is() {
        let timeout = Duration::from_millis(2500);
        let httperf = Httperf { connections: 500, rate: 12.5, timeout };
        let expected = "--server 192.0.2.1 --num-conns 500 --rate 12.5 --timeout 2.5";
        assert_eq!(httperf.arguments("192.0.2.1").join(" "), expected);
    }
}
