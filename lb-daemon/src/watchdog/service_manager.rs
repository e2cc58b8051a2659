use std::{sync::mpsc, thread, time::Duration};

use sd_notify::NotifyState;
use tokio::{sync::oneshot, time::timeout};

use lb_base::error_chain;

/// Messages that may wait while the service manager does not read.
const QUEUE: usize = 64;
/// How long the daemon's end waits until its last message is sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends sd_notify(3) messages, if there is a service manager that wants them.
///
/// `sd_notify::notify` blocks while the manager's socket is full. So a thread of its own calls it: a manager that does
/// not read must not hold up the daemon.
#[derive(Clone, Debug, Default)]
pub struct ServiceManager(Option<mpsc::SyncSender<Message>>);

#[derive(Debug)]
pub(super) enum Message {
    /// Lines of one datagram.
    State(String),
    /// Answered when all messages before it are sent.
    Flush(oneshot::Sender<()>),
}

impl ServiceManager {
    /// The service manager that `NOTIFY_SOCKET` names.
    pub(super) fn from_environment() -> Self {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Self::default();
        }
        let (manager, messages) = Self::channel();
        thread::spawn(move || {
            for message in messages {
                match message {
                    Message::State(state) => {
                        if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&state)]) {
                            let cause = error_chain::message(&error);
                            tracing::error!("service manager: {state:?} not sent: {cause}");
                        }
                    }
                    Message::Flush(sent) => drop(sent.send(())),
                }
            }
        });
        manager
    }

    /// A manager, and the messages for it.
    pub(super) fn channel() -> (Self, mpsc::Receiver<Message>) {
        let (tx, rx) = mpsc::sync_channel(QUEUE);
        (Self(Some(tx)), rx)
    }

    pub fn is_present(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn ready(&self) {
        self.send(&[NotifyState::Ready]);
    }

    pub(super) fn feed_watchdog(&self) {
        self.send(&[NotifyState::Watchdog]);
    }

    /// Begins a reload. The time lets the manager tell this reload from an earlier one, systemd.service(5),
    /// `Type=notify-reload`.
    pub fn reloading(&self) {
        let now = NotifyState::monotonic_usec_now();
        self.send(&[NotifyState::Reloading, now.unwrap_or(NotifyState::MonotonicUsec(0))]);
    }

    /// Ends a reload.
    pub fn reloaded(&self) {
        self.ready();
    }

    /// Extends the timeout of the start, or of what else the manager waits for, to this long from now.
    pub fn extend_start(&self, by: Duration) {
        let microseconds = u32::try_from(by.as_micros()).unwrap_or(u32::MAX);
        self.send(&[NotifyState::ExtendTimeoutUsec(microseconds)]);
    }

    /// Sets the line that `systemctl status` shows.
    pub fn status(&self, line: &str) {
        self.send(&[NotifyState::Status(&line.replace('\n', " "))]);
    }

    /// Announces the daemon's end, and waits until that is sent.
    pub(super) async fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
        let (sent_tx, sent) = oneshot::channel();
        let Some(queue) = &self.0 else { return };
        if queue.try_send(Message::Flush(sent_tx)).is_ok() {
            let _ = timeout(FLUSH_TIMEOUT, sent).await;
        }
    }

    fn send(&self, states: &[NotifyState<'_>]) {
        let Some(queue) = &self.0 else { return };
        let lines: Vec<_> = states.iter().map(ToString::to_string).collect();
        if queue.try_send(Message::State(lines.join("\n"))).is_err() {
            tracing::error!(
                "service manager: does not read its socket, so {:?} was not sent",
                lines[0]
            );
        }
    }
}
