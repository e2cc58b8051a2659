use std::{
    fmt, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::{sync::oneshot, time::timeout};

use super::file::Lines;
use lb_base::{conditions::Conditions, error_chain};

/// Orders that may wait for the thread.
const WAITING: usize = 4096;
/// Objects that the lines that wait may be about.
const OBJECTS: usize = 200_000;

/// The thread that writes the file. It ends with the last clone.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    orders: mpsc::SyncSender<Order>,
    shared: Arc<Shared>,
}

/// What both ends know.
#[derive(Debug)]
struct Shared {
    subject: String,
    conditions: Conditions,
    /// Lines that are missing in the file since the last one.
    lost: AtomicU64,
    /// Objects of lines that wait.
    objects: AtomicUsize,
    /// Whether somebody waited in vain, and nothing was written since.
    stalled: AtomicBool,
}

pub(super) enum Order {
    Line(usize, Box<dyn FnOnce() -> Value + Send>),
    Reopen,
    Flush(oneshot::Sender<()>),
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Order")
    }
}

impl Writer {
    pub(super) fn open(path: &Path, conditions: Conditions) -> io::Result<Self> {
        let (lines, unread) = Lines::open(path)?;
        let (writer, orders) = Self::new(path, conditions);
        if let Some(error) = unread {
            writer.shared.condition(&error);
        }
        let shared = Arc::clone(&writer.shared);
        thread::Builder::new().name("audit".into()).spawn(move || run(lines, &orders, &shared))?;
        Ok(writer)
    }

    /// One whose orders nobody carries out yet.
    pub(super) fn new(path: &Path, conditions: Conditions) -> (Self, mpsc::Receiver<Order>) {
        let (orders, receiver) = mpsc::sync_channel::<Order>(WAITING);
        let shared = Shared {
            subject: path.display().to_string(),
            conditions,
            lost: AtomicU64::new(0),
            objects: AtomicUsize::new(0),
            stalled: AtomicBool::new(false),
        };
        (Self { orders, shared: Arc::new(shared) }, receiver)
    }

    /// Has a line written, of a size in objects. Waits for nothing: where too many wait it is lost, and
    /// that is a condition.
    pub(super) fn line(&self, size: usize, line: impl FnOnce() -> Value + Send + 'static) {
        let shared = &*self.shared;
        let waiting = shared.objects.fetch_add(size, Relaxed);
        // A single line of any size has room where none waits.
        let fits = waiting == 0 || waiting + size <= OBJECTS;
        if !fits || self.orders.try_send(Order::Line(size, Box::new(line))).is_err() {
            shared.objects.fetch_sub(size, Relaxed);
            shared.lost.fetch_add(1, Relaxed);
            shared.condition_is("the file takes lines too slowly");
        }
    }

    pub(super) fn reopen(&self) {
        // So many wait only where the file takes nothing.
        let _ = self.orders.try_send(Order::Reopen);
    }

    pub(super) async fn flush(&self, patience: Duration) {
        if self.shared.stalled.load(Relaxed) {
            return;
        }
        let (done, written) = oneshot::channel();
        let sent = self.orders.try_send(Order::Flush(done));
        if sent.is_err() || timeout(patience, written).await.is_err() {
            self.shared.stalled.store(true, Relaxed);
            self.shared.condition_is(&format!("the file took no line for {patience:?}"));
        }
    }
}

impl Shared {
    fn condition(&self, error: &io::Error) {
        self.condition_is(&error_chain::message(error));
    }

    fn condition_is(&self, cause: &str) {
        self.conditions.begin(&self.subject, &format!("audit: not written: {cause}"));
    }
}

fn run(mut lines: Lines, orders: &mpsc::Receiver<Order>, shared: &Shared) {
    // A pipe that is not read is a condition from the beginning.
    let mut is_written = lines.is_open();
    while let Ok(order) = orders.recv() {
        match order {
            Order::Line(size, line) => {
                let line = line().to_string();
                let added = add(&mut lines, shared, &line);
                is_written = added.is_ok();
                match added {
                    Ok(()) if lines.is_named() => shared.conditions.end(&shared.subject),
                    Ok(()) => {}
                    Err(error) => {
                        shared.lost.fetch_add(1, Relaxed);
                        shared.condition(&error);
                    }
                }
                shared.objects.fetch_sub(size, Relaxed);
                shared.stalled.store(false, Relaxed);
            }
            Order::Reopen => match lines.reopen() {
                Ok(()) => shared.conditions.end(&shared.subject),
                Err(error) => shared.condition(&error),
            },
            Order::Flush(done) => {
                // Whoever waited may have given up, and have said so: it was only slow.
                let is_late = done.send(()).is_err();
                if is_late && is_written && lines.is_named() {
                    shared.stalled.store(false, Relaxed);
                    shared.conditions.end(&shared.subject);
                }
            }
        }
    }
}

/// Adds a line, and before it how many are missing.
fn add(lines: &mut Lines, shared: &Shared, line: &str) -> io::Result<()> {
    let lost = shared.lost.load(Relaxed);
    if lost > 0 {
        lines.add(&json!({"time": now(), "what": "lost", "lines": lost}).to_string())?;
        shared.lost.fetch_sub(lost, Relaxed);
    }
    lines.add(line)
}

/// Now, as the file has it.
pub(super) fn now() -> Value {
    prost_types::Timestamp::from(SystemTime::now()).to_string().into()
}
