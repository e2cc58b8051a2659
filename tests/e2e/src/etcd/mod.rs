//! Clusters of real etcd servers in the network of a fleet.

mod cluster;
mod control;
mod latency;

pub use cluster::{EtcdCluster, EtcdOptions, field};
pub use control::Identity;
pub use latency::put_to_watch;
