//! What the pinned maps say, for people: counters, tables, and why a packet goes where it goes. The daemon and the
//! command line read the maps through it.

pub mod explain;
pub mod message;
pub mod names;
pub mod pool_tables;
pub mod stats;
