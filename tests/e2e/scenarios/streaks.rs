//! Rows of results go on over `kill -9` of the daemon: a backend needs as many more as it would have needed without.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, HASH_KEY, HTTP, Tunnel};
use lb_e2e::harness::Case;
use lb_tests::daemon::answers::reason;
use lb_tests::process::{PATIENCE, eventually, pause, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Backend, Fabric, REGIONS};
use lb_tests::traffic::ask_http;
use serde_json::Value;
use spillway_proto::v1::BackendState;

const VICTIM: &str = "eu2";
const OTHER: &str = "eu1";
/// Port of the checks.
const PORT: u16 = 8080;

pub(crate) const CASES: &[Case] = &[Case::waits("rows_of_results_go_on_over_kill_9", go_on)];

fn go_on(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "rows")?;
    let (victim, other) = (fixture.number(VICTIM)?, fixture.number(OTHER)?);
    let [victim, other] = [victim, other].map(|number| fixture.fabric.backends[number].clone());
    let server = CheckServer::start(&victim, None)?;
    let _other = CheckServer::start(&other, Some(200))?;
    fixture.balancer.apply(&configuration(&[&victim, &other]))?;
    server.answer(&[200]);
    wait_for(&fixture, &victim, BackendState::Up, "all checks pass")?;
    eventually("both answer", PATIENCE, || answering(&fixture).is_ok_and(|it| it.len() == 2))?;

    // Two of three failures, and then one that takes it out.
    server.answer(&[500, 500]);
    restart(&mut fixture, &server, &victim, |streak| {
        streak["health"] == "passing" && streak["failed"] == 2
    })?;
    wait_for(&fixture, &victim, BackendState::Up, "not checked yet")?;
    server.answer(&[500]);
    wait_for(&fixture, &victim, BackendState::Unhealthy, "check page: status 500")?;
    ensure!(answering(&fixture)? == [OTHER.to_owned()].into(), "{VICTIM} is out");

    // Two of three successes, and then one that brings it back.
    server.answer(&[200, 200]);
    restart(&mut fixture, &server, &victim, |streak| streak["passed"] == 2)?;
    wait_for(&fixture, &victim, BackendState::Unhealthy, "not checked yet")?;
    ensure!(answering(&fixture)? == [OTHER.to_owned()].into(), "a start brings nothing up");
    server.answer(&[200]);
    wait_for(&fixture, &victim, BackendState::Up, "all checks pass")?;
    eventually("both answer", PATIENCE, || answering(&fixture).is_ok_and(|it| it.len() == 2))?;

    // One success before, so one is too few after.
    server.answer(&[500, 500, 500]);
    wait_for(&fixture, &victim, BackendState::Unhealthy, "check page: status 500")?;
    server.answer(&[200]);
    restart(&mut fixture, &server, &victim, |streak| streak["passed"] == 1)?;
    server.answer(&[200]);
    wait_for(&fixture, &victim, BackendState::Unhealthy, "check page: passed 2 of 3")?;
    ensure!(answering(&fixture)? == [OTHER.to_owned()].into(), "one success is too few");
    server.answer(&[200]);
    wait_for(&fixture, &victim, BackendState::Up, "all checks pass")?;
    Ok(())
}

/// Kills the daemon once all answers are given and its file has this row, and starts another one. The check that is under
/// way has no answer.
fn restart(
    fixture: &mut Fixture,
    server: &CheckServer,
    victim: &Backend,
    is_row: impl Fn(&Value) -> bool,
) -> Result<()> {
    let mut file = fixture.balancer.socket.clone().into_os_string();
    file.push(".health-state");
    let file = PathBuf::from(file);
    let address = victim.v4.to_string();
    until("the row is in the file", PATIENCE, || {
        let Ok(text) = fs::read(&file) else { return Ok(None) };
        let state: Value = serde_json::from_slice(&text).context("health state")?;
        let streaks = state["streaks"].as_array().context("no streaks")?;
        Ok(streaks.iter().any(|it| it["address"] == address && is_row(it)).then_some(()))
    })?;
    ensure!(server.answers().is_empty(), "an answer was not asked for");
    fixture.balancer.kill()?;
    eventually("no check is under way", PATIENCE, || server.waiting() == 0)?;
    fixture.balancer.start()
}

