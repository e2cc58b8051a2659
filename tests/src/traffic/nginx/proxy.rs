//! nginx as a reverse proxy, as plain as it is installed: what it does where nothing is said.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{ONE_PROCESS, head, start};
use crate::process::Running;
use crate::topology::Node;

/// A reverse proxy in a node, on port 80 of all its addresses.
#[derive(Debug)]
pub struct NginxProxy {
    _running: Running,
}

impl NginxProxy {
    /// Starts it in front of `nodes`, whose port 80 it asks in turn, and waits until it accepts
    /// connections. `times` shortens the times that nginx has by itself: how long it waits for a
    /// connection (60 s), and how long it leaves alone whoever failed (10 s).
    ///
    /// # Errors
    /// When it does not accept connections within a minute.
    pub fn start(
        node: &Node,
        nodes: &[Ipv4Addr],
        times: Option<(Duration, Duration)>,
    ) -> Result<Self> {
        Self::with(node, ONE_PROCESS, &upstream(nodes, times))
    }

    /// One that keeps its connections to `nodes`, passes on what comes as it comes, and has a process for each CPU.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_kept_upstream(node: &Node, nodes: &[Ipv4Addr]) -> Result<Self> {
        Self::with(node, "worker_processes auto", &kept_upstream(nodes))
    }

    fn with(node: &Node, processes: &str, upstream: &str) -> Result<Self> {
        let directory = node.directory().join("proxy");
        fs::create_dir_all(&directory).with_context(|| format!("make {}", directory.display()))?;
        let text = head(&directory, processes) + upstream;
        fs::write(directory.join("nginx.conf"), text).context("write nginx.conf")?;
        Ok(Self { _running: start(node, &directory)? })
    }
}

/// The part that a user writes.
fn upstream(nodes: &[Ipv4Addr], times: Option<(Duration, Duration)>) -> String {
    let pause = times.map_or(String::new(), |(_, pause)| {
        // nginx takes whole seconds here.
        format!(" fail_timeout={}s", pause.as_secs_f64().round().max(1.0))
    });
    let connect = times.map_or(String::new(), |(connect, _)| {
        format!(" proxy_connect_timeout {}ms;", connect.as_millis())
    });
    let servers: String = nodes.iter().map(|node| format!(" server {node}:80{pause};")).collect();
    format!(
        "    upstream nodes {{{servers} }}
    server {{
        listen 80;
        location / {{ proxy_pass http://nodes;{connect} }}
    }}
}}
"
    )
}

/// As nginx's manual has it for kept connections.
fn kept_upstream(nodes: &[Ipv4Addr]) -> String {
    let servers: String = nodes.iter().map(|node| format!(" server {node}:80;")).collect();
    format!(
        "    upstream nodes {{{servers} keepalive 256; }}
    server {{
        listen 80 backlog=4096;
        location / {{
            proxy_pass http://nodes;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_unless_it_must_be() {
        let nodes = [Ipv4Addr::new(10, 1, 0, 11), Ipv4Addr::new(10, 1, 0, 12)];
        let plain = upstream(&nodes, None);
        assert!(plain.contains("{ server 10.1.0.11:80; server 10.1.0.12:80; }"), "{plain}");
        assert!(!plain.contains("timeout"), "{plain}");
        let times = (Duration::from_secs(6), Duration::from_millis(1000));
        let short = upstream(&nodes, Some(times));
        assert!(short.contains("server 10.1.0.12:80 fail_timeout=1s;"), "{short}");
        assert!(short.contains("proxy_connect_timeout 6000ms;"), "{short}");
    }
}
