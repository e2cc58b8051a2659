//! Replays each target's corpus, then inputs made of it: without coverage to guide it, but in each test run.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use fastrand::Rng;
use lb_tests::sample::Sample;

/// Longest input, bytes; as `cargo xtask fuzz` has it.
const LONGEST: usize = 4_096;

/// Tries each file, then `rounds` inputs made of files at random, differently for each sample.
fn replay(target: &str, rounds: u32, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let inputs: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(!inputs.is_empty(), "{target}: no corpus");
    for (file, input) in files.iter().zip(&inputs) {
        holds(&file.display().to_string(), input, check);
    }
    let seed = Sample::from_environment().seed();
    let mut random = Rng::with_seed(seed);
    for round in 0..rounds {
        let input = made(&mut random, &inputs);
        holds(&format!("{target}, seed {seed}, round {round}"), &input, check);
    }
}

fn holds(what: &str, input: &[u8], check: fn(&[u8])) {
    let checked = catch_unwind(AssertUnwindSafe(|| check(input)));
    assert!(checked.is_ok(), "{what}, the input:\n{input:02x?}");
}

/// An input of the corpus with one to four changes: another byte or bit, bytes that go or come twice, the rest of
/// another input.
fn made(random: &mut Rng, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut input = inputs[random.usize(..inputs.len())].clone();
    for _ in 0..random.u8(1..5) {
        if input.is_empty() {
            input.push(random.u8(..));
        }
        let at = random.usize(..input.len());
        let end = (at + random.usize(1..17)).min(input.len());
        match random.u8(..6) {
            0 => input[at] = random.u8(..),
            1 => input[at] ^= 1 << random.u8(..8),
            2 => input[at] = [0, 1, 0x7f, 0x80, 0xff][random.usize(..5)],
            3 => drop(input.drain(at..end)),
            4 => drop(input.splice(at..at, input[at..end].to_vec())),
            _ => {
                let other = &inputs[random.usize(..inputs.len())];
                input.truncate(at);
                input.extend_from_slice(other.get(at..).unwrap_or_default());
            }
        }
    }
    input.truncate(LONGEST);
    input
}

#[test]
fn frames_are_parsed() {
    replay("parse", 100_000, crate::parse::check);
}

#[test]
fn decisions_hold() {
    replay("decision", 100_000, crate::decision::check);
}

#[test]
fn errors_reach_the_backend_of_their_flow() {
    replay("icmp", 100_000, crate::icmp::check);
}

#[test]
fn encapsulated_packets_are_sound() {
    replay("encapsulation", 100_000, crate::encapsulation::check);
}

#[test]
fn a_receiver_takes_off_what_is_allowed() {
    replay("receiver", 100_000, crate::receiver::check);
}

#[test]
fn documents_are_read_as_they_are_written() {
    replay("document", 2_000, crate::document::check);
}

#[test]
fn configurations_are_kept() {
    replay("configuration", 2_000, crate::configuration::check);
}

#[test]
fn calls_are_answered() {
    replay("calls", 100, crate::calls::check);
}
