//! Backends: where tunnels end, and what packets of displaced connections and tracked flows must know of them.

use super::{member::Accepts, next_hop::AWAITED, service::AddressWords};

/// A backend. Immutable once published; a change is another index or another incarnation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Outer destination, as in the packet.
    pub address: AddressWords,
    /// [`super::service::IPV4`] or [`super::service::IPV6`].
    pub version: u8,
    /// Incarnation of this index.
    pub incarnation: u8,
    /// Largest outer IP packet to it, bytes.
    pub mtu: u16,
    /// 1: it is on a link of this host, so a frame can have its MAC; 0: it is behind a gateway, or unknown.
    pub on_link: u16,
    /// Zero.
    pub reserved: [u16; 5],
}

/// A backend's best state, by backend index, in one word that is changed in place:
/// `{incarnation 8, state 8, next hop 16, pool 32}` from the low end. Zero accepts nothing.
///
/// The state is that of its member in the one pool that has the backend. If several pools have it, their states are
/// in [`super::names::SHARED_BACKENDS`], and the word names none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendStateWord(pub u64);

/// Stands for several pools. No pool has this index.
const SEVERAL: u32 = u32::MAX;

impl BackendStateWord {
    /// The word of an index without backend: connections there move.
    pub const GONE: Self = Self(0);

    /// The word of a backend that one pool has.
    pub const fn new(incarnation: u8, state: Accepts, next_hop: u16, pool: u32) -> Self {
        Self(
            incarnation as u64
                | (state as u64) << 8
                | (next_hop as u64) << 16
                | (pool as u64) << 32,
        )
    }

    /// The word of a backend that several pools have.
    pub const fn shared(incarnation: u8, next_hop: u16) -> Self {
        Self::new(incarnation, Accepts::Nothing, next_hop, SEVERAL)
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

    /// What it accepts in a pool. Only its own pool's state is in the word; a shared backend's word has none.
    #[inline(always)]
    pub const fn accepts_in(self, pool: u32) -> Accepts {
        if self.pool() == pool {
            Accepts::from_number((self.0 >> 8) as u8)
        } else {
            Accepts::Nothing
        }
    }

    /// Index of its next hop; 0: none.
    #[inline(always)]
    pub const fn next_hop(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Whether it lost its next hop, and keeps its connections until it has one again or is given up.
    #[inline(always)]
    pub const fn awaits_next_hop(self) -> bool {
        self.next_hop() == AWAITED
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
pub const fn split_shared_key(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_has_a_state_in_its_own_pool_alone() {
        let word = BackendStateWord::new(5, Accepts::OpenOnly, 77, 3);
        assert_eq!((word.incarnation(), word.next_hop(), word.pool()), (5, 77, 3));
        assert_eq!(word.accepts_in(3), Accepts::OpenOnly);
        assert_eq!(word.accepts_in(4), Accepts::Nothing);
        assert!(!word.is_shared());
        let shared = BackendStateWord::shared(5, 77);
        assert!(shared.is_shared() && shared != BackendStateWord::GONE);
        assert_eq!((shared.incarnation(), shared.next_hop()), (5, 77));
        for pool in [0, 3, u32::MAX] {
            assert_eq!(shared.accepts_in(pool), Accepts::Nothing);
        }
        assert_eq!(BackendStateWord::GONE.accepts_in(0), Accepts::Nothing);
    }

    #[test]
    fn a_key_holds_pool_and_backend() {
        assert_eq!(shared_key(7, 65_535), 0x0000_0007_0000_ffff);
        assert_eq!(split_shared_key(shared_key(7, 65_535)), (7, 65_535));
    }
}
