//! How the reconciler has the owner of member words do its part of a change.

use tokio::sync::{mpsc, oneshot};

use super::MemberWords;
use crate::reconcile::ReconcileError;

type Step = Box<dyn FnOnce(&mut MemberWords) + Send>;

pub(super) type Receiver = mpsc::UnboundedReceiver<Step>;

/// Sends steps to the owner of member words.
#[derive(Clone, Debug)]
pub(in crate::reconcile) struct Steps(mpsc::UnboundedSender<Step>);

pub(super) fn channel() -> (Steps, Receiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
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
        let step = Box::new(move |words: &mut MemberWords| drop(reply.send(step(words))));
        self.0.send(step).map_err(|_| ReconcileError::Stopping)?;
        answer.await.map_err(|_| ReconcileError::Stopping)
    }
}
