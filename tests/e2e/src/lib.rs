//! What tests with real programs and real packets stand on, beside the laboratory of `lb-tests`.
//!
//! The [`harness`] runs each case in a [`sandbox`](lb_tests::sandbox) of its own. A case lays out a
//! [`topology`](lb_tests::topology), starts programs in its nodes ([`process`](lb_tests::process)) and looks at what they
//! did:
//!
//! ```no_run
//! use lb_e2e::harness::{self, Case};
//! use lb_tests::{sandbox::Sandbox, topology::Topology};
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

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may be blunt")]

pub mod certificates;
pub mod container;
pub mod daemon_memory;
pub mod etcd;
pub mod faults;
pub mod fixture;
pub mod harness;
pub mod leftovers;
pub mod machine;
pub mod packet_table;
pub mod receiver_hooks;
pub mod transcript;
pub mod wall_clock;
