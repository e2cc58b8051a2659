//! Sequences of packets, each of which is the reason for a rule of the flow table, limits or the displaced check: whole frames through the whole decision, with the clock moved by hand. Expected backends and counts
//! are written out.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod attacks;
mod by_address;
mod displaced_check;
mod errors;
mod flow_table;
mod forged;
mod fragments;
mod homes;
mod limits;
mod long_streams;
mod outage;
mod repeated;
mod reused;
mod sustained;
mod tracked;
