//! The configuration object by object, over a real socket.

mod batches;
mod caller;
mod following;
mod outcome;
mod pages;
mod right;
mod slots;
mod writers;
mod wrong;

use super::*;
use caller::{Caller, Refusal, error_info, essence, etag, object, of_result};

/// What stands before the tables begin.
const SCENE: &str = r#"
    hash_key = "000102030405060708090a0b0c0d0e0f"
    [[region]]
    name = "eu"
    overflow_to = ["us"]
    [[region]]
    name = "us"
    [[region]]
    name = "void"
    [[health_check]]
    name = "http"
    port = 80
    http = { path = "/alive", host = "web.example" }
    [[health_check]]
    name = "spare"
    port = 81
    tcp = {}
    [[pool]]
    name = "web"
    health_checks = ["http"]
    slots = 31
    [[pool.group]]
    region = "us"
    capacity = "10/s"
    [[pool.backend]]
    address = "10.0.0.1"
    region = "eu"
    [[pool.backend]]
    address = "2001:db8::2"
    region = "us"
    weight = 3
    [[pool]]
    name = "spare"
    slots = 31
    [[service]]
    name = "web"
    address = "192.0.2.1"
    port = 80
    protocol = "tcp"
    pool = "web"
"#;

/// The scene as a message.
pub(super) fn text_fixture() -> v1::Configuration {
    Document::parse(SCENE).unwrap().into()
}

/// A daemon with the scene as generation 1.
async fn scene() -> (Daemon, Caller) {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(text_fixture())).await.unwrap();
    let caller = Caller::of(&daemon).await;
    (daemon, caller)
}
