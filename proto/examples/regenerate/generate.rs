//! From `.proto` to Rust, without a protobuf compiler on the machine.

#[path = "services.rs"]
mod services;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost::Message;

const SOURCES: [&str; 9] = [
    "spillway/v1/capture.proto",
    "spillway/v1/change.proto",
    "spillway/v1/configuration.proto",
    "spillway/v1/errors.proto",
    "spillway/v1/explain.proto",
    "spillway/v1/fleet.proto",
    "spillway/v1/objects.proto",
    "spillway/v1/overrides.proto",
    "spillway/v1/spillway.proto",
];

/// What balancers tell each other. It is not part of the API: its descriptors are neither shown nor promised, because both
/// ends check that they speak the same protocol.
const PEERS: [&str; 1] = ["spillway/peers/v1/peers.proto"];

/// The file of descriptors, for those who ask the daemon what it speaks.
pub(crate) const DESCRIPTORS: &str = "spillway.v1.binpb";

/// Where the generated Rust is kept.
pub(crate) fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated")
}

/// Where the descriptors are that every later version is held to.
#[allow(dead_code, reason = "not every program that has this module writes it")]
pub(crate) fn promised() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compatibility").join(DESCRIPTORS)
}

/// The descriptors of the sources, with their comments.
pub(crate) fn descriptors() -> Result<prost_types::FileDescriptorSet, Box<dyn Error>> {
    Ok(protox::compile(SOURCES, [env!("CARGO_MANIFEST_DIR")])?)
}

/// The descriptors of what balancers tell each other, with their comments.
pub(crate) fn peer_descriptors() -> Result<prost_types::FileDescriptorSet, Box<dyn Error>> {
    Ok(protox::compile(PEERS, [env!("CARGO_MANIFEST_DIR")])?)
}

fn code(folder: &Path) -> prost_build::Config {
    let mut code = prost_build::Config::new();
    code.out_dir(folder).service_generator(Box::new(services::Services));
    code
}

/// Generates into an existing folder.
pub(crate) fn into(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut descriptors = descriptors()?;
    code(folder).compile_fds(descriptors.clone())?;
    // What is encoded once for all peers is not copied for each of them.
    code(folder).bytes([".spillway.peers.v1.ExchangeRequest"]).compile_fds(peer_descriptors()?)?;
    for file in &mut descriptors.file {
        // Comments and places are for those who read the sources.
        file.source_code_info = None;
    }
    fs::write(folder.join(DESCRIPTORS), descriptors.encode_to_vec())?;
    Ok(())
}
