//! What to do where a file cannot be made or written.

use std::{io, path::Path};

/// What to do about an error in a directory that `flag` names.
pub fn hint(error: &io::Error, directory: &Path, flag: &str) -> String {
    let first = match error.kind() {
        io::ErrorKind::StorageFull => "make room on the disk".to_owned(),
        // A unit's `ProtectSystem=` makes it so for its daemon alone.
        io::ErrorKind::ReadOnlyFilesystem => format!(
            "it is read-only here, for a unit all that its `ReadWritePaths=` does not name: add {} \
             there with `systemctl edit`",
            directory.display()
        ),
        io::ErrorKind::PermissionDenied => "run as a user who may write there".to_owned(),
        _ => return format!("give {flag} a place that may be written"),
    };
    format!("{first}, or give another {flag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_way_out() {
        let of = |errno| hint(&io::Error::from_raw_os_error(errno), Path::new("/d"), "--state-dir");
        assert_eq!(of(libc::ENOSPC), "make room on the disk, or give another --state-dir");
        assert_eq!(
            of(libc::EROFS),
            "it is read-only here, for a unit all that its `ReadWritePaths=` does not name: add /d \
             there with `systemctl edit`, or give another --state-dir"
        );
        assert_eq!(
            of(libc::EACCES),
            "run as a user who may write there, or give another --state-dir"
        );
        assert_eq!(of(libc::EISDIR), "give --state-dir a place that may be written");
    }
}
