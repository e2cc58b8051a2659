//! Checksums of whole tables. A change here is a new [`ALGORITHM_VERSION`]: balancers of two builds
//! would send one connection to two backends. The values were computed by a program in another
//! language, with an XXH64 of its own, from the description in the module's head.

use super::group;
use crate::maglev::{ALGORITHM_VERSION, Member, build, checksum};

#[test]
fn tables_are_what_they_were() {
    assert_eq!(ALGORITHM_VERSION, 1);
    let v6 = |n: u8| {
        let mut key = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        key[15] = n;
        Member { key: crate::maglev::MemberKey(key), weight: u32::from(n % 3) }
    };
    let groups: [(&str, Vec<Member>, u32, u64); 6] = [
        ("one", group([1]), 65_537, 0xcdd9_7842_d15c_eb8c),
        ("two", group([1, 3]), 251, 0x8f54_6e2c_26b1_4423),
        ("three", group([1; 3]), 65_537, 0xe038_17c2_195e_9b21),
        ("weighted, IPv6", (0..50).map(v6).collect(), 4_093, 0x2ef3_7514_58a3_0cf1),
        ("a hundred", group([1; 100]), 65_537, 0x4ed0_18c3_f6d7_5029),
        ("a thousand, weighted", group((0..1_000).map(|n| n % 10)), 65_537, 0x3f0e_9212_24a1_ace7),
    ];
    for (name, members, slots, expected) in groups {
        let found = build(&members, slots).unwrap().checksum();
        assert_eq!(found, expected, "{name}: {found:#018x}");
    }
}

/// Against values of that other XXH64; the last is longer than what is hashed at once.
#[test]
fn a_checksum_is_over_little_endian_bytes() {
    let words = |count: u64| -> Vec<u64> {
        (1..=count).map(|n| n.wrapping_mul(0x0123_4567_89ab_cdef)).collect()
    };
    assert_eq!(checksum(&[]), 0xef46_db37_51d8_e999);
    assert_eq!(checksum(&words(5)), 0x2686_b8c2_cacd_00a6);
    assert_eq!(checksum(&words(1_300)), 0x66fd_10fa_bbaa_0a45);
}
