use std::fmt;

use lb_common::abi::slot::SlotWord;
use xxhash_rust::xxh64::Xxh64;

/// A finished table: a preference list for each slot.
#[derive(Clone, PartialEq, Eq)]
pub struct Table {
    pub(super) words: Vec<u64>,
    pub(super) members: usize,
}

impl Table {
    /// The slots in order: [`SlotWord`]s as the map holds them.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// [`checksum`] of the words.
    pub fn checksum(&self) -> u64 {
        checksum(&self.words)
    }

    /// [`shares`] of all members.
    pub fn shares(&self) -> Vec<u32> {
        shares(&self.words, self.members)
    }
}

/// Sizes and the checksum: nobody wants to read 65,537 words.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("slots", &self.words.len())
            .field("members", &self.members)
            .field("checksum", &format_args!("{:016x}", self.checksum()))
            .finish()
    }
}

/// XXH64, seed 0, of the words as little-endian bytes: what balancers compare.
pub fn checksum(words: &[u64]) -> u64 {
    const AT_ONCE: usize = 512;
    let mut hash = Xxh64::new(0);
    let mut bytes = [0; 8 * AT_ONCE];
    for words in words.chunks(AT_ONCE) {
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        hash.update(&bytes[..8 * words.len()]);
    }
    hash.digest()
}

/// Slots that each of `members` members owns, by rank. Owners beyond them are not counted.
pub fn shares(words: &[u64], members: usize) -> Vec<u32> {
    let mut shares = vec![0; members];
    for &word in words {
        if let Some(share) = shares.get_mut(usize::from(SlotWord(word).rank(0))) {
            *share += 1;
        }
    }
    shares
}
