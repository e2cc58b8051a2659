//! The API's calls: whatever is asked and in whatever order, each is answered in words, none takes the daemon
//! down, and what is in force is valid after each.
//!
//! The daemon's own server, state and store answer, over a socket of theirs; packets alone are nobody's.
//! `ProbeVips` is left out, which would send packets.

mod daemon;
mod methods;
mod quiet;

use std::cell::OnceCell;

use tonic::{Code, Status};

use self::{daemon::Daemon, methods::Method};
use crate::configuration::is_kept;

/// Calls of an input, at most.
const MOST: usize = 16;

/// What a status may take of a client's header list, bytes (16 KiB in HTTP/2's libraries).
const LONGEST: usize = 8 << 10;

thread_local! {
    static DAEMON: OnceCell<Daemon> = const { OnceCell::new() };
}

/// Calls one after the other: the number of a method, the length of a message (two bytes, the low one first),
/// the message.
pub fn check(data: &[u8]) {
    DAEMON.with(|daemon| {
        let daemon = daemon.get_or_init(Daemon::start);
        daemon.begin_anew();
        for (method, message) in calls(data).take(MOST) {
            one(daemon, &method, message);
        }
    });
}

/// An input of some calls, named as in `/spillway.v1.Spillway/Apply`.
pub fn input<'a>(calls: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Vec<u8> {
    let mut input = Vec::new();
    for (path, message) in calls {
        let number = methods::all().iter().position(|method| method.path == path);
        input.push(number.expect("a method of the API") as u8);
        input.extend((message.len() as u16).to_le_bytes());
        input.extend(message);
    }
    input
}

fn calls(mut data: &[u8]) -> impl Iterator<Item = (Method, &[u8])> {
    std::iter::from_fn(move || {
        let [number, low, high, rest @ ..] = data else { return None };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (message, rest) = rest.split_at(length);
        data = rest;
        let methods = methods::all();
        Some((methods[usize::from(*number) % methods.len()].clone(), message))
    })
}

fn one(daemon: &Daemon, method: &Method, message: &[u8]) {
    let (before, _) = daemon.in_force();
    let answer = daemon.call(method, message);
    let (after, configuration) = daemon.in_force();
    if let Err(status) = &answer {
        is_in_words(status, method);
        assert_eq!(before, after, "{}: {status:?}", method.path);
    }
    let changed = u64::from(method.writes && answer.is_ok());
    assert!((before..=before + changed).contains(&after), "{}: {before}, {after}", method.path);
    // Nothing is in force before the first apply, not even a key.
    if after > 0 {
        is_kept(&lb_config::validate_first(&configuration).expect("it is in force"));
    }
}

/// A refusal is one of the caller's making, and says why.
fn is_in_words(status: &Status, method: &Method) {
    let (code, message) = (status.code(), status.message());
    let is_no_message = code == Code::Internal && message.starts_with("failed to decode Protobuf");
    let is_ours = matches!(
        code,
        Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::ResourceExhausted
            | Code::Unavailable
    );
    assert!(is_no_message || is_ours, "{}: {status:?}", method.path);
    assert!(!message.is_empty() && message.len() <= LONGEST, "{}: {status:?}", method.path);
}
