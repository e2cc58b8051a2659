//! The audit file: a thread that adds lines, and reopens the file after a rotation.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
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

use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};

/// Requests that may wait for the thread.
const QUEUE: usize = 4096;
/// Objects in all lines that wait: bounds their memory.
const MAX_OBJECTS: usize = 200_000;

/// The thread that writes the file. It ends with the last clone.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    requests: mpsc::SyncSender<WriterRequest>,
    shared: Arc<Shared>,
}

/// State shared with the thread.
#[derive(Debug)]
struct Shared {
    subject: Subject,
    conditions: Conditions,
    /// Lines lost since the last one in the file.
    lost: AtomicU64,
    /// Objects in lines that wait.
    objects: AtomicUsize,
    /// Whether a flush timed out, and nothing was written since.
    stalled: AtomicBool,
}

pub(super) enum WriterRequest {
    Line(usize, Box<dyn FnOnce() -> Value + Send>),
    Reopen,
    Flush(oneshot::Sender<()>),
}

impl fmt::Debug for WriterRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriterRequest")
    }
}

impl Writer {
    pub(super) fn open(path: &Path, conditions: Conditions) -> io::Result<Self> {
        let (file, unwritable) = AuditFile::open(path)?;
        let (writer, requests) = Self::new(path, conditions);
        if let Some(error) = unwritable {
            writer.shared.condition(&error);
        }
        let shared = Arc::clone(&writer.shared);
        thread::Builder::new().name("audit".into()).spawn(move || run(file, &requests, &shared))?;
        Ok(writer)
    }

    /// A writer without its thread.
    pub(super) fn new(
        path: &Path,
        conditions: Conditions,
    ) -> (Self, mpsc::Receiver<WriterRequest>) {
        let (requests, receiver) = mpsc::sync_channel::<WriterRequest>(QUEUE);
        let shared = Shared {
            subject: Subject::named(ConditionReason::Audit, path.display().to_string()),
            conditions,
            lost: AtomicU64::new(0),
            objects: AtomicUsize::new(0),
            stalled: AtomicBool::new(false),
        };
        (Self { requests, shared: Arc::new(shared) }, receiver)
    }

    /// Queues a line with `size` objects. Does not block: if too much waits, the line is lost, which is a condition.
    pub(super) fn line(&self, size: usize, line: impl FnOnce() -> Value + Send + 'static) {
        let shared = &*self.shared;
        let waiting = shared.objects.fetch_add(size, Relaxed);
        // A line of any size fits an empty queue.
        let fits = waiting == 0 || waiting + size <= MAX_OBJECTS;
        if !fits || self.requests.try_send(WriterRequest::Line(size, Box::new(line))).is_err() {
            shared.objects.fetch_sub(size, Relaxed);
            shared.lost.fetch_add(1, Relaxed);
            shared.condition_is("the file accepts lines too slowly");
        }
    }

    pub(super) fn reopen(&self) {
        // The queue is only full while the file accepts nothing.
        let _ = self.requests.try_send(WriterRequest::Reopen);
    }

    pub(super) async fn flush(&self, limit: Duration) {
        if self.shared.stalled.load(Relaxed) {
            return;
        }
        let (done, written) = oneshot::channel();
        let sent = self.requests.try_send(WriterRequest::Flush(done));
        if sent.is_err() || timeout(limit, written).await.is_err() {
            self.shared.stalled.store(true, Relaxed);
            self.shared.condition_is(&format!("the file accepted no line for {limit:?}"));
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

fn run(mut file: AuditFile, requests: &mpsc::Receiver<WriterRequest>, shared: &Shared) {
    // A pipe without a reader is a condition from the start.
    let mut is_written = file.is_open();
    while let Ok(order) = requests.recv() {
        match order {
            WriterRequest::Line(size, line) => {
                let line = line().to_string();
                let added = add(&mut file, shared, &line);
                is_written = added.is_ok();
                match added {
                    Ok(()) if file.is_named() => shared.conditions.end(&shared.subject),
                    Ok(()) => {}
                    Err(error) => {
                        shared.lost.fetch_add(1, Relaxed);
                        shared.condition(&error);
                    }
                }
                shared.objects.fetch_sub(size, Relaxed);
                shared.stalled.store(false, Relaxed);
            }
            WriterRequest::Reopen => match file.reopen() {
                Ok(()) => shared.conditions.end(&shared.subject),
                Err(error) => shared.condition(&error),
            },
            WriterRequest::Flush(done) => {
                // If the caller timed out, it began a condition; but the file was only slow.
                let is_late = done.send(()).is_err();
                if is_late && is_written && file.is_named() {
                    shared.stalled.store(false, Relaxed);
                    shared.conditions.end(&shared.subject);
                }
            }
        }
    }
}

/// Adds a line, after one with the number of lost lines.
fn add(file: &mut AuditFile, shared: &Shared, line: &str) -> io::Result<()> {
    let lost = shared.lost.load(Relaxed);
    if lost > 0 {
        file.add(&json!({"time": now(), "what": "lost", "lines": lost}).to_string())?;
        shared.lost.fetch_sub(lost, Relaxed);
    }
    file.add(line)
}

/// The current time in the form of the file.
pub(super) fn now() -> Value {
    prost_types::Timestamp::from(SystemTime::now()).to_string().into()
}

/// A file that lines are appended to, and that may be unavailable for a while.
#[derive(Debug)]
struct AuditFile {
    path: PathBuf,
    /// `None`: it could not be opened yet; the next line tries again.
    file: Option<File>,
    /// Whether `path` still names the open file, as far as is known.
    named: bool,
    /// Whether the file ends within a line, for example because the disk was full.
    torn: bool,
}

impl AuditFile {
    /// Opens the file. A pipe without a reader, and a file on a disk that takes no writes, is opened later; its error is
    /// returned beside the value.
    fn open(path: &Path) -> io::Result<(Self, Option<io::Error>)> {
        let (file, unwritable) = match append(path) {
            Ok(file) => (Some(file), None),
            Err(error) if is_transient(&error) => (None, Some(error)),
            Err(error) => return Err(error),
        };
        Ok((Self { path: path.into(), file, named: true, torn: false }, unwritable))
    }

    /// Reopens the path. If that fails, the previous file is kept.
    fn reopen(&mut self) -> io::Result<()> {
        self.named = false;
        let file = append(&self.path)?;
        (self.file, self.named, self.torn) = (Some(file), true, false);
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Whether lines go to the file that `path` names.
    fn is_named(&self) -> bool {
        self.named
    }

    /// Adds a line with one write, since others may append to the file too.
    fn add(&mut self, line: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(append(&self.path)?),
        };
        let text = format!("{}{line}\n", if self.torn { "\n" } else { "" });
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.torn = !rest.is_empty();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // An open file would keep the file system from being unmounted and repaired.
                    if error.kind() == io::ErrorKind::ReadOnlyFilesystem {
                        self.file = None;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Whether the path may be right although it cannot be opened now.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
        || error.raw_os_error() == Some(libc::ENXIO)
}

/// Does not block on a pipe.
fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(libc::O_NONBLOCK).open(path)
}
