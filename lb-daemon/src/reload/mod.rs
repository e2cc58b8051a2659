//! Reading settings again while the daemon runs: who asks for it, and what it came to.
//!
//! SIGHUP asks without hearing the outcome; the API and the receiver's control socket wait for it.

use tokio::sync::{mpsc, oneshot};

use lb_control::command::Stopping;

/// Requests that may wait while a reload is under way. Those that wait are answered by one reload.
const WAITING: usize = 64;

/// What a reload came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The generation in force after it; `None`: no configuration file was read.
    pub generation: Option<u64>,
    /// What was refused, `subject: cause` each. Empty: nothing.
    pub refused: Vec<String>,
    /// That the configuration is in force, but the packet path is not there yet.
    pub behind: Option<String>,
    /// Names of settings that wait for the next start.
    pub waiting: Vec<String>,
}

/// The asking end. Clones ask the same daemon.
#[derive(Clone, Debug)]
pub struct Reloads(mpsc::Sender<oneshot::Sender<Outcome>>);

/// The answering end.
#[derive(Debug)]
pub struct ReloadRequests(mpsc::Receiver<oneshot::Sender<Outcome>>);

/// Those who wait for the reload that begins now.
#[derive(Debug, Default)]
pub struct Waiters(Vec<oneshot::Sender<Outcome>>);

impl Reloads {
    /// An asking end and the answering one.
    pub fn channel() -> (Self, ReloadRequests) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), ReloadRequests(receiver))
    }

    /// Has everything read again, and waits for the outcome of a reload that began after this call.
    ///
    /// # Errors
    /// The daemon stops first.
    pub async fn ask(&self) -> Result<Outcome, Stopping> {
        let (reply, outcome) = oneshot::channel();
        self.0.send(reply).await.map_err(|_| Stopping)?;
        outcome.await.map_err(|_| Stopping)
    }
}

impl ReloadRequests {
    /// Waits for a request, and takes all that there are. A request whose caller is gone is dropped. May be
    /// cancelled without losing one.
    pub async fn next(&mut self) -> Waiters {
        loop {
            let Some(first) = self.0.recv().await else { return std::future::pending().await };
            let mut waiters = Waiters(vec![first]);
            waiters.join(self);
            if !waiters.0.is_empty() {
                return waiters;
            }
        }
    }
}

impl Waiters {
    /// Adds those that wait by now; whoever is gone is left out.
    pub fn join(&mut self, requests: &mut ReloadRequests) {
        while let Ok(reply) = requests.0.try_recv() {
            self.0.push(reply);
        }
        self.0.retain(|reply| !reply.is_closed());
    }

    /// Tells them.
    pub fn answer(self, outcome: &Outcome) {
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
                tokio::spawn(async move { reloads.ask().await })
            })
            .collect();
        // One that gives up is not waited for.
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, reloads.ask()).await;
        assert!(given_up.is_err());
        while requests.0.len() < 4 {
            tokio::task::yield_now().await;
        }
        let waiters = requests.next().await;
        assert_eq!(waiters.0.len(), 3);
        let outcome = Outcome { refused: vec!["a: b".into()], ..Outcome::default() };
        waiters.answer(&outcome);
        for asked in asked {
            assert_eq!(asked.await.unwrap(), Ok(outcome.clone()));
        }
        drop(requests);
        assert_eq!(reloads.ask().await, Err(Stopping));
    }
}
