use lb_common::abi::member::MemberState;

/// What is known of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) state: MemberState,
    /// Whether it may have what nobody else may.
    pub(super) last_resort: bool,
}

impl Standing {
    /// A new member's.
    pub(super) const NEW: Self = Self { state: MemberState::Dead, last_resort: false };

    /// What becomes of the connections there: a last resort keeps those that it was given.
    pub(super) fn for_connections(self) -> MemberState {
        match self.state {
            MemberState::Dead if self.last_resort => MemberState::Unfit,
            state => state,
        }
    }
}
