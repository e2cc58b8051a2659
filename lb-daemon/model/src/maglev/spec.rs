use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

use lb_common::abi::slot::{NO_RANK, SlotWord, TableShape};
use xxhash_rust::xxh64::xxh64;

use super::{
    ALGORITHM_VERSION, Table,
    alternates::Dealer,
    owners::{Owned, Permutation, quotas},
};

/// Members of a group at most: ranks are 16 bits wide and the highest means *none*.
pub const MAX_MEMBERS: usize = NO_RANK as usize - 1;

/// All that a table depends on: members in rank order and a number of slots, both valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    keys: Vec<MemberKey>,
    weights: Vec<u32>,
    slots: u32,
}

impl TableSpec {
    /// Sorts members, given in any order, and checks them.
    ///
    /// # Errors
    /// Any of [`BuildError`].
    pub fn new(members: &[Member], slots: u32) -> Result<Self, BuildError> {
        if !is_prime(slots) {
            return Err(BuildError::NotPrime(slots));
        }
        if members.len() > MAX_MEMBERS {
            return Err(BuildError::TooManyMembers(members.len()));
        }
        if members.len() > slots as usize {
            return Err(BuildError::MoreMembersThanSlots { members: members.len(), slots });
        }
        let mut sorted = members.to_vec();
        sorted.sort_unstable_by_key(|member| member.key);
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].key == pair[1].key) {
            return Err(BuildError::Duplicate(pair[0].key.address()));
        }
        let divisor = sorted.iter().fold(0, |divisor, member| gcd(divisor, member.weight));
        if divisor == 0 {
            return Err(BuildError::NoWeight);
        }
        Ok(Self {
            keys: sorted.iter().map(|member| member.key).collect(),
            weights: sorted.iter().map(|member| member.weight / divisor).collect(),
            slots,
        })
    }

    /// The members by rank.
    pub fn keys(&self) -> &[MemberKey] {
        &self.keys
    }

    /// The rank of a member.
    pub fn rank(&self, key: &MemberKey) -> Option<u16> {
        self.keys.binary_search(key).ok().map(|rank| rank as u16)
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// How the table is laid out.
    pub fn shape(&self) -> TableShape {
        TableShape { slots: self.slots, members: self.keys.len() as u32 }
    }

    /// The name of the table that [`build`](Self::build) would make, without making it.
    pub fn id(&self) -> TableId {
        let mut bytes = Vec::with_capacity(8 + 20 * self.keys.len());
        bytes.extend(ALGORITHM_VERSION.to_le_bytes());
        bytes.extend(self.slots.to_le_bytes());
        for (key, weight) in self.keys.iter().zip(&self.weights) {
            bytes.extend(key.0);
            bytes.extend(weight.to_le_bytes());
        }
        TableId([xxh64(&bytes, 0), xxh64(&bytes, 1)])
    }

    /// Builds the table.
    pub fn build(&self) -> Table {
        let mut words = vec![0; self.slots as usize];
        self.fill(|slot, list| words[slot as usize] = list.0);
        Table { words, members: self.keys.len() }
    }

    /// The rank of the owner of each slot: the first of its list.
    pub fn owners(&self) -> Vec<u16> {
        self.owned().ranks()
    }

    /// The members that have a weight, but one so small beside the others' that they own no slot. Costs a sort of the
    /// members, not a table.
    pub fn without_slots(&self) -> impl Iterator<Item = &MemberKey> {
        let shares = quotas(&self.weights, self.slots).into_iter().zip(&self.weights);
        let members = self.keys.iter().zip(shares);
        members.filter(|(_, (quota, weight))| *quota == 0 && **weight > 0).map(|(key, _)| key)
    }

    /// Slots of the member with a weight that owns least. Costs a sort of the members, not a table.
    pub fn least_quota(&self) -> u32 {
        let shares = quotas(&self.weights, self.slots).into_iter().zip(&self.weights);
        let owned = shares.filter(|(_, weight)| **weight > 0).map(|(quota, _)| quota);
        owned.min().unwrap_or_default()
    }

    pub(super) fn owned(&self) -> Owned {
        let permutations: Vec<_> =
            self.keys.iter().map(|key| Permutation::for_member(key, self.slots)).collect();
        Owned::fill(&permutations, &quotas(&self.weights, self.slots), self.slots)
    }

    /// Builds the table where it is to be: sets the list of each slot once, in no particular order.
    pub fn fill(&self, set: impl FnMut(u32, SlotWord)) {
        self.fill_from(&self.owned(), set);
    }

    /// As [`Self::fill`], with the owners of this table.
    pub(super) fn fill_from(&self, owned: &Owned, mut set: impl FnMut(u32, SlotWord)) {
        let mut dealer = Dealer::new(&self.keys, &self.weights);
        for (owner, slots) in owned.by_rank().enumerate() {
            for (&slot, &list) in slots.iter().zip(dealer.lists_of(owner as u16, slots.len())) {
                set(slot, SlotWord::new(list));
            }
        }
    }
}

