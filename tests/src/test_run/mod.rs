//! The packet programs run by the kernel again and again (`BPF_PROG_TEST_RUN`), with maps filled as for a fleet: what
//! the bench measures with, and what sends floods of packets.

pub mod fill;
pub mod frame;
pub mod programs;
pub mod throughput;
