//! Real clusters of etcd on loopback addresses of their own, with their data in a temporary folder.

use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use lb_fleet::{Fleet, FleetSettings, settings::EtcdTls};
use lb_model::Name;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep},
};

/// How long something may take that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Certificates of a cluster and its clients.
pub(crate) struct Certificates {
    pub(crate) authorities: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// A program of etcd: the system's, or that in the directory that `SPILLWAY_ETCD_DIR` names.
fn program(name: &str) -> PathBuf {
    let directory = std::env::var_os("SPILLWAY_ETCD_DIR");
    directory.map_or_else(|| name.into(), |directory| Path::new(&directory).join(name))
}

struct Node {
    address: Ipv4Addr,
    process: Option<Child>,
}

pub(crate) struct Cluster {
    folder: TempDir,
    nodes: Vec<Node>,
    certificates: Option<Certificates>,
    client_port: u16,
    peer_port: u16,
    /// Bytes that etcd may store, if not its default.
    quota: Option<u64>,
    /// Data folders are new after each restore.
    restores: usize,
}

/// A loopback address that no other test has: from this process's number and a counter.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(next < 255, "too many clusters for one process");
    // 127.0.0.0/8 without the addresses that others use.
    Ipv4Addr::new(127, high.max(1), low, next as u8)
}

fn free_ports(address: Ipv4Addr) -> (u16, u16) {
    let bind = || TcpListener::bind((address, 0)).unwrap();
    let (one, other) = (bind(), bind());
    (one.local_addr().unwrap().port(), other.local_addr().unwrap().port())
}

impl Cluster {
    /// Starts servers, and waits until they answer.
    pub(crate) async fn start(size: usize) -> Self {
        let mut cluster = Self::new(size);
        cluster.start_all();
        cluster.wait_until_it_answers().await;
        cluster
    }

    /// Starts one server that may store so many bytes.
    pub(crate) async fn start_with_quota(quota: u64) -> Self {
        let mut cluster = Self::new(1);
        cluster.quota = Some(quota);
        cluster.start_all();
        cluster.wait_until_it_answers().await;
        cluster
    }

    /// Starts one server with a certificate, which `issue` writes into a folder for an address. Clients use it too.
    pub(crate) async fn start_with_tls(issue: impl FnOnce(&Path, &str) -> Certificates) -> Self {
        let cluster = Self::start_unanswered(issue);
        cluster.wait_until_it_answers().await;
        cluster
    }

    /// As [`Self::start_with_tls`], for a server that clients may refuse.
    pub(crate) fn start_unanswered(issue: impl FnOnce(&Path, &str) -> Certificates) -> Self {
        let mut cluster = Self::new(1);
        let address = cluster.nodes[0].address.to_string();
        cluster.certificates = Some(issue(cluster.folder.path(), &address));
        cluster.start_all();
        cluster
    }

    fn new(size: usize) -> Self {
        let nodes: Vec<_> =
            (0..size).map(|_| Node { address: own_address(), process: None }).collect();
        let (client_port, peer_port) = free_ports(nodes[0].address);
        // In the target folder, so that nothing stays elsewhere when the test is killed.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { folder, nodes, certificates: None, client_port, peer_port, quota: None, restores: 0 }
    }

    /// Bytes of a server's database.
    pub(crate) fn database_size(&self, node: usize) -> u64 {
        self.data_folder(node).join("member/snap/db").metadata().unwrap().len()
    }

    /// How many bytes the first server has sent to clients.
    pub(crate) async fn bytes_sent(&self) -> usize {
        let (address, port) = self.address(0);
        let mut stream = TcpStream::connect((address, port)).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let name = "etcd_network_client_grpc_sent_bytes_total ";
        let value = answer.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        value.parse::<f64>().unwrap() as usize
    }

