//! nginx as a backend: one process, a page with its name, downloads, uploads and a log; and as a
//! reverse proxy.

mod proxy;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

pub use proxy::NginxProxy;

use crate::process::{PATIENCE, Running, until};
use crate::topology::Node;

/// A file that says that checks are to fail.
const SICK: &str = "sick";

/// nginx in a node, on port 80 of all its addresses.
///
/// `/` answers with the node's name, `/healthz` with 204 (not logged), `/files/NAME` is a file of
/// [`Nginx::files`], PUT `/files/NAME` makes one. Every response ends its connection.
#[derive(Debug)]
pub struct Nginx {
    node: Node,
    directory: PathBuf,
    running: Option<Running>,
}

/// A line of the access log.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// When the answer was complete, seconds since 1970 with milliseconds.
    pub at: f64,
    /// Who asked.
    pub client: SocketAddr,
    /// The address it was asked at.
    pub vip: IpAddr,
    /// Status of the answer; 499: the client went away first.
    pub status: u16,
    /// Method and path.
    pub what: String,
}

impl Nginx {
    /// Starts it and waits until it accepts connections.
    ///
    /// # Errors
    /// When it does not within a minute.
    pub fn start(node: &Node) -> Result<Self> {
        Self::with_keepalive(node, 0)
    }

    /// The same, but responses leave connections open, for a minute at most.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_keepalive(node: &Node) -> Result<Self> {
        Self::with_keepalive(node, 60)
    }

    fn with_keepalive(node: &Node, seconds: u32) -> Result<Self> {
        let directory = node.directory().join("nginx");
        fs::create_dir_all(directory.join("files"))
            .with_context(|| format!("make {}", directory.display()))?;
        let configuration = configuration(node.name(), &directory, seconds);
        fs::write(directory.join("nginx.conf"), configuration).context("write nginx.conf")?;
        let mut nginx = Self { node: node.clone(), directory, running: None };
        nginx.restart()?;
        Ok(nginx)
    }

    /// Starts it again after [`Self::kill`]; files and log are kept.
    ///
    /// # Errors
    /// When it does not accept connections within a minute.
    pub fn restart(&mut self) -> Result<()> {
        self.running = Some(start(&self.node, &self.directory)?);
        Ok(())
    }

    /// `kill -9`: the host stays, the port is closed, connections are reset.
    ///
    /// # Errors
    /// When waiting for its end fails.
    pub fn kill(&mut self) -> Result<()> {
        self.running.take().map_or(Ok(()), |mut running| running.kill())
    }

    /// Has `/healthz` answer with 500 from now on, or with 204 again; all else goes on.
    ///
    /// # Errors
    /// When a file cannot be made or removed.
    pub fn be_sick(&self, sick: bool) -> Result<()> {
        let path = self.directory.join(SICK);
        match sick {
            true => fs::write(&path, ""),
            false => fs::remove_file(&path),
        }
        .with_context(|| path.display().to_string())
    }

    /// Where downloads come from and uploads go.
    pub fn files(&self) -> PathBuf {
        self.directory.join("files")
    }

    /// The access log so far.
    ///
    /// # Errors
    /// When a line is not of the form the configuration prescribes.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let path = self.directory.join("access.log");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context("read access.log"),
        };
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(parse).collect()
    }
}

/// Starts nginx with the configuration in a directory and waits until it accepts connections.
fn start(node: &Node, directory: &Path) -> Result<Running> {
    let prefix = directory.display().to_string();
    let mut running =
        node.spawn("nginx", ["-p", &prefix, "-c", "nginx.conf", "-e", "error.log"])?;
    until("nginx accepts", PATIENCE, || {
        running.check()?;
        let address = (Ipv4Addr::LOCALHOST, 80);
        Ok(node.enter(|| TcpStream::connect(address))?.ok().map(drop))
    })?;
    Ok(running)
}

/// As a backend it has one.
const ONE_PROCESS: &str = "master_process off";

/// What every nginx of ours begins with; all its files are in its directory.
fn head(directory: &Path, processes: &str) -> String {
    let directory = directory.display();
    format!(
        "daemon off;
{processes};
user root;
pid {directory}/pid;
error_log {directory}/error.log;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    log_format plain '$msec $remote_addr $remote_port $server_addr $status $request_method $uri';
    access_log {directory}/access.log plain;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
"
    )
}

fn configuration(name: &str, directory: &Path, keepalive: u32) -> String {
    let head = head(directory, ONE_PROCESS);
    let directory = directory.display();
    format!(
        "{head}    client_max_body_size 64m;
    default_type application/octet-stream;
    keepalive_timeout {keepalive};
    server {{
        listen 80 backlog=4096;
        listen [::]:80 backlog=4096;
        location = / {{ default_type text/plain; return 200 \"{name}\\n\"; }}
        location = /healthz {{
            access_log off;
            if (-f {directory}/{SICK}) {{ return 500; }}
            return 204;
        }}
        location /files/ {{ alias {directory}/files/; dav_methods PUT; }}
    }}
}}
"
    )
}

fn parse(line: &str) -> Result<Request> {
    let mut words = line.splitn(6, ' ');
    let mut next = || words.next().with_context(|| format!("access.log: line is cut: {line}"));
    let at = next()?.parse().context("access.log: time")?;
    let client: IpAddr = next()?.parse().context("access.log: client")?;
    let port: u16 = next()?.parse().context("access.log: port")?;
    let vip = next()?.parse().context("access.log: VIP")?;
    let status = next()?.parse().context("access.log: status")?;
    Ok(Request { at, client: (client, port).into(), vip, status, what: next()?.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_read_whole() {
        let line = "1763719200.123 198.51.100.2 40000 203.0.113.1 200 GET /files/a b";
        let expected = Request {
            at: 1_763_719_200.123,
            client: "198.51.100.2:40000".parse().unwrap(),
            vip: "203.0.113.1".parse().unwrap(),
            status: 200,
            what: "GET /files/a b".into(),
        };
        assert_eq!(parse(line).unwrap(), expected);
        assert!(parse("1763719200.123 198.51.100.2 40000").is_err());
    }
}
