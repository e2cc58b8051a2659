//! The servers: started, killed, frozen, and asked by etcdctl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::Signal;

use crate::certificates::{Authority, Certificate};
use lb_tests::process::{PATIENCE, Running, until};
use lb_tests::topology::{Host, Node};

/// Names a directory with `etcd` and `etcdctl` to be used instead of those of the system.
const DIRECTORY: &str = "SPILLWAY_ETCD_DIR";
const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;

/// How a cluster is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct EtcdOptions {
    /// Bytes that it may store, if not etcd's default (2 GiB).
    pub quota: Option<u64>,
    /// How long it keeps what was replaced, as in `ETCD_AUTO_COMPACTION_RETENTION`, if not for ever.
    pub retention: Option<&'static str>,
}

/// A cluster with a server on each of some hosts. Servers are counted from 0; they and their data go when this goes.
#[derive(Debug)]
pub struct EtcdCluster {
    pub(super) hosts: Vec<Host>,
    servers: Vec<Option<Running>>,
    /// Mutual TLS: of each server; and of who asks here.
    tls: Option<(Vec<Certificate>, Certificate)>,
    options: EtcdOptions,
    pub(super) token: String,
    /// Times that data was restored: it is somewhere else then.
    pub(super) restored: usize,
}

impl EtcdCluster {
    /// Starts a server on each host and waits until all answer. With an authority, servers and clients have to have a
    /// certificate of it.
    ///
    /// # Errors
    /// When one does not answer within a minute.
    pub fn start(
        hosts: &[Host],
        authority: Option<&Authority>,
        options: EtcdOptions,
    ) -> Result<Self> {
        ensure!(!hosts.is_empty(), "etcd: no hosts");
        let issue = |authority: &Authority| {
            let of = |host: &Host| authority.issue(host.name(), &[host.v4.into(), host.v6.into()]);
            let servers = hosts.iter().map(of).collect::<Result<Vec<_>>>()?;
            Ok::<_, anyhow::Error>((servers, authority.issue("root", &[])?))
        };
        let mut cluster = Self {
            hosts: hosts.to_vec(),
            servers: hosts.iter().map(|_| None).collect(),
            tls: authority.map(issue).transpose()?,
            options,
            token: "test".into(),
            restored: 0,
        };
        cluster.start_all()?;
        Ok(cluster)
    }

    /// Servers that it has, whether or not they run.
    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    /// Where clients reach each server.
    pub fn endpoints(&self) -> Vec<String> {
        (0..self.size()).map(|server| self.url(server, CLIENT_PORT)).collect()
    }

    /// Starts a server that does not run, with the data that it has, and does not wait for anything.
    ///
    /// # Errors
    /// When it runs, or cannot be started.
    pub fn spawn(&mut self, server: usize) -> Result<()> {
        self.spawn_as(server, ClusterState::New)
    }

    pub(super) fn spawn_as(&mut self, server: usize, state: ClusterState) -> Result<()> {
        ensure!(self.servers[server].is_none(), "etcd {server} runs");
        let (client, peer) = (self.url(server, CLIENT_PORT), self.url(server, PEER_PORT));
        let mut arguments = vec![
            format!("--name={}", self.hosts[server].name()),
            format!("--data-dir={}", self.data(server).display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={}", self.initial_cluster()),
            format!("--initial-cluster-token={}", self.token),
            format!("--initial-cluster-state={}", state.text()),
        ];
        if let Some(quota) = self.options.quota {
            arguments.push(format!("--quota-backend-bytes={quota}"));
        }
        arguments
            .extend(self.options.retention.map(|it| format!("--auto-compaction-retention={it}")));
        if let Some((servers, _)) = &self.tls {
            let Certificate { authority, certificate, key } = &servers[server];
            for of in ["", "peer-"] {
                arguments.extend([
                    format!("--{of}client-cert-auth"),
                    format!("--{of}trusted-ca-file={}", authority.display()),
                    format!("--{of}cert-file={}", certificate.display()),
                    format!("--{of}key-file={}", key.display()),
                ]);
            }
        }
        self.servers[server] = Some(self.hosts[server].node.spawn(program("etcd"), arguments)?);
        Ok(())
    }

    /// Starts those that do not run and waits until all answer.
    ///
    /// # Errors
    /// When one does not within a minute.
    pub fn start_all(&mut self) -> Result<()> {
        for server in 0..self.size() {
            if self.servers[server].is_none() {
                self.spawn(server)?;
            }
        }
        (0..self.size()).try_for_each(|server| self.wait_until_it_answers(server))
    }

    /// Waits until a server answers with the consent of a majority.
    ///
    /// # Errors
    /// When it ends, or that takes more than a minute.
    pub fn wait_until_it_answers(&mut self, server: usize) -> Result<()> {
        until(&format!("etcd {server} answers"), PATIENCE, || {
            let running = self.servers[server].as_mut().context("it does not run")?;
            running.check()?;
            Ok(self.ask_at(server, &["endpoint", "health"]).ok().map(drop))
        })
        .with_context(|| self.servers[server].as_ref().map(Running::output).unwrap_or_default())
    }

    /// `kill -9` of a server.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&mut self, server: usize) -> Result<()> {
        self.servers[server].take().with_context(|| format!("etcd {server} does not run"))?.kill()
    }

