//! What is read from the maps, as messages of `spillway.v1` and back.

mod explain;
mod stats;
mod table;

pub use explain::{UnknownAnswer, explained, explanation};
pub use stats::{counters, counters_from};
pub use table::{pool_tables, tables};
