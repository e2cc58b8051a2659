//! A web server whose requests take a certain time of work, a certain number of them at once.
//!
//! Its work is waiting, so that a host of few processors can have many of them; what it stands for is
//! a computation that keeps a processor busy. Whoever comes while all places are taken waits in a
//! queue that has no end, first come first served. It keeps a log of its own, in which a request is a
//! line: when its connection was accepted, when its work began and ended, from where it came, and at
//! which address.

mod log;
mod process;
mod server;

pub use log::Visit;
pub use process::WebServer;
pub use server::{Work, serve};
