//! Whether the kernel can run packet programs at all.

use std::{fs, path::Path};

use super::Failure;

/// The oldest kernel that the programs are tried on.
const OLDEST: (u32, u32) = (6, 1);
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// Types of the kernel; without them it takes no program with types of its own.
const BTF: &str = "/sys/kernel/btf/vmlinux";

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

/// `6.1` of `6.1.0-40-cloud-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_apart() {
        for (release, expected) in [
            ("6.1.0-40-cloud-amd64", Some((6, 1))),
            ("5.19.17", Some((5, 19))),
            ("10.0-rc1\n", Some((10, 0))),
            ("strange", None),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
        assert!(version("5.19.17") < Some(OLDEST) && version("10.0") > Some(OLDEST));
    }
}
