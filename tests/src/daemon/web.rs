//! What a daemon serves to those who look.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, Result, ensure};

use crate::openmetrics::Exposition;
use crate::process::PATIENCE;
use crate::topology::Node;

/// Where a test's daemon listens, in its own namespace.
pub const HTTP_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9750);

/// Head and body of the answer to a GET from within a node.
///
/// # Errors
/// When there is none.
pub fn get(node: &Node, path: &str) -> Result<(String, String)> {
    let answer = node.enter(|| -> Result<String> {
        let mut stream = TcpStream::connect(HTTP_ADDRESS).context("connect")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).context("read")?;
        Ok(answer)
    });
    let answer = answer?.with_context(|| format!("GET {path}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
    Ok((head.into(), body.into()))
}

/// Reads the metrics of the daemon in a node.
///
/// # Errors
/// When it serves none, or what it serves breaks a rule.
pub fn scrape(node: &Node) -> Result<Exposition> {
    let (head, body) = get(node, "/metrics")?;
    ensure!(head.starts_with("HTTP/1.1 200 "), "{head}\n{body}");
    Exposition::read(&body)
}
