use std::fmt;

use lb_common::abi::slot::{NO_RANK, SlotWord};
use xxhash_rust::xxh64::xxh64;

use super::{
    ALGORITHM_VERSION, BuildError, Member, MemberKey, Table,
    alternates::Dealer,
    owners::{Owned, Permutation},
    prime::is_prime,
    quota::quotas,
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
        let permutations: Vec<_> =
            self.keys.iter().map(|key| Permutation::of(key, self.slots)).collect();
        let owned = Owned::fill(&permutations, &quotas(&self.weights, self.slots), self.slots);
        let mut dealer = Dealer::new(&self.keys, &self.weights);
        let mut words = vec![0; self.slots as usize];
        for (owner, slots) in owned.by_rank().enumerate() {
            for (&slot, &list) in slots.iter().zip(dealer.lists_of(owner as u16, slots.len())) {
                words[slot as usize] = SlotWord::new(list).0;
            }
        }
        Table { words, members: self.keys.len() }
    }
}

/// Content address of a table: 128 bits of hash over the algorithm's version, the number of slots,
/// and each member's key and reduced weight. Weights of 1, 1 and of 100, 100 give one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId([u64; 2]);

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
