//! A log that is not read holds nothing up: no failover, no answer, and not the daemon's end.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::{
        fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
        net::UnixDatagram,
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{Fixture, HTTP, Health, Tunnel, configuration},
    harness::{self, Case},
};
use lb_tests::{
    daemon::{Balancer, Binaries, HTTP_ADDRESS, answers, scrape},
    process::{PATIENCE, pause, until},
    sandbox::Sandbox,
    topology::REGIONS,
    traffic::{Requests, ensure_answered},
};
use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::{signal::Signal, stat::Mode},
    unistd::mkfifo,
};

pub(crate) const CASES: &[Case] = &[
    Case::works("a_pipe_that_is_not_read_holds_nothing_up", |sandbox| {
        unread(sandbox, Destination::Pipe)
    }),
    Case::works("a_stopped_journal_holds_nothing_up", |sandbox| {
        unread(sandbox, Destination::Journal)
    }),
    Case::works("a_pipe_that_is_read_has_every_entry", |sandbox| read(sandbox, Destination::Pipe)),
    Case::works("a_journal_that_reads_has_every_entry", |sandbox| {
        read(sandbox, Destination::Journal)
    }),
];

/// Where the daemon logs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    /// Stderr is a pipe with room for a page.
    Pipe,
    /// Stderr is a file, of which the daemon is told that the journal reads it.
    Journal,
}

/// The journal's socket. The sandbox has a `/run` of its own.
const JOURNAL: &str = "/run/systemd/journal/socket";

const DROPPED: &str = "spillway_log_entries_dropped_total";

/// The other end of the daemon's log.
struct Reader {
    /// Whether it reads now.
    reads: Arc<AtomicBool>,
    /// All that it read.
    text: Arc<Mutex<Vec<u8>>>,
}

impl Reader {
    /// Reads with `receive`, which must not block, as long as this process lives.
    fn new(
        reads: bool,
        mut receive: impl FnMut(&mut [u8]) -> io::Result<usize> + Send + 'static,
    ) -> Self {
        let (reads, text) = (Arc::new(AtomicBool::new(reads)), Arc::<Mutex<Vec<u8>>>::default());
        let reader = Self { reads: reads.clone(), text: text.clone() };
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 20];
            loop {
                let received = match reads.load(Ordering::Relaxed) {
                    true => receive(&mut buffer).unwrap_or_default(),
                    false => 0,
                };
                let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
                text.extend_from_slice(&buffer[..received]);
                drop(text);
                if received == 0 {
                    pause(Duration::from_millis(1));
                }
            }
        });
        reader
    }

    fn set(&self, reads: bool) {
        self.reads.store(reads, Ordering::Relaxed);
    }

    fn text(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Waits until the log has these words behind its first `skip` bytes.
    fn wait_for(&self, words: &str, skip: usize) -> Result<()> {
        until(&format!("{words:?} in the log"), PATIENCE, || {
            Ok(self.text().get(skip..).is_some_and(|text| text.contains(words)).then_some(()))
        })
    }
}

/// A service whose balancer logs at the finest level, so that little fills its queue.
struct Logging {
    fixture: Fixture,
    reader: Reader,
}

impl Logging {
    fn start(sandbox: &Sandbox, destination: Destination, reads: bool) -> Result<Self> {
        let mut fixture = Fixture::idle(sandbox, "log")?;
        fixture.balancer.stop()?;
        let directory = fixture.fabric.balancer.directory();
        let (stderr, reader) = match destination {
            Destination::Pipe => pipe(directory, reads)?,
            Destination::Journal => journal(directory, reads)?,
        };
        let mut binaries = Binaries::find()?;
        binaries.spillwayd = logging_to(&stderr, directory, &binaries.spillwayd)?;
        let mut balancer = Balancer::new(sandbox, &binaries, &fixture.fabric.balancer, REGIONS[0])?;
        balancer.more = vec!["--http".into(), HTTP_ADDRESS.to_string()];
        balancer.start()?;
        balancer.apply(&configuration(&fixture.fabric, Health::QUICK).text())?;
        fixture.balancer = balancer;
        fixture.wait_up(&[])?;
        Ok(Self { fixture, reader })
    }

    fn dropped(&self) -> Result<u64> {
        let dropped = scrape(&self.fixture.fabric.balancer)?.value(DROPPED, &[]);
        Ok(dropped.context(DROPPED)? as u64)
    }

    /// Asks the daemon, which logs how it answers, until it drops more entries.
    fn overflow(&self) -> Result<u64> {
        let before = self.dropped()?;
        until("entries are dropped", PATIENCE, || {
            self.fixture.balancer.cli(&["status"])?;
            Ok(Some(self.dropped()?).filter(|dropped| *dropped > before))
        })
    }

    /// The condition of the log in `spillway status`.
    fn condition(&self) -> Result<Option<String>> {
        let status = self.fixture.balancer.status()?;
        Ok(answers::condition(&status, "log").map(str::to_owned))
    }

