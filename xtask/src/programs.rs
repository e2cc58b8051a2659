//! Looking for programs where a shell, or root's shell, would find them.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Folders of system programs that a user's PATH often lacks.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The search path of programs that run as root, whatever sudo makes of PATH.
pub(crate) const ROOT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The program's path, from PATH and the system folders.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from));
    find_in(folders, name)
}

fn find_in(folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_an_executable_file() {
        let folders = || ["/nowhere", "/bin", "/etc"].iter().map(PathBuf::from);
        assert_eq!(find_in(folders(), "sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_in(folders(), "passwd-of-nobody"), None);
        assert_eq!(
            find_in([env!("CARGO_MANIFEST_DIR")].iter().map(PathBuf::from), "Cargo.toml"),
            None,
            "not executable"
        );
        assert_eq!(find_in(["/usr"].iter().map(PathBuf::from), "bin"), None, "a folder");
    }
}
