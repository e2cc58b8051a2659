use crate::{
    arguments::Options,
    daemon::{Daemon as Connection, converse},
    failure::Failure,
};

/// What a balancer's daemon says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Daemon {
    /// It does not answer, and why.
    Silent(String),
    /// It answers.
    Answers {
        /// Its version.
        version: String,
        /// The generation in force.
        generation: u64,
        /// Why the packet path is not at it; empty: it is.
        behind: String,
        /// What else is wrong, though it goes on: what, and why.
        troubles: Vec<(String, String)>,
    },
}

impl Daemon {
    /// Asks.
    ///
    /// # Errors
    /// There can be no conversation at all; that nobody answers is a fact.
    pub(super) fn ask(options: &Options) -> Result<Self, Failure> {
        converse(async {
            let asked = async { Connection::open(options).await?.status().await }.await;
            Ok(match asked {
                Ok(status) => Self::Answers {
                    version: status.version,
                    generation: status.generation,
                    behind: status.behind,
                    troubles: status.troubles.into_iter().map(|t| (t.subject, t.cause)).collect(),
                },
                Err(failure) => Self::Silent(failure.message),
            })
        })
    }
}
