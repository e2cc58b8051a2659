//! Random configurations, a fixture and fakes for the tests of several crates.
//!
//! This is a crate of its own so that nothing of it reaches the product. The crates that it depends on
//! include its files by path in their unit tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

pub mod arbitrary;
pub mod packet_path;
pub mod stored;
pub mod test_disk;

/// A configuration file: two checked backends in region `eu`, in pool `web` with a small table, and the
/// service `web`.
pub const WEB: &str = r#"
    [[region]]
    name = "eu"
    [[health_check]]
    name = "tcp"
    port = 80
    via = "tunnel"
    tcp = {}
    [[pool]]
    name = "web"
    health_checks = ["tcp"]
    slots = 31
    [[pool.backend]]
    address = "10.0.0.1"
    region = "eu"
    [[pool.backend]]
    address = "10.0.0.2"
    region = "eu"
    [[service]]
    name = "web"
    address = "192.0.2.1"
    port = 80
    protocol = "tcp"
    pool = "web"
"#;
