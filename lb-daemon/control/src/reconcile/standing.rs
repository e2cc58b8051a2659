use lb_common::abi::member::{Accepts, FULL_RAMP, MemberWord};

/// What is known of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) state: Accepts,
    /// Whether it may have what nobody else may.
    pub(super) last_resort: bool,
    /// Share of its slots' new connections that it takes, [`FULL_RAMP`] for all.
    pub(super) ramp: u8,
}

impl Standing {
    /// A new member's.
    pub(super) const NEW: Self =
        Self { state: Accepts::Nothing, last_resort: false, ramp: FULL_RAMP };

    /// What a word says of its member. A last resort that is dead says that it is unfit, and is
    /// taken at its word: its checks soon know better, and nothing breaks until then.
    pub(super) fn of(word: MemberWord) -> Self {
        Self { state: word.accepts(), last_resort: word.is_last_resort(), ramp: word.ramp() }
    }

    /// The state that words say: a last resort keeps the connections that it was given.
    pub(super) fn in_words(self) -> Accepts {
        match self.state {
            Accepts::Nothing if self.last_resort => Accepts::OpenOnly,
            state => state,
        }
    }

    /// The same word with what is known now.
    pub(super) fn put_in(self, word: MemberWord) -> MemberWord {
        let word = word.with_accepts(self.in_words()).with_last_resort(self.last_resort);
        word.with_ramp(self.ramp)
    }
}
