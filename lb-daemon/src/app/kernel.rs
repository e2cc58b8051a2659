//! Whether the kernel can run packet programs at all.

use std::{fs, path::Path};

use super::Failure;
use lb_base::kernel::{BTF, OLDEST, version};

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Looks at the kernel.
///
/// # Errors
/// It is too old, or built without what programs need.
pub(super) fn fits() -> Result<(), Failure> {
    let release = nix::sys::utsname::uname()
        .map(|names| names.release().to_string_lossy().into_owned())
        .or_else(|_| fs::read_to_string(RELEASE))
        .map_err(|error| Failure::of(RELEASE, &error))?;
    if version(&release).is_some_and(|version| version < OLDEST) {
        let (major, minor) = OLDEST;
        return Err(Failure::new(format!("kernel {}: is too old", release.trim()))
            .hint(format!("boot Linux {major}.{minor} (that of Debian 12) or a later one")));
    }
    if !Path::new(BTF).exists() {
        return Err(Failure::new(format!("{BTF}: is not there, so the kernel has no BTF")).hint(
            "boot a kernel that was built with CONFIG_DEBUG_INFO_BTF=y, as those of Debian are, \
             and have /sys mounted",
        ));
    }
    Ok(())
}
