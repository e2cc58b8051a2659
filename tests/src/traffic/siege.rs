//! siege: many clients, a fresh connection for every request.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;

use crate::{process::Running, topology::Node};

/// What siege is to do.
#[derive(Clone, Copy, Debug)]
pub struct Siege {
    /// Clients that ask at the same time.
    pub clients: u32,
    /// Requests of each.
    pub requests: u32,
    /// Upper bound of the random wait before each request; none: as fast as it can.
    pub pause: Option<Duration>,
}

/// What siege saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SiegeReport {
    /// Requests with an answer.
    pub answered: u64,
    /// Requests without one: refused, reset, timed out.
    pub failed: u64,
    /// Answers a second.
    pub rate: f64,
    /// The average wait for an answer, seconds.
    pub average: f64,
    /// The longest, seconds.
    pub longest: f64,
}

/// A siege that is going on.
#[derive(Debug)]
pub struct Besieging {
    running: Running,
}

impl Siege {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, node: &Node, url: &str) -> Result<Besieging> {
        let rc = node.directory().join("siege.conf");
        let home = node.directory().join(".siege");
        fs::create_dir_all(&home).context("make .siege")?;
        // Without a file of its own in HOME it greets instead of starting at once.
        for path in [&rc, &home.join("siege.conf")] {
            fs::write(path, self.configuration()).context("write siege.conf")?;
        }
        let rc = rc.display().to_string();
        let (clients, requests) = (self.clients.to_string(), self.requests.to_string());
        let pause = format!("{:.3}", self.pause.unwrap_or_default().as_secs_f64());
        let mut arguments = vec!["-R", &rc, "-c", &clients, "-r", &requests];
        match self.pause {
            Some(_) => arguments.extend(["-d", &pause]),
            None => arguments.push("-b"),
        }
        arguments.push(url);
        let log = node.directory().join("siege.log");
        if log.exists() {
            fs::remove_file(&log).context("remove siege.log")?;
        }
        Ok(Besieging { running: node.spawn("siege", arguments)? })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be run or its report cannot be read.
    pub fn run(&self, node: &Node, url: &str) -> Result<SiegeReport> {
        self.start(node, url)?.finish()
    }

    fn configuration(&self) -> String {
        format!(
            "verbose = false\nquiet = true\ncolor = off\njson_output = true\nlogging = false\n\
             show-logfile = false\nspinner = false\nprotocol = HTTP/1.1\nconnection = close\n\
             parser = false\ncache = false\naccept-encoding = identity\nlimit = 1024\n\
             timeout = 60\nfailures = 1000000\nbenchmark = {}\n",
            self.pause.is_none()
        )
    }
}

impl Besieging {
    /// Whether it has more to ask.
    ///
    /// # Errors
    /// When its state cannot be looked at.
    pub fn goes_on(&mut self) -> Result<bool> {
        Ok(self.running.ended()?.is_none())
    }

    /// Waits for its end and reads its report.
    ///
    /// # Errors
    /// When it failed as a program, or printed no report.
    pub fn finish(mut self) -> Result<SiegeReport> {
        let status = self.running.wait()?;
        let text = self.running.output();
        if !status.success() {
            bail!("siege: {status}\n{text}");
        }
        parse(&text)
    }
}

fn parse(text: &str) -> Result<SiegeReport> {
    let start = text.find('{').with_context(|| format!("siege: no report in {text:?}"))?;
    let report: Value = serde_json::from_str(&text[start..])
        .with_context(|| format!("siege: report {:?}", &text[start..]))?;
    let count = |name: &str| report[name].as_u64().with_context(|| format!("siege: no {name}"));
    let number = |name: &str| report[name].as_f64().with_context(|| format!("siege: no {name}"));
    Ok(SiegeReport {
        answered: count("successful_transactions")?,
        failed: count("failed_transactions")?,
        rate: number("transaction_rate")?,
        average: number("response_time")?,
        longest: number("longest_transaction")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report_is_read_past_what_it_says_before() {
        let text = "siege says hello\n\n{\t\"transactions\":\t\t\t         200,\n\
                    \t\"successful_transactions\":\t         198,\n\
                    \t\"failed_transactions\":\t\t           2,\n\
                    \t\"response_time\":\t\t\t        0.02,\n\
                    \t\"transaction_rate\":\t\t\t       99.50,\n\
                    \t\"longest_transaction\":\t\t        0.05\n}\n";
        let expected =
            SiegeReport { answered: 198, failed: 2, rate: 99.5, average: 0.02, longest: 0.05 };
        assert_eq!(parse(text).unwrap(), expected);
        assert!(parse("siege says nothing").is_err());
    }
}
