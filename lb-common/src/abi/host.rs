//! Host words: what an open connection away from home must know of its backend.

use super::member::MemberState;

/// A backend whatever the pool, by backend index, in one word that is changed in place:
/// `{incarnation 8, state 8, next hop 16}` from the low end. Zero is dead.
///
/// The state is the best of those in its pools: a connection that was placed by an exception is not
/// moved while the host lives in any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWord(pub u64);

impl HostWord {
    /// Nobody: what its connections were on is gone.
    pub const GONE: Self = Self(0);

    /// A word from its parts.
    pub const fn new(incarnation: u8, state: MemberState, next_hop: u16) -> Self {
        Self(incarnation as u64 | (state as u64) << 8 | (next_hop as u64) << 16)
    }

    /// Incarnation of the backend's index.
    #[inline(always)]
    pub const fn incarnation(self) -> u8 {
        self.0 as u8
    }

    /// The best of its states.
    #[inline(always)]
    pub const fn state(self) -> MemberState {
        MemberState::from_number((self.0 >> 8) as u8)
    }

    /// Index of its next hop; 0: none.
    #[inline(always)]
    pub const fn next_hop(self) -> u16 {
        (self.0 >> 16) as u16
    }
}
