//! A cell of the flow table: two words, changed in place.

use super::{HALF_OPEN, LIFE};
use crate::abi::{clock::Coarse, connection::Placement, flow_map::NEIGHBOURS};

/// What a cell's flow is identified by: a hash of its addresses, ports and protocol under a secret of this balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey(pub u64);

impl FlowKey {
    /// One of the two buckets that may have the flow's cell, of a power of two of them, at least two. Both are in one page of
    /// memory, because a CPU often has to find a page's address first, which takes as long as the bucket itself.
    #[inline(always)]
    pub const fn bucket(self, side: u32, mask: u32) -> u32 {
        let first = self.0 as u32 & mask;
        if side == 0 {
            return first;
        }
        let second = (first ^ ((self.0 >> 24) as u32 % NEIGHBOURS)) & mask;
        if second == first { first ^ 1 } else { second }
    }

    /// 28 bits that tell the flow from others of its buckets; never 0.
    #[inline(always)]
    const fn tag(self) -> u64 {
        self.0 >> 36 | 1
    }
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its connection was made, or it had a second datagram.
    Open = 0,
    /// It had a SYN or its first datagram, which went to the cell's backend.
    HalfOpen = 1,
    /// It had a SYN that went home: the cell only says so for as long as the handshake may take.
    HalfOpenAtHome = 2,
    /// It had one packet, of an open connection.
    SeenOnce = 3,
    /// Its connection was ended by one side.
    Closing = 4,
}

impl State {
    /// All, each at the place of its number.
    pub const ALL: [Self; 5] =
        [Self::Open, Self::HalfOpen, Self::HalfOpenAtHome, Self::SeenOnce, Self::Closing];

    /// Its name: `open`, `half_open`, `half_open_at_home`, `seen_once` or `closing`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::HalfOpenAtHome => "half_open_at_home",
            Self::SeenOnce => "seen_once",
            Self::Closing => "closing",
        }
    }
}

/// The first word: whose the cell is, and until when.
/// `{until 16, state 3, zone 16, datagrams 1, tag 28}` from the low end; 0: nobody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u64);

const STATE: u32 = 16;
const ZONE: u32 = 19;
const DATAGRAMS: u32 = 35;
const TAG: u32 = 36;

/// The readiness of a cell that nobody needs.
pub(super) const FREE: u64 = 1 << 32;
/// A bit for each state that is one of those.
const HALF_OPEN_STATES: u64 =
    1 << State::HalfOpen as u32 | 1 << State::HalfOpenAtHome as u32 | 1 << State::SeenOnce as u32;
const AT_HOME_STATES: u64 = 1 << State::HalfOpenAtHome as u32;
const SEEN_ONCE_STATES: u64 = 1 << State::SeenOnce as u32;
const CLOSING_STATES: u64 = 1 << State::Closing as u32;
const BUSY_STATES: u64 = 1 << (Owner::BUSY.0 >> STATE);

impl Owner {
    /// Nobody's.
    pub const NONE: Self = Self(0);
    /// Somebody is about to store both words. No flow has the tag 0.
    pub const BUSY: Self = Self(7 << STATE);

    /// A flow's.
    #[inline(always)]
    pub const fn new(
        key: FlowKey,
        datagrams: bool,
        zone: u16,
        state: State,
        until: Coarse,
    ) -> Self {
        let known = (state as u64) << STATE | (zone as u64) << ZONE;
        Self(until.0 & 0xffff | known | (datagrams as u64) << DATAGRAMS | key.tag() << TAG)
    }

    /// The zone of slots that the flow was of when the cell was taken; it tells the pool.
    #[inline(always)]
    pub const fn zone(self) -> u16 {
        (self.0 >> ZONE) as u16
    }

    /// The same flow's of another zone.
    #[inline(always)]
    #[must_use]
    pub const fn in_zone(self, zone: u16) -> Self {
        Self(self.0 & !(0xffff << ZONE) | (zone as u64) << ZONE)
    }

    /// Whether it is a flow's, however long ago.
    #[inline(always)]
    pub const fn is_of(self, key: FlowKey, datagrams: bool) -> bool {
        self.0 >> DATAGRAMS == key.tag() << 1 | datagrams as u64
    }

    /// Whether it is the same flow's as another one.
    #[inline(always)]
    pub const fn is_same_flow(self, other: Self) -> bool {
        self.0 >> DATAGRAMS == other.0 >> DATAGRAMS
    }

    /// Whether it is of datagrams.
    #[inline(always)]
    pub const fn is_of_datagrams(self) -> bool {
        self.0 >> DATAGRAMS & 1 != 0
    }

    /// Coarse units until its end, less than 2^15; not positive: it is over. The clock of another CPU may be a tick ahead.
    #[inline(always)]
    pub const fn left(self, now: Coarse) -> i64 {
        self.0.wrapping_sub(now.0) as i16 as i64
    }

    /// Whether a new flow may have the cell because nobody needs it.
    #[inline(always)]
    pub const fn is_free(self, now: Coarse) -> bool {
        self.readiness(FlowKey(0), false, now) >= FREE
    }

