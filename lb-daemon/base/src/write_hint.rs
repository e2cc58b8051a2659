//! Hints for files that cannot be created or written.

use std::{io, path::Path};

/// The hint for an error in a directory that was given with `flag`.
pub fn hint(error: &io::Error, directory: &Path, flag: &str) -> String {
    let first = match error.kind() {
        io::ErrorKind::StorageFull => "make room on the disk".to_owned(),
        // A unit's `ProtectSystem=` makes directories read-only for its daemon only.
        io::ErrorKind::ReadOnlyFilesystem => format!(
            "it is read-only, as in a unit whose `ReadWritePaths=` does not have it: add {} \
             there with `systemctl edit`",
            directory.display()
        ),
        io::ErrorKind::PermissionDenied => "run as a user with write permission".to_owned(),
        _ => return format!("give {flag} a writable path"),
    };
    format!("{first}, or give another {flag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_hint() {
        let hint_for =
            |errno| hint(&io::Error::from_raw_os_error(errno), Path::new("/d"), "--state-dir");
        assert_eq!(hint_for(libc::ENOSPC), "make room on the disk, or give another --state-dir");
        assert_eq!(
            hint_for(libc::EROFS),
            "it is read-only, as in a unit whose `ReadWritePaths=` does not have it: add /d \
             there with `systemctl edit`, or give another --state-dir"
        );
        assert_eq!(
            hint_for(libc::EACCES),
            "run as a user with write permission, or give another --state-dir"
        );
        assert_eq!(hint_for(libc::EISDIR), "give --state-dir a writable path");
    }
}
