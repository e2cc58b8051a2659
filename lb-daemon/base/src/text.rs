//! Parts of messages: callers' texts, suggestions of names, hints.

use std::{fmt, io, path::Path};

/// Shows a caller's text quoted, escaped, and cut after 70 characters.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 70;
        match self.0.char_indices().nth(LONGEST) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
        }
    }
}

/// `1 change`, `2 changes`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A word of a command, quoted for the shell if it needs that.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The first of several mistakes, and how many more there are.
#[derive(Clone, Copy, Debug)]
pub struct FirstOf<T>(pub T, pub usize);

impl<T: fmt::Display> fmt::Display for FirstOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(first, all) = self;
        first.fmt(f)?;
        match all {
            0 | 1 => Ok(()),
            all => write!(f, " (and {})", count(*all as u64 - 1, "more mistake")),
        }
    }
}

/// The name closest to `wrong` by edit distance, if at most a third of its letters differ.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (wrong.chars().count() / 3).max(1);
    let distances = names.into_iter().map(|name| (strsim::osa_distance(wrong, name), name));
    distances.filter(|(distance, _)| (1..=most).contains(distance)).min().map(|(_, name)| name)
}

/// The hint for an error in a directory that was given with `flag`.
pub fn write_hint(error: &io::Error, directory: &Path, flag: &str) -> String {
    let first = match error.kind() {
        io::ErrorKind::StorageFull => "make room on the disk".to_owned(),
        // A unit's `ProtectSystem=` makes directories read-only for its daemon only.
        io::ErrorKind::ReadOnlyFilesystem => format!(
            "it is read-only, perhaps because the unit's `ReadWritePaths=` does not list it: add {} \
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
    fn a_typing_error_is_recognised_and_another_name_is_not_offered() {
        let names = ["web", "dns", "web-internal", "wet"];
        assert_eq!(nearest("wbe", names), Some("web"));
        assert_eq!(nearest("dsn", names), Some("dns"));
        assert_eq!(nearest("web-intrenal", names), Some("web-internal"));
        assert_eq!(nearest("wez", names), Some("web"), "the first by name, of equals");
        assert_eq!(nearest("mail", names), None);
        assert_eq!(nearest("web", ["web"]), None, "equal, not close");
    }

    #[test]
    fn each_kind_of_error_has_its_hint() {
        let hint_for = |errno| {
            write_hint(&io::Error::from_raw_os_error(errno), Path::new("/d"), "--state-dir")
        };
        assert_eq!(hint_for(libc::ENOSPC), "make room on the disk, or give another --state-dir");
        assert_eq!(
            hint_for(libc::EROFS),
            "it is read-only, perhaps because the unit's `ReadWritePaths=` does not list it: add /d \
             there with `systemctl edit`, or give another --state-dir"
        );
        assert_eq!(
            hint_for(libc::EACCES),
            "run as a user with write permission, or give another --state-dir"
        );
        assert_eq!(hint_for(libc::EISDIR), "give --state-dir a writable path");
    }
}