/// Two backends. Checks follow fast while a row has begun; a check waits long for its answer.
fn configuration(backends: &[&Backend]) -> String {
    let mut text = format!(
        "hash_key = \"{HASH_KEY}\"\n[[region]]\nname = \"{}\"\n
[[health_check]]\nname = \"page\"\nport = {PORT}\ninterval = \"8s\"\ntimeout = \"8s\"
fast_interval = \"100ms\"\nrise = 3\nfall = 3\nhttp = {{ path = \"/\" }}\n
[[pool]]\nname = \"web\"\nhold_down = \"0s\"\nhealth_checks = [\"page\"]\n",
        REGIONS[0]
    );
    for backend in backends {
        let (address, region) = (backend.v4, &backend.region);
        text += &format!("[[pool.backend]]\naddress = \"{address}\"\nregion = \"{region}\"\n");
    }
    let vip = Tunnel::Ipip.vip();
    text + &format!(
        "[[service]]\nname = \"web\"\naddress = \"{vip}\"\nport = {HTTP}\nprotocol = \"tcp\"\npool = \"web\"\n"
    )
}

fn wait_for(fixture: &Fixture, backend: &Backend, state: BackendState, words: &str) -> Result<()> {
    let address = backend.v4.to_string();
    let waited = until(&format!("it is {state:?}: {words}"), PATIENCE, || {
        let status = fixture.balancer.status()?;
        let mut of_address = status.backends.iter().filter(|it| it.address == address);
        let is_so = of_address.any(|it| it.state() == state && reason(it).contains(words));
        Ok(is_so.then_some(()))
    });
    waited.with_context(|| fixture.balancer.cli(&["status"]).unwrap_or_else(|e| e.to_string()))
}

/// Who answers new connections.
fn answering(fixture: &Fixture) -> Result<BTreeSet<String>> {
    let to = Tunnel::Ipip.endpoint(HTTP);
    fixture.fabric.client.enter(|| {
        (0..40).map(|_| ask_http(SocketAddr::from((Fabric::CLIENT_V4, 0)), to)).collect()
    })?
}

/// Answers each check when it is told how.
#[derive(Clone, Debug)]
struct CheckServer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Statuses of the next answers.
    answers: Mutex<VecDeque<u16>>,
    /// Without one of these.
    always: Option<u16>,
    /// Checks that wait for their answer.
    waiting: AtomicUsize,
}

impl CheckServer {
    fn start(backend: &Backend, always: Option<u16>) -> Result<Self> {
        let listener =
            backend.node.enter(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))??;
        let (answers, waiting) = (Mutex::default(), AtomicUsize::new(0));
        let server = Self(Arc::new(Shared { answers, always, waiting }));
        let accepting = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = accepting.clone();
                // A connection that ends is none.
                std::thread::spawn(move || drop(server.serve(stream)));
            }
        });
        Ok(server)
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, VecDeque<u16>> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The statuses of the next answers.
    fn answer(&self, statuses: &[u16]) {
        self.answers().extend(statuses);
    }

    fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::SeqCst)
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        self.0.waiting.fetch_add(1, Ordering::SeqCst);
        let served = self.serve_one(stream);
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        served
    }

    fn serve_one(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            request.extend(byte);
        }
        stream.set_nonblocking(true)?;
        let status = loop {
            // A daemon that was killed takes no answer.
            match stream.peek(&mut [0]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => return Ok(()),
            }
            if let Some(status) = self.answers().pop_front().or(self.0.always) {
                break status;
            }
            pause(Duration::from_millis(2));
        };
        write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
    }
}
