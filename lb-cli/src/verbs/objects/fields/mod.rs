//! The kinds, one file each: its flags, and its columns.

mod backend;
mod health;
mod number;
mod pool;
mod probe;
mod region;
mod service;

use std::time::Duration;

use lb_daemon::document;

pub(super) use backend::{Address, Addresses};

/// A duration of the command line.
fn duration(text: &str) -> Result<prost_types::Duration, String> {
    document::parse_duration(text)
        .and_then(|duration: Duration| duration.try_into().ok())
        .ok_or_else(|| "give a whole number and its unit, as 500ms, 2s or 10m".into())
}

/// A rate of the command line, a second.
fn rate(text: &str) -> Result<f64, String> {
    document::parse_rate(text).ok_or_else(|| {
        "give a number of connections and the time they come in, as 10/s or 600/m".into()
    })
}

#[cfg(test)]
mod tests;
