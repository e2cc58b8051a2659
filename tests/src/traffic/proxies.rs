//! Proxies of connections, as plain as their manuals show them.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};

use crate::process::Running;
use crate::topology::Node;

/// What a proxy listens on, and to whom it passes connections, at the port that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a> {
    /// Its address; it is put on `lo`.
    pub vip: Ipv4Addr,
    /// Its ports.
    pub ports: &'a [u16],
    /// The backends, in turn.
    pub backends: &'a [Ipv4Addr],
}

/// haproxy in TCP mode. It accepts connections a moment later.
///
/// # Errors
/// When it cannot be started.
pub fn haproxy(node: &Node, front: &Front<'_>) -> Result<Running> {
    let Front { vip, ports, backends } = *front;
    node.ip(&format!("address add {vip}/32 dev lo"))?;
    let mut text = "global
    maxconn 4000
defaults
    mode tcp
    maxconn 4000
    timeout connect 10s
    timeout client 60s
    timeout server 60s
listen balancer
    balance roundrobin
"
    .to_owned();
    for port in ports {
        writeln!(text, "    bind {vip}:{port} backlog 4096")?;
    }
    for (n, backend) in backends.iter().enumerate() {
        // Without a port: the one that the client asked for.
        writeln!(text, "    server backend{n} {backend}")?;
    }
    let file = node.directory().join("haproxy.cfg");
    fs::write(&file, text).context("write haproxy.cfg")?;
    node.spawn("haproxy", ["-db".as_ref(), "-f".as_ref(), file.as_os_str()])
}

/// nginx's stream module. It accepts connections a moment later.
///
/// # Errors
/// When it cannot be started.
pub fn nginx_stream(node: &Node, front: &Front<'_>) -> Result<Running> {
    let Front { vip, ports, backends } = *front;
    let directory = node.directory().display();
    node.ip(&format!("address add {vip}/32 dev lo"))?;
    let mut text = format!(
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
user root;
worker_processes auto;
pid {directory}/pid;
error_log {directory}/error.log;
worker_rlimit_nofile 10000;
events {{ worker_connections 4096; }}
stream {{
"
    );
    for port in ports {
        write!(text, "    upstream port{port} {{")?;
        for backend in backends {
            write!(text, " server {backend}:{port};")?;
        }
        writeln!(text, " }}")?;
        writeln!(
            text,
            "    server {{ listen {vip}:{port} backlog=4096; proxy_pass port{port}; }}"
        )?;
    }
    text += "}\n";
    let file = node.directory().join("nginx.conf");
    fs::write(&file, text).context("write nginx.conf")?;
    node.spawn("nginx", ["-e".as_ref(), "error.log".as_ref(), "-c".as_ref(), file.as_os_str()])
}
