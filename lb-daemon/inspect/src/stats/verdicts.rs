use std::borrow::Cow;

use lb_common::abi::{
    counter::VerdictCounter,
    verdict::{Action, Verdict},
};
use serde::Serialize;

/// Packets under one verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictStats {
    /// The verdict, as in docs/verdicts.md.
    pub verdict: Cow<'static, str>,
    /// `pass`, `drop`, `transmit` or `redirect`.
    pub action: Cow<'static, str>,
    /// Packets.
    pub packets: u64,
    /// Bytes of the frames as they came in.
    pub bytes: u64,
}

impl From<(Verdict, VerdictCounter)> for VerdictStats {
    fn from((verdict, VerdictCounter { packets, bytes }): (Verdict, VerdictCounter)) -> Self {
        let (name, action) = (verdict.name(), action_word(verdict.action()));
        Self { verdict: name.into(), action: action.into(), packets, bytes }
    }
}

/// What the driver does, in a word.
pub fn action_word(action: Action) -> &'static str {
    match action {
        Action::Pass => "pass",
        Action::Drop => "drop",
        Action::Transmit => "transmit",
        Action::Redirect => "redirect",
    }
}

/// A meaning as one line.
pub fn sentence(meaning: &str) -> String {
    meaning.split_whitespace().collect::<Vec<_>>().join(" ")
}
