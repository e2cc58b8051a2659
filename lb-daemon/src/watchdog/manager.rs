use std::sync::Arc;

use nix::time::{ClockId, clock_gettime};

use super::Notifier;

/// The service manager, if there is one that wants to be told.
#[derive(Clone, Debug, Default)]
pub struct Manager(Option<Arc<Notifier>>);

impl Manager {
    pub(super) fn new(notifier: Option<Notifier>) -> Self {
        Self(notifier.map(Arc::new))
    }

    /// Whether anybody is told.
    pub fn listens(&self) -> bool {
        self.0.is_some()
    }

    /// Settings and files are being read anew. The time lets the manager tell this reload from an
    /// earlier one, systemd.service(5), `Type=notify-reload`.
    pub fn reloading(&self) {
        let now =
            clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
        let microseconds = now.tv_sec() * 1_000_000 + now.tv_nsec() / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// The reload is done.
    pub fn reloaded(&self) {
        self.tell("READY=1");
    }

    /// The start, or what else the manager waits for, may take this much longer from now.
    pub fn extend_start(&self, by: std::time::Duration) {
        self.tell(&format!("EXTEND_TIMEOUT_USEC={}", by.as_micros()));
    }

    /// How the daemon is, in a line that `systemctl status` shows.
    pub fn status(&self, line: &str) {
        self.tell(&format!("STATUS={}", line.replace('\n', " ")));
    }

    pub(super) fn tell(&self, state: &str) {
        let Some(notifier) = &self.0 else { return };
        if let Err(error) = notifier.send(state) {
            tracing::error!("service manager: {}", lb_base::error_chain::message(&error));
        }
    }
}
