//! Failover while the store's disk and the journal do not answer, beside a quiet control run.
//!
//! The store is on an ext4 of its own, which is frozen (`fsfreeze`) and thawed by a process of its own, whatever happens to
//! the bench. The journal is a stand-in: the bench has its socket, and stops reading it, as a journald that is stopped by a
//! signal does. Its queue holds ten entries. Meanwhile an apply waits for the disk, and each failure and recovery is logged.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_maps::PinnedMaps;

use lb_tests::daemon::scrape;
use lb_tests::disk::Disk;
use lb_tests::process::{pause, until};
use lb_tests::sandbox::Sandbox;

use super::Plan;
use super::configuration::{Edit, Fleet};
use super::daemon::{Daemon, PATIENCE, Room, Surroundings};
use super::failover::{self, sample};
use super::figures::Row;

/// The journal's socket. The sandbox has a `/run` of its own.
const JOURNAL: &str = "/run/systemd/journal/socket";
/// From one look for entries to the next.
const READ: Duration = Duration::from_millis(1);
const DROPPED: &str = "spillway_log_entries_dropped_total";

/// What reads the journal's socket, or does not.
struct Journal {
    reads: Arc<AtomicBool>,
    /// Entries that it has read.
    entries: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Journal {
    fn listen() -> Result<Self> {
        fs::create_dir_all(Path::new(JOURNAL).parent().context("the socket's directory")?)?;
        let socket = UnixDatagram::bind(JOURNAL).context(JOURNAL)?;
        socket.set_nonblocking(true)?;
        let (reads, stop) = (Arc::new(AtomicBool::new(true)), Arc::<AtomicBool>::default());
        let entries = Arc::<AtomicU64>::default();
        let shared = (reads.clone(), entries.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let (reads, entries, stop) = shared;
            let mut buffer = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                let has_read = reads.load(Ordering::Relaxed) && socket.recv(&mut buffer).is_ok();
                match has_read {
                    true => drop(entries.fetch_add(1, Ordering::Relaxed)),
                    false => pause(READ),
                }
            }
        });
        Ok(Self { reads, entries, stop, thread: Some(thread) })
    }

    fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    fn stop_reading(&self) {
        self.reads.store(false, Ordering::Relaxed);
    }

    fn read_again(&self) {
        self.reads.store(true, Ordering::Relaxed);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
        let _gone_with_the_sandbox_otherwise = fs::remove_file(JOURNAL);
    }
}

/// Measures both, the quiet one first.
///
/// # Errors
/// A part that does not start or that the daemon refuses, or too few failures.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    let journal = Journal::listen()?;
    let mut disk = Disk::mount(sandbox)?;
    let surroundings =
        Surroundings { state: Some(disk.directory().join("state")), has_journal: true };
    let fleet = Fleet { pools: 0, backends: 0 };
    let daemon = Daemon::started_in(sandbox, "frozen", Room::for_fleet(fleet), surroundings)?;
    let origin = Instant::now();
    let (servers, addresses) = failover::start_servers(&daemon, origin)?;
    let configuration = |edit| failover::with_flapping(fleet, edit, &addresses);
    let client = daemon.client()?;
    client.apply(&configuration(Edit::Nothing)?, false)?;
    let maps = PinnedMaps::open(&daemon.bpffs)?;
    let time = plan.failover_time(false);

    eprintln!("control: failover before the disk and the journal stop");
    let mut rows = Vec::new();
    let seen = sample(&maps, 1, &servers, origin, time, plan.realtime)?;
    rows.extend(seen.rows("failover, disk and journal answer"));

    eprintln!("control: failover while the disk and the journal do not answer");
    let mut larger = configuration(Edit::Nothing)?;
    larger.regions.push(spillway_proto::v1::Region { name: "later".into(), ..Default::default() });
    let (seen, before) = std::thread::scope(|scope| -> Result<_> {
        // Thawed before the apply is waited for, however this ends.
        let mut stopped = Stopped(&mut disk, &journal);
        stopped.0.freeze()?;
        journal.stop_reading();
        let applying = daemon.client()?;
        let apply = scope.spawn(move || applying.apply(&larger, false));
        until("the apply waits for the disk", PATIENCE, || {
            let (status, _) = client.status()?;
            Ok(status.conditions.iter().any(|it| it.subject == "store").then_some(()))
        })?;
        let before = journal.entries();
        let seen = sample(&maps, 1, &servers, origin, time, plan.realtime)?;
        ensure!(!apply.is_finished(), "the apply did not wait for the disk");
        ensure!(journal.entries() == before, "the journal reads");
        stopped.end()?;
        apply.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((seen, before))
    })?;
    rows.extend(seen.rows("failover, disk frozen and journal stopped"));
    // Each failure has an entry.
    let dropped = || -> Result<u64> {
        Ok(scrape(&daemon.network.balancer)?.value(DROPPED, &[]).context(DROPPED)? as u64)
    };
    let arrived = until("the entries arrive", PATIENCE, || {
        let arrived = journal.entries() - before;
        Ok((arrived + dropped()? >= seen.samples()).then_some(arrived))
    })?;
    let row = Row::new("log, disk frozen and journal stopped");
    rows.push(row.count("entries that arrived afterwards", arrived).count("dropped", dropped()?));
    Ok(rows)
}

/// A disk and a journal that do not answer until this goes.
struct Stopped<'a>(&'a mut Disk, &'a Journal);

impl Stopped<'_> {
    fn end(&mut self) -> Result<()> {
        self.1.read_again();
        self.0.thaw()
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let _thawed_by_the_rescue_otherwise = self.end();
    }
}
