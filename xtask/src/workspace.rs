//! Where things are in the source tree.

use std::path::{Path, PathBuf};

/// The root of the source tree.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The target directory, which is the tree's own whatever `CARGO_TARGET_DIR` says: the reports of
/// demo and bench have their place in it.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// Where the packet programs are put: `balancer.o`, `receiver.o`, …
pub(crate) fn bpf_objects() -> PathBuf {
    target().join("bpf")
}

/// The host programs of one profile.
pub(crate) fn binaries(release: bool) -> PathBuf {
    target().join(if release { "release" } else { "debug" })
}
