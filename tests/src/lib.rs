//! A laboratory: Spillway in network namespaces, with real programs and real packets.
//!
//! Inside a [`sandbox`] one lays out a [`topology`], starts programs in its nodes ([`process`]) and sends traffic through
//! them. Demo, bench and tests stand on it.
//!
//! Nothing here needs cleaning up by hand: when the process ends, however it ends, the kernel takes
//! away processes, namespaces, links, pins and mounts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may be blunt")]

pub mod capture;
pub mod daemon;
pub mod disk;
pub mod openmetrics;
pub mod packets;
pub mod process;
pub mod random;
pub mod report;
pub mod sample;
pub mod sandbox;
pub mod statistics;
pub mod syns;
pub mod test_run;
pub mod topology;
pub mod traffic;
pub mod turns;
