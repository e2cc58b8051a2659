//! What both sides of Spillway agree on: the map ABI, the wire formats, and the pure decision.
//!
//! Nothing here knows of aya, tokio or protobuf, nothing allocates, and nothing is unsafe but
//! [`abi::pod`]. The packet programs compile this crate for BPF; the daemon and the command line
//! compile the very same code to explain what the packet programs do.
#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

pub mod abi;
pub mod admission;
pub mod capture;
pub mod checksum;
pub mod flow_hash;
pub mod flow_table;
mod martian;
pub mod path;
pub mod receive;
pub mod service_index;
pub mod wire;
pub mod word;
