//! The daemon of Spillway as a library: `spillwayd` is a thin program over it, and `spillway` reads
//! the pinned maps through it.

pub mod api;
pub mod capacity;
pub mod causes;
pub mod command;
pub mod dataplane;
pub mod diff;
pub mod directory;
pub mod document;
pub mod explain;
pub mod file;
pub mod health;
pub mod homes;
pub mod http;
pub mod ids;
pub mod maglev;
pub mod manual;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod names;
pub mod net;
pub mod next_hop;
pub mod packets;
pub mod plan;
pub mod reconcile;
pub mod role;
pub mod shares;
pub mod state;
pub mod stats;
pub mod stop;
pub mod store;
pub mod troubles;
pub mod watchdog;