    /// Kills a server under load. No request fails after the detection: so the maps have it.
    fn fail_over(&mut self) -> Result<()> {
        let client = &self.fixture.fabric.client;
        let to = Tunnel::Ipip.endpoint(HTTP);
        let requests = Requests::start(client, to, 2, Duration::from_millis(5));
        requests.wait_for(50)?;
        let victim = self.fixture.number("eu2")?;
        self.fixture.servers[victim].kill()?;
        self.fixture.wait_up(&["eu2"])?;
        let detected = Instant::now();
        requests.wait_for(100)?;
        let end = Instant::now();
        ensure_answered(&requests.finish()?, detected, end, &["eu2"])?;
        Ok(())
    }

    /// Stops the daemon, whether or not its log is read then: whoever calls this changes nothing of that meanwhile.
    fn stop(&mut self) -> Result<()> {
        let running = self.fixture.balancer.running().context("the daemon does not run")?;
        running.signal(Signal::SIGTERM)?;
        let begun = Instant::now();
        let status = until("the daemon ends", PATIENCE, || running.ended())?;
        harness::note(format!("the daemon's end: {:.2?}", begun.elapsed()));
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

fn unread(sandbox: &Sandbox, destination: Destination) -> Result<()> {
    let mut logging = Logging::start(sandbox, destination, false)?;
    logging.overflow()?;
    let cause = until("the condition", PATIENCE, || logging.condition())?;
    let name = match destination {
        Destination::Pipe => "standard error",
        Destination::Journal => "the journal",
    };
    ensure!(cause == format!("entries are dropped: {name} does not accept them"), "{cause}");
    logging.fail_over()?;
    // A short entry may still have had room.
    let during = logging.overflow()?;
    ensure!(logging.reader.text().is_empty(), "it reads");

    logging.reader.set(true);
    logging.reader.wait_for("log: resolved", 0)?;
    until("the condition ends", PATIENCE, || Ok(logging.condition()?.is_none().then_some(())))?;
    // The daemon goes on logging, and on a busy machine dropping, while the two are read one after the other.
    let dropped = until("as many are reported as were dropped", PATIENCE, || {
        let (reported, dropped) = (reported(&logging.reader.text())?, logging.dropped()?);
        Ok((reported == dropped).then_some(dropped))
    })?;
    harness::note(format!("{dropped} entries dropped"));
    ensure!(dropped >= during, "{dropped} dropped in all, {during} before");

    logging.reader.set(false);
    logging.overflow()?;
    logging.stop()
}

/// The control: the same with a reader.
fn read(sandbox: &Sandbox, destination: Destination) -> Result<()> {
    let mut logging = Logging::start(sandbox, destination, true)?;
    logging.fail_over()?;
    let (backend, condition) = ("backend 10.1.0.12 is unhealthy", logging.condition()?);
    logging.reader.wait_for(backend, 0)?;
    let dropped = logging.dropped()?;
    ensure!((dropped, &condition) == (0, &None), "{dropped} dropped, {condition:?}");
    logging.stop()?;
    logging.reader.wait_for("SIGTERM: stopping; packets are still forwarded", 0)
}

/// The sum of what all reports of dropped entries say.
fn reported(log: &str) -> Result<u64> {
    let reports = log.split(" entries were dropped before this line").collect::<Vec<_>>();
    let mut sum = 0;
    for report in &reports[..reports.len() - 1] {
        let number = report.rsplit("log: ").next().context("a report without a number")?;
        sum += number.parse::<u64>().with_context(|| number.to_owned())?;
    }
    Ok(sum)
}

/// A pipe for stderr.
fn pipe(directory: &Path, reads: bool) -> Result<(Stderr, Reader)> {
    let path = directory.join("stderr.pipe");
    mkfifo(&path, Mode::S_IRWXU)?;
    let nonblocking = OFlag::O_NONBLOCK.bits();
    // Open for writing too: so it neither waits for the daemon nor ends with it.
    let mut file = File::options().read(true).write(true).custom_flags(nonblocking).open(&path)?;
    fcntl(&file, FcntlArg::F_SETPIPE_SZ(4096))?;
    let reader = Reader::new(reads, move |buffer| file.read(buffer));
    Ok((Stderr { path, is_journal: false }, reader))
}

/// A file for stderr, and the journal's socket, which has room for ten entries.
fn journal(directory: &Path, reads: bool) -> Result<(Stderr, Reader)> {
    let path = directory.join("stderr.file");
    File::create(&path)?;
    let parent = Path::new(JOURNAL).parent().context("the socket's directory")?;
    fs::create_dir_all(parent)?;
    let socket = UnixDatagram::bind(JOURNAL)?;
    socket.set_nonblocking(true)?;
    let reader = Reader::new(reads, move |buffer| socket.recv(buffer));
    Ok((Stderr { path, is_journal: true }, reader))
}

/// The daemon's stderr.
struct Stderr {
    path: PathBuf,
    is_journal: bool,
}

/// A program that runs the daemon with this stderr.
fn logging_to(stderr: &Stderr, directory: &Path, daemon: &Path) -> Result<PathBuf> {
    let mut script = String::from("#!/bin/sh\nexport RUST_LOG=trace\n");
    if stderr.is_journal {
        let file = fs::metadata(&stderr.path)?;
        script += &format!("export JOURNAL_STREAM={}:{}\n", file.dev(), file.ino());
    }
    script += &format!("exec {:?} \"$@\" 2>>{:?}\n", daemon, stderr.path);
    let path = directory.join("spillwayd.sh");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
