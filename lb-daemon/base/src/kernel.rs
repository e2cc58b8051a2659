//! The kernel: what packet programs require of it, and network namespaces.

use std::{io, os::linux::fs::MetadataExt as _};

use serde::{Deserialize, Serialize};

/// The oldest kernel that is tested: major and minor version.
pub const OLDEST: (u32, u32) = (6, 1);

/// The kernel's BTF. Without it the kernel loads no program that has BTF.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// (6, 1) of `6.1.0-40-cloud-amd64`; `None`: the release does not begin with two numbers.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A network namespace, identified by its file in nsfs as by `ip netns identify` and lsns(8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Device number of nsfs.
    pub device: u64,
    /// Inode of the namespace, as in `net:[4026531840]`.
    pub inode: u64,
}

impl Namespace {
    /// The namespace of this thread.
    ///
    /// # Errors
    /// procfs is not mounted.
    pub fn current() -> io::Result<Self> {
        // Threads of one process may be in different namespaces, as in the tests.
        let file = std::fs::metadata("/proc/thread-self/ns/net")?;
        Ok(Self { device: file.st_dev(), inode: file.st_ino() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_releases() {
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

    #[test]
    fn a_namespace_is_the_one_that_procfs_names() {
        let here = Namespace::current().unwrap();
        let link = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        assert_eq!(link.to_str().unwrap(), format!("net:[{}]", here.inode));
        assert_eq!(Namespace::current().unwrap(), here);
    }
}
