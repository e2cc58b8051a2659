//! The table of packets: what goes in, what comes out, and which counters move.
//!
//! Needs root and the objects of `cargo xtask build`, and nothing else of the machine: no interface is
//! touched, no namespace made. One trial a row; a name or a part of it runs that row alone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

mod by_hand;
mod choice;
mod differential;
mod flows;
mod forwarding;
mod limits;
mod malformed;
mod not_ours;
mod receiver;
mod subject;
mod whole;

use std::process::ExitCode;

use lb_tests::packets::{row::Row, scene::Scene};
use libtest_mimic::{Arguments, Failed, Trial};

/// Rows of the balancer.
fn balancer_rows() -> Vec<Row<Scene>> {
    [
        by_hand::rows(),
        forwarding::rows(),
        choice::rows(),
        limits::rows(),
        not_ours::rows(),
        malformed::rows(),
    ]
    .concat()
}

fn trial(name: String, test: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    Trial::test(name, || test().map_err(|error| Failed::from(format!("{error:#}"))))
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Rows share one loaded program and its counters.
    arguments.test_threads = Some(1);
    let balancer = balancer_rows().into_iter().map(|row| {
        trial(format!("balancer: {}", row.what), move || subject::balancer()?.check(&row))
    });
    let receiver = receiver::rows().into_iter().map(|row| {
        trial(format!("receiver: {}", row.what), move || subject::receiver()?.check(&row))
    });
    let whole = [
        ("whole: rows have names of their own", whole::names_differ as fn() -> _),
        ("whole: every verdict has a row", whole::every_verdict_has_a_row),
        ("whole: no counter moves beyond those of the rows", whole::no_other_counter_moves),
        ("whole: tshark finds no fault with what is sent", whole::tshark_finds_no_fault),
        ("differential: the balancer agrees with the pure decision", differential::balancer),
        ("differential: the receiver agrees with the pure decision", differential::receiver),
    ];
    let whole = whole.into_iter().map(|(name, test)| trial(name.to_owned(), test));
    libtest_mimic::run(&arguments, balancer.chain(receiver).chain(whole).collect()).exit_code()
}
