//! From `.proto` to Rust, without a protobuf compiler on the machine.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost::Message;

const SOURCES: [&str; 4] = [
    "spillway/v1/configuration.proto",
    "spillway/v1/explain.proto",
    "spillway/v1/objects.proto",
    "spillway/v1/spillway.proto",
];

/// The file of descriptors, for those who ask the daemon what it speaks.
const DESCRIPTORS: &str = "spillway.v1.binpb";

/// Where the generated Rust is kept.
pub(crate) fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated")
}

/// Generates into an existing folder.
pub(crate) fn into(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut descriptors = protox::compile(SOURCES, [env!("CARGO_MANIFEST_DIR")])?;
    tonic_prost_build::configure().out_dir(folder).compile_fds(descriptors.clone())?;
    for file in &mut descriptors.file {
        // Comments and places are for those who read the sources.
        file.source_code_info = None;
    }
    fs::write(folder.join(DESCRIPTORS), descriptors.encode_to_vec())?;
    Ok(())
}
