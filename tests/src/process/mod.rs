//! Programs that run while a test runs, and waiting for what they do.

mod cpu;
mod running;
mod wait;

pub use cpu::Busy;
pub use running::Running;
pub use wait::{PATIENCE, eventually, pause, until};
