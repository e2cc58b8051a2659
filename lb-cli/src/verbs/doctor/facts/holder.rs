use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{command_line, rights};

/// The daemon that holds a role's pins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Holder {
    /// Process id.
    pub(in super::super) pid: u32,
    /// Its command line, the program's full path first.
    pub(in super::super) command: Vec<String>,
    /// Effective capabilities, as bits; `None`: not to be seen.
    pub(in super::super) capabilities: Option<u64>,
    /// The systemd unit that it belongs to, `spillway-balancer`.
    pub(in super::super) unit: Option<String>,
}

impl Holder {
    /// Who has the lock on a directory of pins.
    pub(super) fn of(pins: &Path) -> Option<Self> {
        let pid = lb_daemon::holder::holder(pins)?;
        Some(Self {
            pid,
            command: command_line::of_process(pid),
            capabilities: rights::effective(&pid.to_string()),
            unit: fs::read_to_string(format!("/proc/{pid}/cgroup")).ok().and_then(|at| unit(&at)),
        })
    }

    /// The settings file that it was started with.
    pub(in super::super) fn settings(&self) -> Option<PathBuf> {
        command_line::settings_file(&self.command)
    }
}

/// The service that a process is in, of proc_pid_cgroup(5).
fn unit(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let last = path.rsplit('/').next()?;
    last.strip_suffix(".service").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_belongs_to_the_service_that_its_cgroup_is_named_for() {
        let service = unit("0::/system.slice/spillway-balancer.service\n");
        assert_eq!(service.as_deref(), Some("spillway-balancer"));
        assert_eq!(unit("0::/user.slice/user-0.slice/session-1.scope\n"), None);
        assert_eq!(unit("0::/\n"), None);
    }
}
