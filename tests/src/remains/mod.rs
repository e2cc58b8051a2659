//! What a program that ended has left, seen from the sandbox around it.

mod bpf;
mod processes;

pub use bpf::{BpfObject, pinned_below};
pub use processes::{Other, others};
