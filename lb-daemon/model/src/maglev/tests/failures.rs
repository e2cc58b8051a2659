//! Large failures: who finds whom, and how even the load stays.

use lb_common::{flow_hash::FlowHash, path::FURTHER_SLOTS};
use xxhash_rust::xxh64::xxh64;

use super::{first_alive, group, lists, some_dead};
use crate::maglev::build;

const SLOTS: u32 = 65_537;

/// Who has a flow by its slot's list and those of further slots.
fn served(lists: &[Vec<u16>], hash: FlowHash, dead: &[bool]) -> Option<u16> {
    let further = (1..=FURTHER_SLOTS).map(|attempt| hash.again(attempt));
    std::iter::once(hash)
        .chain(further)
        .find_map(|hash| first_alive(&lists[hash.slot(SLOTS) as usize], dead))
}

#[test]
fn any_fifty_of_a_hundred_dead() {
    let lists = lists(&build(&group([1; 100]), SLOTS).unwrap());
    // Four different ones of 50 dead in 100.
    let expected = (50.0 * 49.0 * 48.0 * 47.0) / (100.0 * 99.0 * 98.0 * 97.0);
    let mut unserved = 0;
    for pick in 0..20 {
        let dead = some_dead(50, 100, pick);
        let all_dead = lists.iter().filter(|list| first_alive(list, &dead).is_none()).count();
        let part = all_dead as f64 / f64::from(SLOTS);
        // Five standard deviations of as many independent draws.
        let deviation = (expected * (1.0 - expected) / f64::from(SLOTS)).sqrt();
        assert!((part - expected).abs() < 5.0 * deviation, "{part} of the lists are dead");
        for flow in 0..65_536_u64 {
            let hash = FlowHash(xxh64(&flow.to_le_bytes(), pick));
            match served(&lists, hash, &dead) {
                Some(rank) => assert!(!dead[usize::from(rank)]),
                None => unserved += 1,
            }
        }
    }
    // The fifth power of the part, of 1.3 million: about one in expectation.
    assert!(unserved <= 8, "{unserved} flows are left to the standbys");
}

/// Largest load over mean load, by flows that are spread over the slots exactly evenly.
fn peak(lists: &[Vec<u16>], dead: &[bool]) -> f64 {
    let mut loads = vec![0_u32; dead.len()];
    for slot in 0..SLOTS {
        // The middle of the slot's range, and a low half to tell further slots apart.
        let high = ((u64::from(slot) << 32) + (1 << 31)) / u64::from(SLOTS);
        let hash = FlowHash(high << 32 | xxh64(&slot.to_le_bytes(), 0) >> 32);
        assert_eq!(hash.slot(SLOTS), slot);
        if let Some(rank) = served(lists, hash, dead) {
            loads[usize::from(rank)] += 1;
        }
    }
    let alive = dead.iter().filter(|dead| !**dead).count();
    let total: u32 = loads.iter().sum();
    f64::from(*loads.iter().max().unwrap()) * alive as f64 / f64::from(total)
}

/// The figures of the design, for 100 members: 1.001, 1.0015, 1.0135.
#[test]
fn peak_over_mean_of_a_hundred() {
    let lists = lists(&build(&group([1; 100]), SLOTS).unwrap());
    let none = peak(&lists, &[false; 100]);
    let worst = |count: usize, picks: u64| {
        (0..picks).map(|pick| peak(&lists, &some_dead(count, 100, pick))).fold(0.0, f64::max)
    };
    let one = (0..100).map(|n| peak(&lists, &std::array::from_fn::<_, 100, _>(|m| m == n)));
    let one = one.fold(0.0, f64::max);
    let ten: Vec<f64> = (0..100).map(|pick| peak(&lists, &some_dead(10, 100, pick))).collect();
    let ten_mean = ten.iter().sum::<f64>() / 100.0;
    let fifty = worst(50, 20);
    println!(
        "peak over mean: all up {none:.4}, worst 1 of 100 down {one:.4}, 10 down {ten_mean:.4} \
         (worst of 100 cases {:.4}), worst of 20 cases with 50 down {fifty:.4}",
        ten.iter().copied().fold(0.0, f64::max)
    );
    assert!(none < 1.001);
    assert!(one < 1.002);
    assert!(ten_mean < 1.0135);
    assert!(ten.iter().all(|&peak| peak < 1.025));
    assert!(fifty < 1.15);
}
