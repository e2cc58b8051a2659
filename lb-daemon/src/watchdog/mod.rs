//! What the service manager hears of the daemon, sd_notify(3).
//!
//! - `READY=1` at the first round of the loop that is named for it, which has tried by then to bring packets to what
//!   is in force; whether that succeeded is in `STATUS=`;
//! - `WATCHDOG=1` at half the time it asks for, but only if every registered loop has completed a
//!   round since the last one: a daemon whose loops stand still is restarted, whatever else of it
//!   still runs;
//! - `RELOADING=1` with the time, and `READY=1` again, around a reload;
//! - `STATUS=` in a line;
//! - `STOPPING=1` when the daemon begins to stop.
//!
//! A loop shows its rounds through its [`Heartbeat`]. One that has nothing to do completes an empty
//! round at least every [`Heartbeat::interval`].

mod manager;
mod notifier;

use std::{env, ffi::OsString, future::Future, process, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tracing::{error, info};

use lb_base::heartbeat::{Beats, Heartbeat, Pulse};
pub use manager::Manager;
pub use notifier::{Notifier, NotifyError};

/// Sends `READY=1`, `WATCHDOG=1` and `STOPPING=1`.
#[derive(Debug)]
pub struct Watchdog {
    manager: Manager,
    period: Option<Duration>,
    pulse: Pulse,
    loops: Vec<Beats>,
}

impl Watchdog {
    /// A watchdog that tells `notifier` (`None`: nobody), and feeds it in time for `period`, the
    /// longest silence that the service manager puts up with (`None`: it asks for no feeding).
    pub fn new(notifier: Option<Notifier>, period: Option<Duration>) -> Self {
        Self { manager: Manager::new(notifier), period, pulse: Pulse::default(), loops: Vec::new() }
    }

    /// The watchdog that `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` ask for.
    ///
    /// # Errors
    /// The socket that `NOTIFY_SOCKET` names cannot be used.
    pub fn from_environment() -> Result<Self, NotifyError> {
        Self::from_variables(|name| env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, NotifyError> {
        let text = |name| variable(name).and_then(|value| value.into_string().ok());
        let notifier = variable("NOTIFY_SOCKET").map(|name| Notifier::new(&name)).transpose()?;
        // It may be meant for a process that started us, sd_watchdog_enabled(3).
        let ours = text("WATCHDOG_PID").is_none_or(|pid| pid == process::id().to_string());
        let period = text("WATCHDOG_USEC").filter(|_| ours).and_then(|usec| usec.parse().ok());
        Ok(Self::new(notifier, period.filter(|usec| *usec > 0).map(Duration::from_micros)))
    }

    /// Makes feeding depend on one more loop; `name` is what the log calls it.
    pub fn register(&mut self, name: &'static str) -> Heartbeat {
        // A quarter: a loop that beats this often is never late for the feeding at one half.
        let interval = self.period.map_or(Duration::from_secs(1), |period| period / 4);
        let (heartbeat, beats) = self.pulse.register(name, interval);
        self.loops.push(beats);
        heartbeat
    }

    /// Says ready at the first beat of `first`, feeds from then on, and says stopping, and ends,
    /// when `stop` is done.
    pub async fn run(mut self, first: Heartbeat, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        tokio::select! {
            () = &mut stop => {}
            () = self.feed(&first) => {}
        }
        self.manager.tell("STOPPING=1");
    }

    async fn feed(&mut self, first: &Heartbeat) {
        while first.rounds() == 0 {
            self.pulse.next_beat().await;
        }
        self.manager.tell("READY=1");
        let Some(period) = self.period else { return std::future::pending().await };
        let mut turns = interval_at(Instant::now() + period / 2, period / 2);
        // After a stall the feedings that fell out are not made up for.
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let fed = Instant::now();
            turns.tick().await;
            self.wait_for_all(fed, period).await;
            self.manager.tell("WATCHDOG=1");
            self.loops.iter_mut().for_each(Beats::forget);
        }
    }

    /// Waits until every loop has completed a round since the last feeding, at `fed`.
    async fn wait_for_all(&self, fed: Instant, period: Duration) {
        let overdue = sleep_until(fed + period);
        tokio::pin!(overdue);
        let mut said = false;
        while let Some(stalled) = self.loops.iter().find(|beats| !beats.came()) {
            tokio::select! {
                () = self.pulse.next_beat() => {}
                () = &mut overdue, if !said => {
                    said = true;
                    let silent = fed.elapsed().as_millis();
                    error!("watchdog: the {} loop has completed no round for {silent} ms", stalled.name());
                }
            }
        }
        if said {
            info!("watchdog: every loop completes rounds again");
        }
    }

    /// Who is told.
    pub fn manager(&self) -> Manager {
        self.manager.clone()
    }
}

#[cfg(test)]
mod tests;
