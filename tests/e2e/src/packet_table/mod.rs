//! The table of packets: what goes in, what comes out, and which counters move.
//!
//! Needs root and the objects of `cargo xtask build`, and nothing else of the machine: no interface is
//! touched, no namespace made. One trial a row; they share one loaded program and its counters, so
//! they run one after the other.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod answers;
mod by_hand;
mod differential;
mod direct_return;
mod entropy;
mod extension_headers;
mod flow_cells;
mod flows;
mod forwarding;
mod fragments;
mod gue;
mod headroom;
mod icmp_errors;
mod invariants;
mod last_hop;
mod malformed;
mod not_forwarded;
mod oversize;
mod passed;
mod pings;
mod ports;
mod programs;
mod receiver;
mod refused;
pub mod row;
mod selection;
mod tracked_flows;
mod unserved;
mod vlan_tags;

use std::{collections::BTreeSet, path::PathBuf};

use libtest_mimic::{Failed, Trial};

use differential::RandomFixtures;
use lb_tests::packets::fixture::MapFixture;
use lb_tests::sample::Sample;
use row::Row;

/// Rows of the balancer.
fn balancer_rows() -> Vec<Row<MapFixture>> {
    let rows = rows_of_services();
    let unserved = unserved::rows(&rows);
    [rows, unserved].concat()
}

fn rows_of_services() -> Vec<Row<MapFixture>> {
    [
        by_hand::rows(),
        forwarding::rows(),
        extension_headers::rows(),
        icmp_errors::rows(),
        tracked_flows::rows(),
        pings::rows(),
        selection::rows(),
        refused::rows(),
        ports::rows(),
        fragments::rows(),
        oversize::rows(),
        passed::rows(),
        malformed::rows(),
        vlan_tags::rows(),
        gue::rows(),
        entropy::rows(),
        direct_return::rows(),
        not_forwarded::rows(),
        last_hop::rows(),
        answers::rows(),
    ]
    .concat()
}

/// Packets on which loaded programs and pure decisions are compared; the receiver gets three in ten.
const PACKETS: u64 = 1_000_000;
/// The same in a guest, whose CPU is emulated.
const PACKETS_IN_GUEST: u64 = 50_000;
/// A sample has one of so many packets here, and of so many rows in a guest.
const PARTS: u64 = 10;

/// A sample in a guest has one of so many rows at tc's hook, where helpers of the kernel do most of the work.
const PARTS_AT_TC: u64 = 3;

/// A trial for each row, then those of the whole table that need no other program. A sample has fewer of the
/// packets on which loaded programs and pure decisions are compared.
pub fn trials(sample: Sample) -> Vec<Trial> {
    let mut trials = row_trials(Sample::EVERYTHING);
    trials.extend(whole_trials());
    let name = "whole: two SYNs of one line at two CPUs at once are both remembered";
    trials.push(trial(name.to_owned(), flow_cells::both_cells_stay));
    trials.extend(differential_trials(PACKETS, sample));
    trials
}

/// The same for a guest, in which another kernel runs. A sample has the rows in which kernels may differ, a part of
/// the others, and one of the trials that run many packets.
pub fn trials_in_guest(sample: Sample) -> Vec<Trial> {
    let mut trials = row_trials(sample);
    let mut many = whole_trials();
    many.extend(differential_trials(PACKETS_IN_GUEST, Sample::EVERYTHING));
    let parts = many.len() as u64;
    trials.extend(sample.pick(many, parts));
    trials
}

/// The rows. A sample has one for each verdict, and parts of the others.
fn row_trials(sample: Sample) -> Vec<Trial> {
    let mut verdicts = BTreeSet::new();
    let mut is_sampled = |place, verdict| verdicts.insert(verdict) || sample.has(place, PARTS);
    let mut trials = Vec::new();
    for (row, place) in balancer_rows().into_iter().zip(0..) {
        if is_sampled(place, row.expected.verdict) {
            trials.push(trial(format!("balancer: {}", row.what), move || {
                programs::balancer()?.check(&row)
            }));
        }
    }
    for (row, place) in receiver::rows().into_iter().zip(0..) {
        if is_sampled(place, row.expected.verdict) {
            trials.push(trial(format!("receiver: {}", row.what), move || {
                programs::receiver()?.check(&row)
            }));
        }
    }
    let at_tc: Vec<_> = receiver::rows().into_iter().filter_map(receiver::at_tc).collect();
    trials.extend(sample.pick(at_tc, PARTS_AT_TC).into_iter().map(|row| {
        trial(format!("receiver: {}", row.what), move || programs::receiver_at_tc()?.check(&row))
    }));
    trials
}

/// What is true of the table as a whole.
fn whole_trials() -> Vec<Trial> {
    let whole = [
        ("whole: rows have names of their own", invariants::names_differ as fn() -> _),
        ("whole: every verdict has a row", invariants::every_verdict_has_a_row),
        ("whole: VLAN tags make no difference", vlan_tags::tags_make_no_difference),
        ("whole: VLAN tags make no difference to the receiver", vlan_tags::none_to_the_receiver),
        ("whole: VLAN tags among the bytes are left at tc", vlan_tags::left_at_tc),
        ("whole: no more headroom is wanted than is used", headroom::none_is_wasted),
        ("whole: GUE is what is added, and makes no other difference", gue::makes_no_difference),
        ("whole: no counter moves beyond those of the rows", invariants::no_other_counter_moves),
    ];
    whole.into_iter().map(|(name, test)| trial(name.to_owned(), test)).collect()
}

/// The pure decisions against the loaded programs, on a sample of so many packets.
fn differential_trials(packets: u64, sample: Sample) -> Vec<Trial> {
    let (for_balancer, for_receiver) = (packets / 10 * 7, packets / 10 * 3);
    let differential = |what: &str, packets, test: fn(&RandomFixtures) -> anyhow::Result<()>| {
        let fixtures = RandomFixtures::new(packets, sample, PARTS);
        trial(format!("differential: {what} with the pure decision"), move || test(&fixtures))
    };
    vec![
        differential("the balancer agrees", for_balancer, differential::balancer),
        differential("the receiver agrees", for_receiver, differential::receiver),
        differential("the receiver at tc agrees", for_receiver / 10, differential::receiver_at_tc),
    ]
}

/// The trials that have everything that is sent decoded by tshark, by way of a file in `directory`, and see
/// that it would find fault.
pub fn decoded(directory: PathBuf) -> [Trial; 2] {
    let again = directory.clone();
    [
        trial("whole: tshark finds no fault with what is sent".to_owned(), move || {
            invariants::tshark_finds_no_fault(&directory)
        }),
        trial("whole: tshark finds fault with each wrong checksum".to_owned(), move || {
            invariants::tshark_finds_faults(&again)
        }),
    ]
}

fn trial(name: String, test: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    Trial::test(name, || test().map_err(|error| Failed::from(format!("{error:#}"))))
}
