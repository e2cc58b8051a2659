//! Sequences of packets, each the reason that a rule of records, exceptions, limits or the gate is
//! there: whole frames through the whole decision, with the clock moved by hand. Expected backends and
//! counts are written out.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../twin/mod.rs"]
mod twin;
#[path = "../world/mod.rs"]
mod world;

mod by_address;
mod errors;
mod forged;
mod fragments;
mod gate;
mod homes;
mod limits;
mod long_streams;
mod outage;
mod repeated;
mod reused;
mod tracked;
