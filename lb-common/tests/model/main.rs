//! Searches for a sequence that moves an open connection: random interleavings of packets, limits, states, time and the
//! daemon's part, checked by an oracle that knows of each connection only which host answered its SYN ([`oracle`]).
//!
//! The seed is fixed, so that each run tries the same cases. `PROPTEST_CASES` sets their number, `PROPTEST_RNG_SEED`
//! another seed.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod act;
mod oracle;
mod run;

use std::{cell::RefCell, collections::BTreeMap};

use lb_common::abi::counter::Event;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Default number of cases: a few seconds.
const CASES: u32 = 400;

fn config() -> Config {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if !is_set("PROPTEST_CASES") {
        config.cases = CASES;
    }
    if !is_set("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(3);
    }
    config
}

#[test]
fn no_open_connection_is_moved_whose_host_lives() {
    let seen: RefCell<BTreeMap<Event, u64>> = RefCell::default();
    let reached: RefCell<[u64; 7]> = RefCell::default();
    let tried = TestRunner::new(config()).run(&act::plays(), |play| {
        let end = run::run(&play);
        for event in Event::ALL {
            *seen.borrow_mut().entry(*event).or_default() += end.fixture.counted(*event);
        }
        let [replaced, taken_back] = end.replaced;
        let new =
            [end.cleared, end.checked, end.tracked, end.errors, end.awaited, replaced, taken_back];
        reached.borrow_mut().iter_mut().zip(new).for_each(|(all, new)| *all += new);
        Ok(())
    });
    if let Err(failure) = tried {
        panic!("{failure}");
    }
    // A search that never came to where the rules matter would prove nothing.
    let seen = seen.into_inner();
    for event in [
        Event::DisplacedWithoutCell,
        Event::SynRepeated,
        Event::HeldAtHome,
        Event::SynDropped,
        Event::RemapTaken,
    ] {
        assert!(seen[&event] > 0, "{event:?} never came");
    }
    let [cleared, checked, tracked, errors, awaited, replaced, taken_back] = reached.into_inner();
    assert!(cleared > 0, "the displaced check was never turned off");
    assert!(checked > 1_000, "{checked} packets of open connections");
    assert!(awaited > 50, "{awaited} packets while their host's next hop was lost");
    assert!(tracked > 300 && errors > 100, "{tracked} datagrams, {errors} errors");
    assert!(
        replaced > 20 && taken_back > 10,
        "{replaced} remaps replaced, {taken_back} taken back"
    );
}
