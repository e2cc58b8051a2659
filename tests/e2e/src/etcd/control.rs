//! What goes wrong with a cluster's data, and what an administrator does about it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::EtcdCluster;
use super::cluster::{ClusterState, field};
use lb_tests::process::{PATIENCE, until};

/// Bytes of a value that is only to take room; a request may have 1.5 MiB.
const LARGE: usize = 1 << 20;

/// Whether a restored cluster can be told from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// It has the same id, as when an administrator gives the same token.
    Same,
    /// It has a new id.
    New,
}

impl EtcdCluster {
    /// The id of the cluster.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn id(&self) -> Result<u64> {
        field(&self.ask(&["get", "/", "--keys-only", "--write-out=fields"])?, "ClusterID")
    }

    /// The revision that its store has.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn revision(&self) -> Result<u64> {
        field(&self.ask(&["get", "/", "--keys-only", "--write-out=fields"])?, "Revision")
    }

    /// Saves all data, as a backup does, and answers where.
    ///
    /// # Errors
    /// When the first server does not answer.
    pub fn save_snapshot(&self, name: &str) -> Result<PathBuf> {
        let path = self.hosts[0].node.directory().join(format!("{name}.snapshot"));
        self.ask_at(0, &["snapshot", "save", &path.display().to_string()])?;
        Ok(path)
    }

    /// Kills all servers and starts fresh ones with the data of a snapshot, under the same addresses. Waits until all
    /// answer.
    ///
    /// # Errors
    /// When one of that fails.
    pub fn restore(&mut self, snapshot: &Path, identity: Identity) -> Result<()> {
        self.kill_all()?;
        self.restored += 1;
        if identity == Identity::New {
            self.token = format!("test-{}", self.restored);
        }
        for server in 0..self.size() {
            self.ask_at(
                server,
                &[
                    "snapshot",
                    "restore",
                    &snapshot.display().to_string(),
                    &format!("--name={}", self.hosts[server].name()),
                    &format!("--data-dir={}", self.data(server).display()),
                    &format!("--initial-cluster={}", self.initial_cluster()),
                    &format!("--initial-cluster-token={}", self.token),
                    &format!("--initial-advertise-peer-urls={}", self.peer_url(server)),
                ],
            )?;
        }
        self.start_all()
    }

    /// Takes away all history before the present revision, which it answers.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn compact(&self) -> Result<u64> {
        let revision = self.revision()?;
        self.ask(&["compact", "--physical", &revision.to_string()])?;
        Ok(revision)
    }

    /// Gives back the room of what was deleted, at one server after the other.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn defragment(&self) -> Result<()> {
        (0..self.size()).try_for_each(|server| self.ask_at(server, &["defrag"]).map(drop))
    }

    /// Bytes that a server's data takes, without the room that is free in its file.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn size_in_use(&self, server: usize) -> Result<u64> {
        let answer = self.ask_at(server, &["endpoint", "status", "--write-out=json"])?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let size = answer[0]["Status"]["dbSizeInUse"].as_u64();
        size.with_context(|| format!("no size: {answer}"))
    }

    /// Keys that it has.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn keys(&self) -> Result<u64> {
        field(&self.ask(&["get", "/", "--prefix", "--keys-only", "--write-out=fields"])?, "Count")
    }

    /// Replaces a server by one without data, under the same address: the others forget it, and it begins anew.
    ///
    /// # Errors
    /// When one of that fails.
    pub fn replace(&mut self, server: usize) -> Result<()> {
        let other = (server + 1) % self.size();
        let own = self.ask_at(server, &["endpoint", "status", "--write-out=fields"])?;
        let id = format!("{:x}", field(&own, "MemberID")?);
        self.kill(server)?;
        // Refused until the others have found out that it is gone, and that they agree. One whose answer was lost may be done.
        let changed = |arguments: &[&str], done: &str| {
            let mut last = None;
            let changed = until("etcd changes its members", PATIENCE, || {
                let error = match self.ask_at(other, arguments) {
                    Ok(_) => return Ok(Some(())),
                    Err(error) => error,
                };
                let is_done = last.is_some() && format!("{error:#}").contains(done);
                last = Some(error);
                Ok(is_done.then_some(()))
            });
            changed.with_context(|| format!("{arguments:?}: {last:?}"))
        };
        changed(&["member", "remove", &id], "member not found")?;
        fs::remove_dir_all(self.data(server)).context("remove a server's data")?;
        let (name, url) = (self.hosts[server].name(), self.peer_url(server));
        let add = ["member", "add", name, &format!("--peer-urls={url}")];
        changed(&add, "Peer URLs already exists")?;
        self.spawn_as(server, ClusterState::Existing)?;
        self.wait_until_it_answers(server)
    }

    /// Writes large values until there is no more room: the cluster takes no more writes. It must have a quota, of a few
    /// MiB at best.
    ///
    /// # Errors
    /// When the alarm does not come.
    pub fn fill(&self) -> Result<()> {
        // An argument of a program has at most 128 KiB; standard input is a value without a bound.
        let value = self.hosts[0].node.directory().join("large");
        fs::write(&value, vec![b'x'; LARGE]).context("write a large value")?;
        let mut number = 0;
        until("etcd has no more room", PATIENCE, || {
            number += 1;
            let mut command = self.etcdctl(&self.hosts[0].node, self.administrator());
            command.args(["put", &format!("{FILL}{number}")]);
            command.stdin(fs::File::open(&value).context("open a large value")?);
            let output = command.output().context("start etcdctl")?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let is_full = said.contains("database space exceeded");
            ensure!(output.status.success() || is_full, "etcdctl put: {said}");
            Ok(is_full.then_some(()))
        })?;
        let alarms = self.ask(&["alarm", "list"])?;
        ensure!(alarms.contains("NOSPACE"), "alarms: {alarms}");
        Ok(())
    }

    /// Undoes [`Self::fill`], as the documentation of etcd says: deletes, compacts, defragments, disarms.
    ///
    /// # Errors
    /// When a server does not answer.
    pub fn make_room(&self) -> Result<()> {
        self.ask(&["del", "--prefix", FILL])?;
        self.compact()?;
        self.defragment()?;
        self.ask(&["alarm", "disarm"]).map(drop)
    }
}

/// Before keys of [`EtcdCluster::fill`]; no fleet has such keys.
const FILL: &str = "/harness/fill/";