    /// `kill -9` of all that run.
    ///
    /// # Errors
    /// When one cannot be killed.
    pub fn kill_all(&mut self) -> Result<()> {
        self.servers.iter_mut().filter_map(Option::take).try_for_each(|mut running| running.kill())
    }

    /// Stops a server in the middle of whatever it does: its connections stay, and nothing is answered.
    ///
    /// # Errors
    /// When it does not run.
    pub fn freeze(&self, server: usize) -> Result<()> {
        self.signal(server, Signal::SIGSTOP)
    }

    /// Undoes [`Self::freeze`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn thaw(&self, server: usize) -> Result<()> {
        self.signal(server, Signal::SIGCONT)
    }

    fn signal(&self, server: usize, signal: Signal) -> Result<()> {
        let running = self.servers[server].as_ref();
        running.with_context(|| format!("etcd {server} does not run"))?.signal(signal)
    }

    /// Waits until one of the servers that run leads, and answers which.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub fn leader(&self) -> Result<usize> {
        until("etcd has a leader", PATIENCE, || {
            let running = (0..self.size()).filter(|server| self.servers[*server].is_some());
            for server in running {
                let status = self.ask_at(server, &["endpoint", "status", "--write-out=fields"]);
                let Ok(status) = status else { continue };
                let leader = field(&status, "Leader")?;
                if leader != 0 && leader == field(&status, "MemberID")? {
                    return Ok(Some(server));
                }
            }
            Ok(None)
        })
    }

    /// `etcdctl` on a node with a certificate, which asks all servers; arguments are to be added.
    pub fn etcdctl(&self, node: &Node, certificate: Option<&Certificate>) -> Command {
        etcdctl(node, &self.endpoints(), certificate)
    }

    /// What etcdctl prints that asks all servers, as an administrator on the first server's host.
    ///
    /// # Errors
    /// When it fails.
    pub fn ask(&self, arguments: &[&str]) -> Result<String> {
        succeed(self.etcdctl(&self.hosts[0].node, self.administrator()).args(arguments))
    }

    /// The same of one server, on its own host.
    ///
    /// # Errors
    /// When it fails.
    pub fn ask_at(&self, server: usize, arguments: &[&str]) -> Result<String> {
        let endpoint = [self.url(server, CLIENT_PORT)];
        succeed(etcdctl(&self.hosts[server].node, &endpoint, self.administrator()).args(arguments))
    }

    /// The certificate that [`Self::ask`] uses; its CN is `root`.
    pub fn administrator(&self) -> Option<&Certificate> {
        self.tls.as_ref().map(|(_, administrator)| administrator)
    }

    /// Where a server's data is.
    pub(super) fn data(&self, server: usize) -> PathBuf {
        self.hosts[server].node.directory().join(format!("data-{}", self.restored))
    }

    /// Where servers reach a server.
    pub(super) fn peer_url(&self, server: usize) -> String {
        self.url(server, PEER_PORT)
    }

    pub(super) fn initial_cluster(&self) -> String {
        let each = self.hosts.iter().enumerate();
        let each = each.map(|(n, host)| format!("{}={}", host.name(), self.peer_url(n)));
        each.collect::<Vec<_>>().join(",")
    }

    fn url(&self, server: usize, port: u16) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{port}", self.hosts[server].v4)
    }
}

/// What a server that has no data is to become a part of. One that has data goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClusterState {
    New,
    Existing,
}

impl ClusterState {
    const fn text(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Existing => "existing",
        }
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        self.servers.clear();
        for host in &self.hosts {
            for restored in 0..=self.restored {
                let _ = fs::remove_dir_all(host.node.directory().join(format!("data-{restored}")));
            }
        }
    }
}

fn program(name: &str) -> PathBuf {
    std::env::var_os(DIRECTORY).map_or_else(|| name.into(), |it| Path::new(&it).join(name))
}

fn etcdctl(node: &Node, endpoints: &[String], certificate: Option<&Certificate>) -> Command {
    let mut command = node.command(program("etcdctl"));
    command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", endpoints.join(",")));
    if let Some(Certificate { authority, certificate, key }) = certificate {
        command.arg(format!("--cacert={}", authority.display()));
        command.arg(format!("--cert={}", certificate.display()));
        command.arg(format!("--key={}", key.display()));
    }
    command
}

fn succeed(command: &mut Command) -> Result<String> {
    let output = command.output().context("start etcdctl")?;
    if !output.status.success() {
        bail!("etcdctl: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A number in an answer of `--write-out=fields`.
///
/// # Errors
/// When there is none of that name.
pub fn field(answer: &str, name: &str) -> Result<u64> {
    let prefix = format!("\"{name}\" : ");
    let value = answer.lines().find_map(|line| line.strip_prefix(&prefix));
    value.with_context(|| format!("no {name}:\n{answer}"))?.parse().context("a number")
}
