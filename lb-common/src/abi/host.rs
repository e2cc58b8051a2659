//! Host words: what a packet whose flow is remembered must know of its backend.

use super::member::MemberState;

/// A backend as a remembered flow needs it, by backend index, in one word that is changed in place:
/// `{incarnation 8, state 8, next hop 16, pool 32}` from the low end. Zero is dead.
///
/// The state is that of its member in the one pool that has it. Where several pools have it, each has its own
/// ([`super::names::SHARED_BACKENDS`]), and the word names none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostWord(pub u64);

/// Stands for several pools. No pool has this index.
const SEVERAL: u32 = u32::MAX;

impl HostWord {
    /// Nobody: what its connections were on is gone.
    pub const GONE: Self = Self(0);

    /// The word of a backend that one pool has.
    pub const fn new(incarnation: u8, state: MemberState, next_hop: u16, pool: u32) -> Self {
        Self(
            incarnation as u64
                | (state as u64) << 8
                | (next_hop as u64) << 16
                | (pool as u64) << 32,
        )
    }

    /// The word of a backend that several pools have.
    pub const fn shared(incarnation: u8, next_hop: u16) -> Self {
        Self::new(incarnation, MemberState::Dead, next_hop, SEVERAL)
    }

    /// Incarnation of the backend's index.
    #[inline(always)]
    pub const fn incarnation(self) -> u8 {
        self.0 as u8
    }

    /// Whether several pools have it.
    #[inline(always)]
    pub const fn is_shared(self) -> bool {
        self.pool() == SEVERAL
    }

    /// Its state in a pool, which it does not have in any other; asked of a shared one it is dead.
    #[inline(always)]
    pub const fn state_in(self, pool: u32) -> MemberState {
        if self.pool() == pool {
            MemberState::from_number((self.0 >> 8) as u8)
        } else {
            MemberState::Dead
        }
    }

    /// Index of its next hop; 0: none.
    #[inline(always)]
    pub const fn next_hop(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Index of the one pool that has it.
    #[inline(always)]
    pub const fn pool(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Key of [`super::names::SHARED_BACKENDS`]: `{backend 32, pool 32}` from the low end.
#[inline(always)]
pub const fn shared_key(pool: u32, backend: u32) -> u64 {
    backend as u64 | (pool as u64) << 32
}

/// Pool and backend of a key.
pub const fn of_shared_key(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_has_a_state_in_its_own_pool_alone() {
        let word = HostWord::new(5, MemberState::Unfit, 77, 3);
        assert_eq!((word.incarnation(), word.next_hop(), word.pool()), (5, 77, 3));
        assert_eq!(word.state_in(3), MemberState::Unfit);
        assert_eq!(word.state_in(4), MemberState::Dead);
        assert!(!word.is_shared());
        let shared = HostWord::shared(5, 77);
        assert!(shared.is_shared() && shared != HostWord::GONE);
        assert_eq!((shared.incarnation(), shared.next_hop()), (5, 77));
        for pool in [0, 3, u32::MAX] {
            assert_eq!(shared.state_in(pool), MemberState::Dead);
        }
        assert_eq!(HostWord::GONE.state_in(0), MemberState::Dead);
    }

    #[test]
    fn a_key_holds_pool_and_backend() {
        assert_eq!(shared_key(7, 65_535), 0x0000_0007_0000_ffff);
        assert_eq!(of_shared_key(shared_key(7, 65_535)), (7, 65_535));
    }
}
