//! Flows over real tables through the real decision: who moves when members die, and who does not.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use lb_common::{
    abi::{
        member::Accepts,
        service::IPV4,
        slot::{SlotWord, StandbyWord},
        verdict::Verdict,
    },
    flow_hash::FlowHash,
    path::{Kind, Unobserved, select::select_member},
};
use lb_common_fake::{FakeTables, backend_address};
use lb_model::maglev::{self, Member};
use proptest::prelude::*;

const MEMBERS: u8 = 100;
const FLOWS: u64 = 20_000;

/// A pool of 100 equal members over a table of the default size.
fn pool() -> FakeTables {
    let members: Vec<Member> = (0..MEMBERS)
        .map(|n| Member { key: backend_address(0, n, IPV4).into(), weight: 1 })
        .collect();
    let table = maglev::build(&members, 65_537).unwrap();
    let lists = table
        .words()
        .iter()
        .map(|&word| [0, 1, 2, 3].map(|place| SlotWord(word).rank(place)))
        .collect();
    FakeTables::new(&[(lists, MEMBERS)], IPV4)
}

/// Kills members, and points the standbys at eight live ones, as the daemon does.
fn kill(fake: &mut FakeTables, dead: &[u8]) {
    for &rank in dead {
        fake.set(0, u32::from(rank), Accepts::Nothing);
    }
    let mut alive = (0..u16::from(MEMBERS)).filter(|&rank| !dead.contains(&(rank as u8))).cycle();
    fake.standbys = (0..8).map(|_| StandbyWord::new(alive.next())).collect();
}

fn backend(fake: &FakeTables, flow: u64) -> Result<u32, Verdict> {
    let hash = FlowHash(flow.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    select_member(fake, (1, &fake.descriptors[1]), hash, Kind::NewConnection, &mut Unobserved)
        .map(|choice| choice.member.backend())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn with_half_of_the_members_dead_every_flow_is_served_and_none_of_a_live_owner_moves(
        dead in proptest::sample::subsequence((0..MEMBERS).collect::<Vec<_>>(), 50),
    ) {
        let mut fake = pool();
        let before: Vec<_> = (0..FLOWS).map(|flow| backend(&fake, flow).unwrap()).collect();
        kill(&mut fake, &dead);
        for (flow, &owner) in (0..FLOWS).zip(&before) {
            let now = backend(&fake, flow).unwrap();
            let owner_died = dead.contains(&(owner as u8 - 1));
            prop_assert!(!dead.contains(&(now as u8 - 1)), "flow {} is sent to the dead", flow);
            prop_assert!(owner_died || now == owner, "flow {} moved off a live member", flow);
        }
    }
}

#[test]
fn one_death_is_shared_by_all_others() {
    let mut fake = pool();
    let before: Vec<_> = (0..200_000).map(|flow| backend(&fake, flow).unwrap()).collect();
    kill(&mut fake, &[41]);
    let mut gained = [0_u32; MEMBERS as usize];
    for (flow, &owner) in (0..200_000).zip(&before) {
        let now = backend(&fake, flow).unwrap();
        if now != owner {
            assert_eq!(owner, 42, "only flows of the dead member move");
            gained[now as usize - 1] += 1;
        }
    }
    // About 2000 flows over 99 members, 20 each: nobody is left out, nobody takes a tenth of them.
    let total: u32 = gained.iter().sum();
    assert!((1_700..2_300).contains(&total), "{total} flows moved");
    assert!(gained.iter().filter(|&&n| n == 0).count() <= 1, "{gained:?}");
    assert!(gained.iter().all(|&n| n < total / 20), "{gained:?}");
}
