//! The listener for those who only look: metrics, and a status page where it is asked for. Off by
//! default. It answers GET, changes nothing, and asks nobody who they are: whoever reaches the address
//! may read.
//!
//! What it may cost is bounded: connections, of which the one that is idle longest gives way to a new
//! one, the time that each may take for a request and live, and how often the state and the maps are
//! read, however many ask.

mod bind;
mod connection;
mod headers;
mod page;
mod places;
mod reader;
mod routes;
mod server;
#[cfg(test)]
mod tests;

pub use bind::{BindError, bind};
pub use reader::Reader;
pub use routes::{ReadReceiver, Shown, balancer, receiver};
pub use server::serve;