/// Content address of a table: 128 bits of hash over the algorithm's version, the number of slots,
/// and each member's key and reduced weight. Weights of 1, 1 and of 100, 100 give one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId([u64; 2]);

impl TableId {
    /// The hash.
    pub const fn words(self) -> [u64; 2] {
        self.0
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0[0], self.0[1])
    }
}

/// Greatest common divisor; of a number and 0 it is the number.
fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Why there is no table for a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The number of slots has a divisor, so some members would not reach all slots.
    #[error("{0} slots: not a prime")]
    NotPrime(u32),
    /// There is no member, or all weights are 0.
    #[error("members: none has a weight above 0")]
    NoWeight,
    /// Ranks are 16 bits wide.
    #[error("{0} members: at most {MAX_MEMBERS} are allowed")]
    TooManyMembers(usize),
    /// Not every member could own a slot.
    #[error("{members} members: more than the table's {slots} slots")]
    MoreMembersThanSlots {
        /// Members, those of weight 0 included.
        members: usize,
        /// Slots of the table.
        slots: u32,
    },
    /// Two members have one key.
    #[error("member {0}: given twice")]
    Duplicate(IpAddr),
}

/// A member's address in 16 bytes, IPv4 as v4-mapped (RFC 4291, 2.5.5.2); its order is the order of
/// ranks.
///
/// That is not the order of [`IpAddr`], which puts every IPv4 address before every IPv6 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberKey(pub [u8; 16]);

impl MemberKey {
    /// The address; a v4-mapped one as IPv4.
    pub fn address(&self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }
}

impl From<IpAddr> for MemberKey {
    fn from(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        })
    }
}

/// A member of a group, as far as its table goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub key: MemberKey,
    /// Its share relative to the others; 0: it stands in no slot.
    pub weight: u32,
}

/// Whether a number of slots is a prime, by trial division: at most 22,000 steps for 32 bits.
pub(crate) fn is_prime(number: u32) -> bool {
    if number < 4 {
        return number > 1;
    }
    if number.is_multiple_of(2) || number.is_multiple_of(3) {
        return false;
    }
    // What is left of numbers around a multiple of 6: every prime above 3 is one of these.
    (5_u64..)
        .step_by(6)
        .take_while(|d| d * d <= u64::from(number))
        .all(|d| !u64::from(number).is_multiple_of(d) && !u64::from(number).is_multiple_of(d + 2))
}

/// Seed of where a member's preferred slots begin.
pub(super) const OFFSET: u64 = 0;
/// Seed of the distance between a member's preferred slots.
pub(super) const SKIP: u64 = 1;
/// Seed of how an owner's slots are dealt.
pub(super) const DEAL: u64 = 2;

/// `h(seed, member)` of the algorithm.
pub(super) fn hash(seed: u64, member: &MemberKey) -> u64 {
    xxh64(&member.0, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_sieve_of_eratosthenes() {
        const END: usize = 200_000;
        let mut sieve = vec![true; END];
        sieve[..2].fill(false);
        for n in 2..END {
            if sieve[n] {
                (2 * n..END).step_by(n).for_each(|multiple| sieve[multiple] = false);
            }
        }
        for (n, &expected) in sieve.iter().enumerate() {
            assert_eq!(is_prime(n as u32), expected, "{n}");
        }
    }

    #[test]
    fn knows_the_largest_of_32_bits() {
        // 2^32 - 5 is the largest prime below 2^32; 65521 is the largest below 2^16.
        assert!(is_prime(4_294_967_291));
        assert!(!is_prime(65_521 * 65_521));
        assert!((4_294_967_292..=u32::MAX).all(|n| !is_prime(n)));
    }
}
