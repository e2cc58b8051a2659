//! Single packets through the loaded programs, by `BPF_PROG_TEST_RUN`.
//!
//! A [`scene::Scene`] says in plain numbers what stands in the maps; [`balancer::Balancer`] and
//! [`receiver::Receiver`] load the objects, fill the maps and run a frame; [`row::Row`] says what must
//! come of it, to the byte and to the counter. What is expected comes from `etherparse`, from [`mx2`]
//! and from `docs/verdicts.md`, never from the code under test; map values are laid out by hand in
//! [`layout`]. Only [`twin`] uses `lb-common`: it lets the pure decision run on the same scene.

#![allow(clippy::expect_used, reason = "a packet that cannot be built is a mistake in the test")]

pub mod balancer;
pub mod counters;
pub mod frames;
pub mod layout;
pub mod mx2;
pub mod objects;
pub mod receiver;
pub mod row;
pub mod scene;
pub mod table;
pub mod tshark;
pub mod twin;
pub mod verdicts;
