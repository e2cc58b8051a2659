//! Requests of a reload, and the configuration file that a reload applies.
//!
//! The API and the receiver's control socket wait for the outcome of a reload. [`crate::app`] carries it out.

pub mod config_file;

use tokio::sync::{mpsc, oneshot};

use lb_control::command::Stopping;

/// Requests that may wait while a reload is under way. The next reload answers all that wait.
const QUEUE: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadOutcome {
    /// The generation in force after it; `None`: no configuration file was read.
    pub generation: Option<u64>,
    /// What was refused, `subject: cause` each.
    pub refused: Vec<String>,
    /// Set if the configuration is in force, but the packet path does not have it yet: why.
    pub behind: Option<String>,
    /// Names of settings that wait for the next start.
    pub waiting: Vec<String>,
}

/// Requests reloads.
#[derive(Clone, Debug)]
pub struct Reloads(mpsc::Sender<oneshot::Sender<ReloadOutcome>>);

/// Receives the requests.
#[derive(Debug)]
pub struct ReloadRequests(mpsc::Receiver<oneshot::Sender<ReloadOutcome>>);

/// The callers that wait for one reload.
#[derive(Debug, Default)]
pub struct ReloadWaiters(Vec<oneshot::Sender<ReloadOutcome>>);

impl Reloads {
    pub fn channel() -> (Self, ReloadRequests) {
        let (tx, rx) = mpsc::channel(QUEUE);
        (Self(tx), ReloadRequests(rx))
    }

    /// Requests a reload, and waits for the outcome of one that began after this call.
    ///
    /// # Errors
    /// The daemon stops first.
    pub async fn request(&self) -> Result<ReloadOutcome, Stopping> {
        let (reply, outcome) = oneshot::channel();
        self.0.send(reply).await.map_err(|_| Stopping)?;
        outcome.await.map_err(|_| Stopping)
    }
}

impl ReloadRequests {
    /// Waits for a request, and returns all that there are by then, without those whose callers are gone. Cancel safe.
    pub async fn next(&mut self) -> ReloadWaiters {
        loop {
            let Some(first) = self.0.recv().await else { return std::future::pending().await };
            let mut waiters = ReloadWaiters(vec![first]);
            waiters.join(self);
            if !waiters.0.is_empty() {
                return waiters;
            }
        }
    }
}

impl ReloadWaiters {
    /// Adds the callers that wait by now, and drops those that are gone.
    pub fn join(&mut self, requests: &mut ReloadRequests) {
        while let Ok(reply) = requests.0.try_recv() {
            self.0.push(reply);
        }
        self.0.retain(|reply| !reply.is_closed());
    }

    pub fn answer(self, outcome: &ReloadOutcome) {
        for reply in self.0 {
            let _caller_is_gone = reply.send(outcome.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_wait_are_answered_by_one_reload() {
        let (reloads, mut requests) = Reloads::channel();
        let asked: Vec<_> = (0..3)
            .map(|_| {
                let reloads = reloads.clone();
                tokio::spawn(async move { reloads.request().await })
            })
            .collect();
        // One that gives up is not waited for.
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, reloads.request()).await;
        assert!(given_up.is_err());
        while requests.0.len() < 4 {
            tokio::task::yield_now().await;
        }
        let waiters = requests.next().await;
        assert_eq!(waiters.0.len(), 3);
        let outcome = ReloadOutcome { refused: vec!["a: b".into()], ..ReloadOutcome::default() };
        waiters.answer(&outcome);
        for asked in asked {
            assert_eq!(asked.await.unwrap(), Ok(outcome.clone()));
        }
        drop(requests);
        assert_eq!(reloads.request().await, Err(Stopping));
    }
}
