//! The table of packets: what goes in, what comes out, and which counters move.
//!
//! Needs root and the objects of `cargo xtask build`, and nothing else of the machine: no interface is
//! touched, no namespace made. One trial a row; they share one loaded program and its counters, so
//! they run one after the other.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod by_hand;
mod choice;
mod differential;
mod direct;
mod echoes;
mod errors;
mod extended;
mod flows;
mod forwarding;
mod fragments;
mod gue;
mod headroom;
mod limits;
mod malformed;
mod not_ours;
mod ports;
mod receiver;
mod remembered;
mod subject;
mod tagged;
mod too_large;
mod whole;

use std::path::PathBuf;

use libtest_mimic::{Failed, Trial};

use super::{row::Row, scene::Scene};

/// Rows of the balancer.
fn balancer_rows() -> Vec<Row<Scene>> {
    [
        by_hand::rows(),
        forwarding::rows(),
        extended::rows(),
        errors::rows(),
        remembered::rows(),
        echoes::rows(),
        choice::rows(),
        limits::rows(),
        ports::rows(),
        fragments::rows(),
        too_large::rows(),
        not_ours::rows(),
        malformed::rows(),
        tagged::rows(),
        gue::rows(),
        direct::rows(),
    ]
    .concat()
}

/// A trial for each row, then those of the whole table that need no other program. The pure decisions are
/// compared with the loaded programs on `packets` packets, of which the receiver gets three in ten.
pub fn trials(packets: u64) -> Vec<Trial> {
    let balancer = balancer_rows().into_iter().map(|row| {
        trial(format!("balancer: {}", row.what), move || subject::balancer()?.check(&row))
    });
    let receiver = receiver::rows().into_iter().map(|row| {
        trial(format!("receiver: {}", row.what), move || subject::receiver()?.check(&row))
    });
    let at_tc = receiver::rows().into_iter().filter_map(receiver::at_tc).map(|row| {
        trial(format!("receiver: {}", row.what), move || subject::receiver_at_tc()?.check(&row))
    });
    let whole = [
        ("whole: rows have names of their own", whole::names_differ as fn() -> _),
        ("whole: every verdict has a row", whole::every_verdict_has_a_row),
        ("whole: VLAN tags make no difference", tagged::tags_make_no_difference),
        ("whole: VLAN tags make no difference to the receiver", tagged::none_to_the_receiver),
        ("whole: VLAN tags among the bytes are left at tc", tagged::left_at_tc),
        ("whole: no more headroom is wanted than is used", headroom::none_is_wasted),
        ("whole: GUE is what is added, and makes no other difference", gue::makes_no_difference),
        ("whole: no counter moves beyond those of the rows", whole::no_other_counter_moves),
    ];
    let whole = whole.into_iter().map(|(name, test)| trial(name.to_owned(), test));
    let (for_balancer, for_receiver) = (packets / 10 * 7, packets / 10 * 3);
    let differential = [
        trial("differential: the balancer agrees with the pure decision".to_owned(), move || {
            differential::balancer(for_balancer)
        }),
        trial("differential: the receiver agrees with the pure decision".to_owned(), move || {
            differential::receiver(for_receiver)
        }),
        trial(
            "differential: the receiver at tc agrees with the pure decision".to_owned(),
            move || differential::receiver_at_tc(for_receiver / 10),
        ),
    ];
    balancer.chain(receiver).chain(at_tc).chain(whole).chain(differential).collect()
}

/// The trials that have everything that is sent decoded by tshark, by way of a file in `directory`, and see
/// that it would find fault.
pub fn decoded(directory: PathBuf) -> [Trial; 2] {
    let again = directory.clone();
    [
        trial("whole: tshark finds no fault with what is sent".to_owned(), move || {
            whole::tshark_finds_no_fault(&directory)
        }),
        trial("whole: tshark finds fault with each wrong checksum".to_owned(), move || {
            whole::tshark_finds_faults(&again)
        }),
    ]
}

fn trial(name: String, test: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    Trial::test(name, || test().map_err(|error| Failed::from(format!("{error:#}"))))
}
