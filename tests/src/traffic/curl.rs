//! curl: single requests, large bodies.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use crate::topology::Node;

/// curl in a node.
#[derive(Clone, Debug)]
pub struct Curl {
    node: Node,
}

/// What curl says of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timed {
    /// From the start to the last byte, seconds (`time_total`).
    pub seconds: f64,
    /// The answer's status; 0: there was none (`http_code`).
    pub status: u16,
    /// The answer's body, without its line end.
    pub page: String,
}

impl Curl {
    /// curl that will run in `node`.
    pub fn new(node: &Node) -> Self {
        Self { node: node.clone() }
    }

    /// The body of a page, without its line end.
    ///
    /// # Errors
    /// When there is no answer within a minute, or one that is no success.
    pub fn get(&self, url: &str) -> Result<String> {
        Ok(self.curl(&[url])?.trim_end().into())
    }

    /// [`Self::get`] from a port of the client's.
    ///
    /// # Errors
    /// As there.
    pub fn get_from(&self, port: u16, url: &str) -> Result<String> {
        Ok(self.curl(&["--local-port", &port.to_string(), url])?.trim_end().into())
    }

    /// Writes the body of a page to a file.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn download(&self, url: &str, to: &Path) -> Result<()> {
        self.curl(&["--output", &to.display().to_string(), url]).map(drop)
    }

    /// Sends a file by PUT.
    ///
    /// # Errors
    /// As [`Self::get`]; also when the server did not make the file (201) or replace it (204).
    pub fn upload(&self, from: &Path, url: &str) -> Result<()> {
        let status = self.curl(&[
            "--upload-file",
            &from.display().to_string(),
            "--write-out",
            "%{http_code}",
            url,
        ])?;
        ensure!(status.ends_with("201") || status.ends_with("204"), "upload to {url}: {status}");
        Ok(())
    }

    /// Asks for a page and takes the time, whatever comes of it.
    ///
    /// # Errors
    /// When curl cannot be run.
    pub fn timed(&self, url: &str, patience: Duration) -> Result<Timed> {
        let patience = format!("{:.3}", patience.as_secs_f64());
        let mut command = self.node.command("curl");
        command.args(["--silent", "--globoff", "--max-time", &patience]);
        command.args(["--write-out", "\n%{http_code} %{time_total}", url]);
        let output = command.output().context("start curl")?;
        parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Asks for a page so many times, one after the other, each time by a connection of its own; pages are thrown away.
    ///
    /// # Errors
    /// When curl cannot be run, or says less than asked for.
    pub fn fresh(&self, url: &str, times: usize, patience: Duration) -> Result<Vec<Timed>> {
        let patience = format!("{:.3}", patience.as_secs_f64());
        let url = format!("{url}?[1-{times}]");
        let mut command = self.node.command("curl");
        command.args(["--silent", "--output", "/dev/null", "--header", "Connection: close"]);
        command.args([
            "--max-time",
            &patience,
            "--write-out",
            "\n%{http_code} %{time_total}\n",
            &url,
        ]);
        let output = command.output().context("start curl")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let all = text.lines().filter(|line| !line.is_empty());
        let all = all.map(|line| parse(&format!("\n{line}"))).collect::<Result<Vec<_>>>()?;
        ensure!(all.len() == times, "curl: {} of {times} answers in {text:?}", all.len());
        Ok(all)
    }

    fn curl(&self, arguments: &[&str]) -> Result<String> {
        let fixed = ["--silent", "--show-error", "--fail", "--globoff", "--max-time", "60"];
        self.node.run("curl", fixed.iter().chain(arguments))
    }
}

/// The page, then a line of figures.
fn parse(text: &str) -> Result<Timed> {
    let said = || format!("curl: no figures in {text:?}");
    let (page, figures) = text.rsplit_once('\n').with_context(said)?;
    let (status, seconds) = figures.split_once(' ').with_context(said)?;
    Ok(Timed {
        seconds: seconds.parse().with_context(said)?,
        status: status.parse().with_context(said)?,
        page: page.trim_end().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_told_from_the_page() {
        let timed = |seconds, status, page: &str| Timed { seconds, status, page: page.into() };
        assert_eq!(parse("eu1\n\n200 0.001234").unwrap(), timed(0.001234, 200, "eu1"));
        assert_eq!(parse("\n000 3.000512").unwrap(), timed(3.000512, 0, ""));
        assert!(parse("eu1").is_err());
    }
}
