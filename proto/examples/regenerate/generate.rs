//! From `.proto` to Rust, without a protobuf compiler on the machine.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

const SOURCES: [&str; 2] = ["spillway/v1/configuration.proto", "spillway/v1/spillway.proto"];

/// Where the generated Rust is kept.
pub(crate) fn checked_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/generated")
}

/// Generates into an existing folder.
pub(crate) fn into(folder: &Path) -> Result<(), Box<dyn Error>> {
    let descriptors = protox::compile(SOURCES, [env!("CARGO_MANIFEST_DIR")])?;
    tonic_prost_build::configure().out_dir(folder).compile_fds(descriptors)?;
    Ok(())
}
