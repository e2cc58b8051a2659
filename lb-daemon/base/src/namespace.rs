use std::{io, os::linux::fs::MetadataExt as _};

use serde::{Deserialize, Serialize};

/// A network namespace, by its file in nsfs: `ip netns identify` and lsns(8) compare the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Device of nsfs.
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
        // Threads of a process may be in different namespaces: those of the tests are.
        let file = std::fs::metadata("/proc/thread-self/ns/net")?;
        Ok(Self { device: file.st_dev(), inode: file.st_ino() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_link_of_procfs_names() {
        let here = Namespace::current().unwrap();
        let link = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        assert_eq!(link.to_str().unwrap(), format!("net:[{}]", here.inode));
        assert_eq!(Namespace::current().unwrap(), here);
    }
}