    /// How readily a flow takes the cell, less than 2^33; 0: not at all. From [`FREE`] on nobody needs it. Then come those of
    /// the flow's own connections that were ended: a client may use its port for hundreds of them within two minutes. Then
    /// those of half-open flows, at home rather than not. Of equals the one that had no packet for longer: a cell that was
    /// seen once lasts longer than that of a SYN, and must not outlive all SYNs that came after it.
    ///
    /// Without branches, of which the verifier would walk each sequence, and which a CPU could not foresee.
    #[inline(always)]
    pub(super) const fn readiness(self, key: FlowKey, datagrams: bool, now: Coarse) -> u64 {
        let state = self.0 >> STATE & 7;
        let left = self.left(now) as u64;
        let is_over = left.wrapping_sub(1) >> 63;
        let is_nobodys = !(self.0 | self.0.wrapping_neg()) >> 63;
        let free = is_nobodys | is_over & !(BUSY_STATES >> state);
        let half_open = HALF_OPEN_STATES >> state & 1;
        let at_home = AT_HOME_STATES >> state & 1;
        let others = (self.0 >> DATAGRAMS) ^ (key.tag() << 1 | datagrams as u64);
        let is_own = !(others | others.wrapping_neg()) >> 63;
        let ended = CLOSING_STATES >> state & is_own;
        let longer = (SEEN_ONCE_STATES >> state & 1) * (LIFE - HALF_OPEN);
        let age = (0x8000 + longer).wrapping_sub(left) & 0xffff;
        let readiness = 1 + age + (at_home << 20) + (ended << 30);
        free * FREE + readiness * ((half_open | ended) & (free ^ 1))
    }

    /// Whether it is of a SYN, whose connection was not made yet.
    #[inline(always)]
    pub const fn is_of_syn(self) -> bool {
        matches!(self.0 >> STATE & 7, 1 | 2)
    }

    /// Whether it had only one packet, or several SYNs, so that another flow may take its cell.
    #[inline(always)]
    pub const fn is_half_open(self) -> bool {
        matches!(self.0 >> STATE & 7, 1..=3)
    }

    /// Whether packets of its zone have to look for it: not for a SYN that went home, nor for datagrams, which always look.
    #[inline(always)]
    pub const fn turns_check_on(self) -> bool {
        !self.is_at_home() && !self.is_of_datagrams()
    }

    /// What is known of it; `None`: somebody is about to store it.
    pub const fn state(self) -> Option<State> {
        let number = (self.0 >> STATE & 7) as usize;
        if number < State::ALL.len() { Some(State::ALL[number]) } else { None }
    }

    /// Whether its SYN went home.
    #[inline(always)]
    pub const fn is_at_home(self) -> bool {
        self.0 >> STATE & 7 == State::HalfOpenAtHome as u64
    }

    /// Whether its connection was ended by one side.
    #[inline(always)]
    pub const fn is_closing(self) -> bool {
        self.0 >> STATE & 7 == State::Closing as u64
    }

    /// The same flow's in another state, until another time.
    #[inline(always)]
    pub const fn with(self, state: State, until: Coarse) -> Self {
        Self(self.0 & !0x7_ffff | (state as u64) << STATE | until.0 & 0xffff)
    }
}

/// The second word: where the flow is, and how far its client has come.
/// `{backend 24, incarnation 8, sequence 32}` from the low end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u64);

impl Place {
    /// At a backend; `sequence` is the SYN's number, then the highest one seen.
    #[inline(always)]
    pub const fn new(at: Placement, sequence: u32) -> Self {
        let backend = (at.backend & 0xff_ffff) as u64;
        Self(backend | (at.incarnation as u64) << 24 | (sequence as u64) << 32)
    }

    /// Where.
    #[inline(always)]
    pub const fn placement(self) -> Placement {
        Placement { backend: self.0 as u32 & 0xff_ffff, incarnation: (self.0 >> 24) as u8 }
    }

    /// How far.
    #[inline(always)]
    pub const fn sequence(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_round_and_a_clock_ahead_is_no_end() {
        let until = Owner::new(FlowKey(7 << 40), false, 3, State::Open, Coarse(0x1_0010));
        assert_eq!(
            [0xfff0, 0x1_0000, 0x1_000f, 0x1_0010, 0x1_0011].map(|now| until.left(Coarse(now))),
            [32, 16, 1, 0, -1]
        );
        assert!(until.is_free(Coarse(0x1_0010)) && !until.is_free(Coarse(0x1_000f)));
        assert!(!Owner::BUSY.is_free(Coarse(0)) && !Owner::BUSY.is_free(Coarse(0xffff)));
        assert!(!Owner::BUSY.is_half_open() && Owner::NONE.is_free(Coarse(9)));
    }

    #[test]
    fn buckets_of_a_flow_differ_and_so_do_owners() {
        for hash in [0, 1, u64::MAX, 0x0010_0001, 0x1234_5678_9abc_def0] {
            let key = FlowKey(hash);
            for mask in [1, 7, (1 << 18) - 1] {
                assert_ne!(key.bucket(0, mask), key.bucket(1, mask), "{hash:x}");
                assert!(key.bucket(0, mask) <= mask && key.bucket(1, mask) <= mask);
            }
            let owner = Owner::new(key, true, 0xfffe, State::HalfOpen, Coarse(5));
            assert!(owner.is_of(key, true) && !owner.is_of(key, false) && owner.is_half_open());
            let open = owner.with(State::Open, Coarse(900));
            assert!(open.is_of(key, true) && !open.is_half_open() && open.left(Coarse(0)) == 900);
            assert_eq!((owner.zone(), open.zone()), (0xfffe, 0xfffe));
            assert_ne!(owner, Owner::BUSY);
        }
    }
}
