//! Finds the process that holds the lock of a file, without taking the lock, which could make a starting daemon fail.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use nix::sys::stat::{major, minor};

/// Id of the process that has an exclusive flock(2) of a file or directory, by proc_locks(5); `None`: not locked, or
/// by a process that is not visible here.
pub fn holder(path: &Path) -> Option<u32> {
    let file = fs::metadata(path).ok()?;
    let device = file.dev();
    let key = format!("{:02x}:{:02x}:{}", major(device), minor(device), file.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // Processes of other namespaces have 0 or a negative number.
    locks.lines().find_map(|line| pid_of(line, &key)).filter(|pid| *pid != 0)
}

/// ` (process 7)` if the holder of a lock is known, else empty.
pub fn named(path: &Path) -> String {
    holder(path).map(process).unwrap_or_default()
}

/// ` (process 7)`
pub fn process(pid: u32) -> String {
    format!(" (process {pid})")
}

/// The holder in a line of proc_locks(5), if it is about the file.
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
