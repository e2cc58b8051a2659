//! Single packets through the loaded programs, by `BPF_PROG_TEST_RUN`.
//!
//! A [`fixture::MapFixture`] says in plain numbers what stands in the maps; [`balancer::Balancer`] and
//! [`receiver::Receiver`] load the objects, fill the maps and run a frame; [`expected::Expected`] says what must
//! come of it, to the byte and to the counter. What is expected comes from `etherparse`, from [`flow_hash`]
//! and from `docs/verdicts.md`, never from the code under test; map values are laid out by hand in
//! [`layout`]. Only [`fake_tables`] uses `lb-common`: it lets the pure decision run on the same fixture.

#![allow(clippy::expect_used, reason = "a packet that cannot be built is a mistake in the test")]

pub mod balancer;
pub mod counters;
pub mod expected;
pub mod fake_tables;
pub mod fixture;
pub mod flow_hash;
pub mod frames;
pub mod layout;
pub mod objects;
pub mod receiver;
pub mod tshark;
pub mod verdicts;