    pub(crate) fn start_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.start_node(node);
        }
    }

    pub(crate) fn start_node(&mut self, node: usize) {
        if self.nodes[node].process.is_some() {
            return;
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join(format!("{node}.log")))
            .unwrap();
        // The kernel ends it with the thread of the test, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program("etcd"));
        command.arg(format!("--name=n{node}"));
        command.arg(format!("--data-dir={}", self.data_folder(node).display()));
        for flag in ["listen-client-urls", "advertise-client-urls"] {
            command.arg(format!("--{flag}={}", self.endpoint(node)));
        }
        for flag in ["listen-peer-urls", "initial-advertise-peer-urls"] {
            command.arg(format!("--{flag}={}", self.peer_url(node)));
        }
        command.arg(format!("--initial-cluster={}", self.initial_cluster()));
        command.arg("--initial-cluster-token=test");
        if let Some(quota) = self.quota {
            command.arg(format!("--quota-backend-bytes={quota}"));
        }
        if let Some(files) = &self.certificates {
            command.args(["--client-cert-auth"]);
            command.arg(format!("--trusted-ca-file={}", files.authorities.display()));
            command.arg(format!("--cert-file={}", files.certificate.display()));
            command.arg(format!("--key-file={}", files.key.display()));
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.nodes[node].process = Some(command.spawn().unwrap());
    }

    /// As if its power failed.
    pub(crate) fn kill(&mut self, node: usize) {
        if let Some(mut process) = self.nodes[node].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub(crate) fn kill_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.kill(node);
        }
    }

    /// Stops a node in the middle of whatever it does: its connections stay, and nothing is answered.
    pub(crate) fn freeze(&self, node: usize) {
        self.signal(node, "STOP");
    }

    /// Undoes [`Self::freeze`].
    pub(crate) fn thaw(&self, node: usize) {
        self.signal(node, "CONT");
    }

    fn signal(&self, node: usize, signal: &str) {
        let process = self.nodes[node].process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &process]).status().unwrap();
        assert!(sent.success());
    }

    /// The node that leads, once there is one.
    pub(crate) async fn leader(&self) -> usize {
        until("a leader", async || {
            let mut running = (0..self.nodes.len()).filter(|it| self.nodes[*it].process.is_some());
            running.find(|node| {
                let leader = self.status(*node, "Leader");
                leader.is_some() && leader == self.status(*node, "MemberID")
            })
        })
        .await
    }

    pub(crate) fn member_id(&self, node: usize) -> u64 {
        self.status(node, "MemberID").unwrap()
    }

    fn status(&self, node: usize, field: &str) -> Option<u64> {
        let lines = self.etcdctl(&[node], &["endpoint", "status", "--write-out=fields"])?;
        let field = format!("\"{field}\" : ");
        lines.lines().find_map(|line| line.strip_prefix(&field)?.parse().ok())
    }

    async fn wait_until_it_answers(&self) {
        let nodes: Vec<_> = (0..self.nodes.len()).collect();
        until("an answer of etcd", async || self.etcdctl(&nodes, &["endpoint", "health"])).await;
    }

    /// What etcdctl prints; `None` if it fails.
    pub(crate) fn etcdctl(&self, nodes: &[usize], arguments: &[&str]) -> Option<String> {
        let endpoints: Vec<_> = nodes.iter().map(|node| self.endpoint(*node)).collect();
        let mut command = Command::new(program("etcdctl"));
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", endpoints.join(",")));
        if let Some(files) = &self.certificates {
            command.arg(format!("--cacert={}", files.authorities.display()));
            command.arg(format!("--cert={}", files.certificate.display()));
            command.arg(format!("--key={}", files.key.display()));
        }
        let output = command.args(arguments).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs commands of a shell in which `etcdctl` speaks to the first server as an administrator. They have to succeed.
    pub(crate) fn run(&self, commands: &str) {
        let files = self.certificates.as_ref().unwrap();
        let output = Command::new("sh")
            .args(["-euc", commands])
            .env("ETCDCTL_API", "3")
            .env("ETCDCTL_ENDPOINTS", self.endpoint(0))
            .env("ETCDCTL_CACERT", &files.authorities)
            .env("ETCDCTL_CERT", &files.certificate)
            .env("ETCDCTL_KEY", &files.key)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn save_snapshot(&self) -> PathBuf {
        let path = self.folder.path().join("snapshot");
        self.etcdctl(&[0], &["snapshot", "save", &path.display().to_string()]).unwrap();
        path
    }

    /// Starts all nodes from a snapshot, under the same addresses and with the same token.
    pub(crate) async fn restore(&mut self, snapshot: &Path) {
        self.kill_all();
        self.restores += 1;
        for node in 0..self.nodes.len() {
            let arguments = [
                format!("--name=n{node}"),
                format!("--data-dir={}", self.data_folder(node).display()),
                format!("--initial-cluster={}", self.initial_cluster()),
                "--initial-cluster-token=test".into(),
                format!("--initial-advertise-peer-urls={}", self.peer_url(node)),
            ];
            let snapshot = snapshot.display().to_string();
            let mut all = vec!["snapshot", "restore", &snapshot];
            all.extend(arguments.iter().map(String::as_str));
            self.etcdctl(&[node], &all).unwrap();
        }
        self.start_all();
        self.wait_until_it_answers().await;
    }

    pub(crate) fn settings(&self, name: &str) -> FleetSettings {
        FleetSettings {
            fleet: Name::new("edge").unwrap(),
            endpoints: (0..self.nodes.len()).map(|node| self.endpoint(node)).collect(),
            tls: self.certificates.as_ref().map(|files| EtcdTls {
                authorities: files.authorities.clone(),
                certificate: files.certificate.clone(),
                key: files.key.clone(),
            }),
            name: Name::new(name).unwrap(),
            address: "127.0.0.1:7000".parse().unwrap(),
            region: None,
        }
    }

    pub(crate) async fn fleet(&self, name: &str) -> Fleet {
        Fleet::new(&self.settings(name)).await.unwrap()
    }

    pub(crate) fn address(&self, node: usize) -> (Ipv4Addr, u16) {
        (self.nodes[node].address, self.client_port)
    }

    fn endpoint(&self, node: usize) -> String {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.nodes[node].address, self.client_port)
    }

    fn peer_url(&self, node: usize) -> String {
        format!("http://{}:{}", self.nodes[node].address, self.peer_port)
    }

    fn initial_cluster(&self) -> String {
        let each = (0..self.nodes.len()).map(|node| format!("n{node}={}", self.peer_url(node)));
        each.collect::<Vec<_>>().join(",")
    }

    fn data_folder(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("data-{}-{node}", self.restores))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// What `look` finds, as soon as it finds something.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what} within {} s", PATIENCE.as_secs());
        sleep(Duration::from_millis(20)).await;
    }
}
