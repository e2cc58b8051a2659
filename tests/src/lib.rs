//! Spillway in network namespaces: real programs, real packets.
//!
//! The [`harness`] runs each case in a [`sandbox`] of its own. A case lays out a [`topology`], starts programs
//! in its nodes ([`process`]) and looks at what they did:
//!
//! ```no_run
//! use lb_tests::{harness::{self, Case}, sandbox::Sandbox, topology::Topology};
//!
//! const CASES: &[Case] = &[Case::waits("two_nodes_reach_each_other", two_nodes_reach_each_other)];
//!
//! fn main() -> std::process::ExitCode {
//!     harness::run(&[("pairs", CASES)])
//! }
//!
//! fn two_nodes_reach_each_other(sandbox: &Sandbox) -> anyhow::Result<()> {
//!     let mut net = Topology::new(sandbox, "pair")?;
//!     let (a, b) = (net.node("a")?, net.node("b")?);
//!     net.link(&a, "eth0", &b, "eth0", 1500)?;
//!     a.ip("address add 192.0.2.1/24 dev eth0")?;
//!     b.ip("address add 192.0.2.2/24 dev eth0")?;
//!     net.ready()?;
//!     a.run("ping", ["-c1", "-W1", "192.0.2.2"])?;
//!     Ok(())
//! }
//! ```
//!
//! Nothing here needs cleaning up by hand: when the process ends, however it ends, the kernel takes
//! away processes, namespaces, links, pins and mounts.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may be blunt")]

pub mod capture;
pub mod certificates;
pub mod container;
pub mod daemon;
pub mod disk;
pub mod etcd;
pub mod faults;
pub mod fixture;
pub mod harness;
pub mod leftovers;
pub mod machine;
pub mod openmetrics;
pub mod packet_table;
pub mod packets;
pub mod process;
pub mod random;
pub mod receiver_hooks;
pub mod report;
pub mod sample;
pub mod sandbox;
pub mod statistics;
pub mod syns;
pub mod test_run;
pub mod topology;
pub mod traffic;
pub mod transcript;
