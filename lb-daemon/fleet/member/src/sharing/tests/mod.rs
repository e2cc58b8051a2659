//! Several balancers in one process, each with a runtime of its own, over real connections.

mod certificates;
mod fakes;
mod ledgers;
mod moving;
mod refusals;

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use lb_base::conditions::Conditions;
use lb_model::Name;
use lb_sharing::{
    GroupKey, Ledger, Parts,
    epoch::{Epoch, EpochStep},
};
use tempfile::TempDir;
use tokio::{
    runtime::Runtime,
    sync::watch,
    time::{sleep, timeout},
};

use lb_peers::PROTOCOL;

use super::{handle::SharingStopped, *};
use certificates::Authority;
use fakes::{CAPACITY, Fakes, PacketPath};

const LIMIT: Duration = Duration::from_secs(60);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn web() -> GroupKey {
    group("web", 1)
}

fn group(pool: &str, birth: u64) -> GroupKey {
    GroupKey { pool: name(pool), region: name("eu"), birth }
}

fn name_of(group: &GroupKey) -> GroupName {
    (group.pool.clone(), group.region.clone())
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(LIMIT, wait).await.is_ok(), "not within {LIMIT:?}: {what}");
}

/// What each balancer answers.
#[derive(Debug)]
struct FakeAnswers;

#[tonic::async_trait]
impl Answers for FakeAnswers {
    async fn count_packets(&self, backends: Vec<String>) -> Result<Vec<u64>, String> {
        Ok(vec![7; backends.len()])
    }

    async fn digest_tables(&self) -> Result<TableDigests, String> {
        Ok(TableDigests::from([(name("dns"), 1), (name("web"), u64::MAX)]))
    }
}

/// A balancer: its host, and its daemon while that runs.
struct Node {
    name: Name,
    directory: TempDir,
    path: PacketPath,
    file: LedgerFile,
    security: PeerSecurity,
    conditions: Conditions,
    /// Where it listened first.
    address: SocketAddr,
    daemon: Option<(Runtime, SharingHandle)>,
    /// The incarnation that etcd knows.
    known: u64,
    epoch_requests: watch::Sender<Option<EpochRequest>>,
}

impl Node {
    async fn start(&mut self, view: watch::Receiver<FleetView>) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let settings = SharingSettings {
            name: self.name.clone(),
            listen: self.address,
            security: self.security.clone(),
            ledger: self.file.clone(),
            known_incarnation: self.known,
            lost_maps: None,
        };
        let inputs = SharingInputs {
            view,
            counters: self.path.clone(),
            enforcer: self.path.clone(),
            epoch_requests: self.epoch_requests.clone(),
            conditions: self.conditions.clone(),
            answers: Arc::new(FakeAnswers),
        };
        let handle = runtime.spawn(start(settings, inputs)).await.unwrap().unwrap();
        self.known = handle.status().borrow().incarnation;
        self.address = handle.address();
        self.daemon = Some((runtime, handle));
    }

    /// Ends the daemon wherever it is, as a crash does. A write that is under way is made.
    async fn kill(&mut self) {
        let (runtime, handle) = self.daemon.take().unwrap();
        let kill = move || {
            runtime.shutdown_timeout(LIMIT);
            drop(handle);
        };
        tokio::task::spawn_blocking(kill).await.unwrap();
    }

    fn handle(&self) -> &SharingHandle {
        &self.daemon.as_ref().unwrap().1
    }

    fn status(&self) -> SharingStatus {
        self.handle().status().borrow().clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some((runtime, _)) = self.daemon.take() {
            runtime.shutdown_background();
        }
    }
}

/// A fleet, with what it has in etcd.
struct Fleet {
    nodes: Vec<Node>,
    fakes: Fakes,
    view: watch::Sender<FleetView>,
}

impl Fleet {
    /// Balancers `a`, `b` and so on, which were all there when the group was created.
    async fn plain(count: usize) -> Self {
        let mut fleet = Self::new(count);
        fleet.run().await;
        fleet
    }

    async fn with_tls(count: usize) -> (Self, Authority) {
        let (mut fleet, authority) = (Self::new(count), Authority::new("ours"));
        for node in &mut fleet.nodes {
            let directory = node.directory.path();
            authority.issue(node.name.as_str()).write(directory, &authority);
            node.security = security(directory, &node.conditions);
        }
        fleet.run().await;
        (fleet, authority)
    }

    fn new(count: usize) -> Self {
        let fakes = Fakes::default();
        fakes.apply(1);
        let node = |letter: char| {
            let (name, directory) = (name(&letter.to_string()), tempfile::tempdir().unwrap());
            let [fails, hangs, is_hanging] = std::array::from_fn(|_| Arc::<AtomicBool>::default());
            let path = PacketPath {
                balancer: name.clone(),
                fakes: fakes.clone(),
                fails,
                hangs,
                is_hanging,
            };
            let file = LedgerFile::new(directory.path(), tests::name("edge"), name.clone());
            file.write(&Ledger::new_member(0, 0)).unwrap();
            let (epoch_requests, conditions) = (watch::Sender::new(None), Conditions::default());
            let address = "127.0.0.1:0".parse().unwrap();
            let (security, daemon, known) = (PeerSecurity::Plain, None, 0);
            Node {
                name,
                directory,
                path,
                file,
                security,
                conditions,
                address,
                daemon,
                known,
                epoch_requests,
            }
        };
        let nodes: Vec<_> = ('a'..).take(count).map(node).collect();
        let names: BTreeSet<Name> = nodes.iter().map(|node| node.name.clone()).collect();
        let mut view = FleetView { generation: 1, ..FleetView::default() };
        view.births.insert(web(), names.clone());
        view.membership.members = names.iter().map(|name| (name.clone(), 0)).collect();
        view.membership.alive = names;
        Self { nodes, fakes, view: watch::Sender::new(view) }
    }

    async fn run(&mut self) {
        for at in 0..self.nodes.len() {
            self.fakes.demand(self.nodes[at].name.as_str(), &name_of(&web()), 0.0);
            self.start(at).await;
        }
        for node in &self.nodes {
            node.handle().adopted(1).await.unwrap();
        }
    }

    async fn start(&mut self, at: usize) {
        let view = self.view.subscribe();
        self.nodes[at].start(view).await;
        let (name, address) = (self.nodes[at].name.clone(), self.nodes[at].address);
        self.view.send_modify(|view| {
            view.peers.insert(name, address);
        });
    }

    /// Portions of the capacity of the clients of each, in per cent.
    fn demand(&self, percents: &[f64]) {
        for (node, percent) in self.nodes.iter().zip(percents) {
            let demand = percent / 100.0 * CAPACITY;
            self.fakes.demand(node.name.as_str(), &name_of(&web()), demand);
        }
    }

    /// The fraction of each that is in force.
    fn enforced(&self) -> Vec<f64> {
        let enforced = |node: &Node| self.fakes.enforced(node.name.as_str(), &name_of(&web()));
        self.nodes.iter().map(|node| enforced(node).fraction()).collect()
    }

    /// Waits until together they enforce the whole, which a moment before may have been on its way.
    async fn whole(&self) {
        let all = || self.enforced().iter().sum::<f64>() == 1.0;
        until("the whole is in force", all).await;
        self.fakes.check();
    }
}

/// TLS with the files of a directory.
fn security(directory: &Path, conditions: &Conditions) -> PeerSecurity {
    let files = certificates::files(directory);
    PeerSecurity::Tls(PeerCredentials::open(files, conditions.clone()).unwrap())
}
