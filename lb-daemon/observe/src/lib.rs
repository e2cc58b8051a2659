//! What the daemon shows of itself over HTTP: metrics, and a status page.

pub mod http;
pub mod metrics;
