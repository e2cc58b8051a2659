//! curl: single requests, large bodies.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::topology::Node;

/// curl in a node.
#[derive(Clone, Debug)]
pub struct Curl {
    node: Node,
}

impl Curl {
    /// curl that will run in `node`.
    pub fn new(node: &Node) -> Self {
        Self { node: node.clone() }
    }

    /// The body of a page, without its line end.
    ///
    /// # Errors
    /// When there is no answer within ten seconds, or one that is no success.
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

    fn curl(&self, arguments: &[&str]) -> Result<String> {
        let fixed = ["--silent", "--show-error", "--fail", "--globoff", "--max-time", "10"];
        self.node.run("curl", fixed.iter().chain(arguments))
    }
}
