//! The server as a process of a backend.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{Visit, Work};
use crate::process::{PATIENCE, Running, until};
use crate::topology::Node;

/// The program `webserver` in a node, on port 80 of all its addresses.
#[derive(Debug)]
pub struct WebServer {
    log: PathBuf,
    _running: Running,
}

impl WebServer {
    /// Where the program is: beside the one that runs, or beside the tests' directory.
    ///
    /// # Errors
    /// When it is not there.
    pub fn program() -> Result<PathBuf> {
        let own = std::env::current_exe().context("find our own program")?;
        let mut places = own.ancestors().skip(1).take(2).map(|place| place.join("webserver"));
        places.find(|path| path.is_file()).context("webserver: not built; `cargo xtask build`")
    }

    /// Starts it and waits until it accepts connections.
    ///
    /// # Errors
    /// When it does not within a minute.
    pub fn start(node: &Node, work: Work) -> Result<Self> {
        let log = node.directory().join("visits.log");
        let arguments = [
            "--name".into(),
            node.name().into(),
            "--work-us".into(),
            work.time.as_micros().to_string(),
            "--at-a-time".into(),
            work.at_a_time.to_string(),
            "--log".into(),
            log.display().to_string(),
        ];
        let mut running = node.spawn(Self::program()?, arguments)?;
        until("webserver accepts", PATIENCE, || {
            running.check()?;
            let address = (Ipv4Addr::LOCALHOST, 80);
            Ok(node.enter(|| TcpStream::connect(address))?.ok().map(drop))
        })?;
        Ok(Self { log, _running: running })
    }

    /// What was asked at an address since a time (seconds since 1970), in order of arrival.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn visits(&self, at: IpAddr, since: f64) -> Result<Vec<Visit>> {
        let text = fs::read_to_string(&self.log)
            .with_context(|| format!("read {}", self.log.display()))?;
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut visits = whole.lines().map(str::parse).collect::<Result<Vec<Visit>>>()?;
        visits.retain(|visit| visit.at == at && visit.arrived >= since);
        visits.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
        Ok(visits)
    }
}
