//! What `spillway doctor` finds out about this host, a balancer or a backend, and what it makes of it.
//!
//! All facts are read first ([`Facts`]), without asking a daemon: what the daemons answered is given. A check is a pure
//! function of the facts ([`run_all`]).

mod checks;
mod facts;
mod finding;
pub mod process;
mod start_command;

pub use checks::run_all;
pub use facts::{
    Answers, DaemonState, Environment, Facts, InstalledComponent, PinOwner, ReceiverState,
    VipProbe, VipProbes, spillwayd,
};
pub use finding::{Finding, Level};
