//! Readiness and watchdog of the service manager, sd_notify(3), through the crate `sd-notify`.
//!
//! - `READY=1` after the first round of one loop, the state's, which has tried by then to bring the packet path to the
//!   configuration in force; `STATUS=` says whether that succeeded;
//! - `WATCHDOG=1` at half the time that the manager asks for, but only if every registered loop has completed a round
//!   since the last one: a daemon with a loop that stands still is restarted, even if the others run;
//! - `RELOADING=1` with the time, and `READY=1` again, around a reload;
//! - `STATUS=` with a line of text;
//! - `STOPPING=1` when the daemon begins to stop.
//!
//! A loop shows its rounds through its [`Heartbeat`]. A loop without work completes an empty round at least every
//! [`Heartbeat::interval`].

mod service_manager;
#[cfg(test)]
mod tests;

use std::{env, future::Future, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tracing::{error, info};

use lb_base::heartbeat::{Beats, Heartbeat, Pulse};
pub use service_manager::ServiceManager;

/// `NOTIFY_SOCKET` names no path. `sd-notify` knows no abstract sockets and no vsock, which systemd does not use for
/// its services.
#[derive(Debug, thiserror::Error)]
#[error("NOTIFY_SOCKET: {0:?} is not a path")]
pub struct NotifySocketError(String);

/// Sends `READY=1`, `WATCHDOG=1` and `STOPPING=1`.
#[derive(Debug)]
pub struct Watchdog {
    manager: ServiceManager,
    period: Option<Duration>,
    pulse: Pulse,
    loops: Vec<Beats>,
}

impl Watchdog {
    /// A watchdog that feeds `manager` often enough for `period`, the longest silence that the manager accepts.
    /// `None`: the manager asks for no feeding.
    pub fn new(manager: ServiceManager, period: Option<Duration>) -> Self {
        Self { manager, period, pulse: Pulse::default(), loops: Vec::new() }
    }

    /// The watchdog that `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` ask for.
    ///
    /// # Errors
    /// [`NotifySocketError`].
    pub fn from_environment() -> Result<Self, NotifySocketError> {
        let socket = env::var_os("NOTIFY_SOCKET").map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = socket.filter(|name| !name.starts_with('/')) {
            return Err(NotifySocketError(name));
        }
        let period = sd_notify::watchdog_enabled().filter(|period| !period.is_zero());
        Ok(Self::new(ServiceManager::from_environment(), period))
    }

    /// Makes feeding depend on one more loop; the log calls it `name`.
    pub fn register(&mut self, name: &'static str) -> Heartbeat {
        // A quarter: a loop that beats this often is never late for the feeding at one half.
        let interval = self.period.map_or(Duration::from_secs(1), |period| period / 4);
        let (heartbeat, beats) = self.pulse.register(name, interval);
        self.loops.push(beats);
        heartbeat
    }

    /// Reports readiness at the first beat of `first`, feeds from then on, and ends when `stop` is done.
    pub async fn run(mut self, first: Heartbeat, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        tokio::select! {
            () = &mut stop => {}
            () = self.feed(&first) => {}
        }
        self.manager.stopping().await;
    }

    async fn feed(&mut self, first: &Heartbeat) {
        while first.rounds() == 0 {
            self.pulse.next_beat().await;
        }
        self.manager.ready();
        let Some(period) = self.period else { return std::future::pending().await };
        let mut turns = interval_at(Instant::now() + period / 2, period / 2);
        // Feedings missed during a stall are not made up for.
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let last_feeding = Instant::now();
            turns.tick().await;
            self.wait_for_all(last_feeding, period).await;
            self.manager.feed_watchdog();
            self.loops.iter_mut().for_each(Beats::forget);
        }
    }

    /// Waits until every loop has completed a round since the last feeding.
    async fn wait_for_all(&self, last_feeding: Instant, period: Duration) {
        let overdue = sleep_until(last_feeding + period);
        tokio::pin!(overdue);
        let mut reported = false;
        while let Some(stalled) = self.loops.iter().find(|beats| !beats.came()) {
            tokio::select! {
                () = self.pulse.next_beat() => {}
                () = &mut overdue, if !reported => {
                    reported = true;
                    let silent = last_feeding.elapsed().as_millis();
                    error!("watchdog: the {} loop has completed no round for {silent} ms", stalled.name());
                }
            }
        }
        if reported {
            info!("watchdog: every loop completes rounds again");
        }
    }

    pub fn manager(&self) -> ServiceManager {
        self.manager.clone()
    }
}
