//! Who holds a lock on a file, without taking it: that would be in the way of a daemon that starts.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use nix::sys::stat::{major, minor};

/// Id of the process that has the whole file or directory locked for itself, flock(2), by
/// proc_locks(5); `None`: nobody has, or it is not to be seen.
pub fn holder(path: &Path) -> Option<u32> {
    let file = fs::metadata(path).ok()?;
    let device = file.dev();
    let key = format!("{:02x}:{:02x}:{}", major(device), minor(device), file.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // A process of another namespace goes by 0, or by a negative number.
    locks.lines().find_map(|line| pid_of(line, &key)).filter(|pid| *pid != 0)
}

/// ` (process 7)` where the holder of a lock is known.
pub fn named(path: &Path) -> String {
    holder(path).map(process).unwrap_or_default()
}

/// ` (process 7)`
pub fn process(pid: u32) -> String {
    format!(" (process {pid})")
}

/// The holder of a lock, of a line of proc_locks(5).
fn pid_of(line: &str, key: &str) -> Option<u32> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words[..] {
        [_, "FLOCK", _, "WRITE", pid, file, ..] if file == key => pid.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_by_the_file() {
        let line = "3: FLOCK  ADVISORY  WRITE 4711 00:2a:1031 0 EOF";
        assert_eq!(pid_of(line, "00:2a:1031"), Some(4711));
        assert_eq!(pid_of(line, "00:2a:103"), None);
        assert_eq!(pid_of("3: POSIX  ADVISORY  WRITE 4711 00:2a:1031 0 EOF", "00:2a:1031"), None);
        assert_eq!(pid_of("3: -> FLOCK  ADVISORY  WRITE 9 00:2a:1031 0 EOF", "00:2a:1031"), None);
    }
}
