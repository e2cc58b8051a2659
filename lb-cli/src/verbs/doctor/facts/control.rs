use std::time::Duration;

use lb_daemon::control::{Answer, Question};

use super::Holder;
use crate::{daemon::converse, failure::Failure, receiver};

/// How long a receiver may take for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a receiver's daemon says of its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Control {
    /// It does not answer: why, and what to do.
    Silent(String, String),
    /// It answers.
    Answers(Answer),
}

impl Control {
    /// Asks the receiver that has the pins.
    ///
    /// # Errors
    /// There can be no conversation at all; that it does not answer is a fact.
    pub(super) fn ask(holder: &Holder) -> Result<Self, Failure> {
        let receiver = receiver::Receiver::of_process(Some(holder.pid), &holder.command);
        converse(async {
            Ok(match receiver.ask(Question::Status, PATIENCE).await {
                Ok(answer) => Self::Answers(answer),
                Err(failure) => Self::Silent(failure.message, failure.hint.unwrap_or_default()),
            })
        })
    }
}
