//! How the reconciler has the owner of member words do its part of a change.

use std::fmt;

use tokio::sync::oneshot;

use super::MemberWords;
use crate::reconcile::ReconcileError;
use lb_base::queue::{QueueCounters, UnboundedReceiver, UnboundedSender, unbounded};

/// A part of a change.
pub(super) struct Step(Box<dyn FnOnce(&mut MemberWords) + Send>);

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").finish_non_exhaustive()
    }
}

impl Step {
    pub(super) fn run(self, words: &mut MemberWords) {
        self.0(words);
    }
}

pub(super) type Receiver = UnboundedReceiver<Step>;

/// Sends steps to the owner of member words.
#[derive(Clone, Debug)]
pub(in crate::reconcile) struct Steps(UnboundedSender<Step>);

pub(super) fn channel(counters: &QueueCounters) -> (Steps, Receiver) {
    let (sender, receiver) = unbounded(counters);
    (Steps(sender), receiver)
}

impl Steps {
    /// Waits until the owner has taken a step. Changes of health wait for it, so it must be short.
    ///
    /// # Errors
    /// [`ReconcileError::Stopping`].
    pub(in crate::reconcile) async fn take<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut MemberWords) -> T + Send + 'static,
    ) -> Result<T, ReconcileError> {
        let (reply, answer) = oneshot::channel();
        // A reconciler that no longer waits is being dropped.
        let step = move |words: &mut MemberWords| drop(reply.send(step(words)));
        self.0.send(Step(Box::new(step))).map_err(|_| ReconcileError::Stopping)?;
        answer.await.map_err(|_| ReconcileError::Stopping)
    }
}
