//! The one hash of the algorithm, and the seeds it is used with.

use xxhash_rust::xxh64::xxh64;

use super::MemberKey;

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
