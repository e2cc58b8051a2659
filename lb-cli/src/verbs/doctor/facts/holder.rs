use std::{fs, os::unix::fs::MetadataExt, path::Path};

use nix::sys::stat::{major, minor};

use super::host::capabilities;

/// The daemon that holds a role's pins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Holder {
    /// Process id.
    pub(in super::super) pid: u32,
    /// Its command line, the program's full path first.
    pub(in super::super) command: Vec<String>,
    /// Effective capabilities, as bits; `None`: not to be seen.
    pub(in super::super) capabilities: Option<u64>,
    /// The systemd unit that it belongs to.
    pub(in super::super) unit: Option<String>,
}

impl Holder {
    /// Who has the lock on a directory of pins, by `/proc/locks`: taking it to find out would be in
    /// the way of a daemon that starts.
    pub(super) fn of(pins: &Path) -> Option<Self> {
        let directory = fs::metadata(pins).ok()?;
        let device = directory.dev();
        let key = format!("{:02x}:{:02x}:{}", major(device), minor(device), directory.ino());
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let pid = locks.lines().find_map(|line| pid_of(line, &key))?;
        Some(Self {
            pid,
            command: command(pid),
            capabilities: capabilities(&pid.to_string()),
            unit: fs::read_to_string(format!("/proc/{pid}/cgroup")).ok().and_then(|at| unit(&at)),
        })
    }
}

/// The holder of a lock, of a line of proc_locks(5).
fn pid_of(line: &str, key: &str) -> Option<u32> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words[..] {
        [_, "FLOCK", _, "WRITE", pid, file, ..] if file == key => pid.parse().ok(),
        _ => None,
    }
}

fn command(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let mut words: Vec<_> = line.split_terminator('\0').map(str::to_owned).collect();
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    if let (Some(first), Some(program)) = (words.first_mut(), program) {
        // A program whose file was replaced goes by the former name, marked.
        *first = program.display().to_string().trim_end_matches(" (deleted)").to_owned();
    }
    words
}

/// The service that a process is in, of proc_pid_cgroup(5).
fn unit(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let last = path.rsplit('/').next()?;
    last.strip_suffix(".service").map(|_| last.to_owned())
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

    #[test]
    fn a_process_belongs_to_the_service_that_its_cgroup_is_named_for() {
        let service = unit("0::/system.slice/spillway-balancer.service\n");
        assert_eq!(service.as_deref(), Some("spillway-balancer.service"));
        assert_eq!(unit("0::/user.slice/user-0.slice/session-1.scope\n"), None);
        assert_eq!(unit("0::/\n"), None);
    }
}
