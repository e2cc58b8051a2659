//! Requests of a reload. The API and the receiver's control socket wait for its outcome; what starts the daemon carries it
//! out.

use std::fmt;

use tokio::sync::{mpsc, oneshot};

use lb_control::command::Stopping;

/// Requests that may wait while a reload is under way. The next reload answers all that wait.
const QUEUE: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadOutcome {
    /// The generation in force after it; `None`: no configuration file was read.
    pub generation: Option<u64>,
    /// What was refused.
    pub refused: Vec<Refused>,
    /// Set if the configuration is in force, but the packet path does not have it yet: why.
    pub behind: Option<String>,
    /// Names of settings that wait for the next start.
    pub waiting: Vec<String>,
}

/// What a reload refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// `subject: cause`; of several mistakes the first, and how many more there are.
    pub text: String,
    /// If there are several mistakes, each, `subject: cause`.
    pub mistakes: Vec<String>,
}

impl Refused {
    /// Puts what it is about before each text.
    #[must_use]
    pub fn about(self, subject: impl fmt::Display) -> Self {
        let with = |text: String| format!("{subject}: {text}");
        Self { text: with(self.text), mistakes: self.mistakes.into_iter().map(with).collect() }
    }

    /// The mistakes, or all that there is.
    pub fn lines(self) -> Vec<String> {
        if self.mistakes.is_empty() { vec![self.text] } else { self.mistakes }
    }
}

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self { text, mistakes: Vec::new() }
    }
}

/// Requests reloads.
#[derive(Clone, Debug)]
pub struct Reloads(mpsc::Sender<ReloadRequest>);

#[derive(Debug)]
struct ReloadRequest {
    /// Put the configuration file in force however much it removes.
    force: bool,
    reply: oneshot::Sender<ReloadOutcome>,
}

/// Receives the requests.
#[derive(Debug)]
pub struct ReloadRequests(mpsc::Receiver<ReloadRequest>);

/// The callers that wait for one reload.
#[derive(Debug, Default)]
pub struct ReloadWaiters(Vec<ReloadRequest>);

impl Reloads {
    pub fn channel() -> (Self, ReloadRequests) {
        let (tx, rx) = mpsc::channel(QUEUE);
        (Self(tx), ReloadRequests(rx))
    }

    /// Requests a reload, and waits for the outcome of one that began after this call. With `force` the configuration file
    /// comes into force however much it removes.
    ///
    /// # Errors
    /// The daemon stops first.
    pub async fn request(&self, force: bool) -> Result<ReloadOutcome, Stopping> {
        let (reply, outcome) = oneshot::channel();
        self.0.send(ReloadRequest { force, reply }).await.map_err(|_| Stopping)?;
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
        while let Ok(request) = requests.0.try_recv() {
            self.0.push(request);
        }
        self.0.retain(|request| !request.reply.is_closed());
    }

    /// Whether any of them asks for force.
    pub fn force(&self) -> bool {
        self.0.iter().any(|request| request.force)
    }

    pub fn answer(self, outcome: &ReloadOutcome) {
        for request in self.0 {
            let _caller_is_gone = request.reply.send(outcome.clone());
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
            .map(|number| {
                let reloads = reloads.clone();
                tokio::spawn(async move { reloads.request(number == 1).await })
            })
            .collect();
        // One that gives up is not waited for.
        let given_up =
            tokio::time::timeout(std::time::Duration::ZERO, reloads.request(false)).await;
        assert!(given_up.is_err());
        while requests.0.len() < 4 {
            tokio::task::yield_now().await;
        }
        let waiters = requests.next().await;
        assert_eq!(waiters.0.len(), 3);
        assert!(waiters.force(), "one of them asks for it");
        let outcome =
            ReloadOutcome { refused: vec!["a: b".to_owned().into()], ..ReloadOutcome::default() };
        waiters.answer(&outcome);
        for asked in asked {
            assert_eq!(asked.await.unwrap(), Ok(outcome.clone()));
        }
        drop(requests);
        assert_eq!(reloads.request(false).await, Err(Stopping));
    }
}
