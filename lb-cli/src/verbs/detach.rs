//! `spillway detach`: takes programs and pins away, counters with them.

use lb_daemon::{
    causes,
    dataplane::{self, BpffsError, Detached, Pins},
    net::{PROBE_LINK, ProbeLink},
};
use serde::Serialize;

use crate::{
    arguments::Options,
    daemon::converse,
    exit::Exit,
    failure::Failure,
    output::{Report, count, print},
    role::Role,
};

/// Options of `detach`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Whose programs
    #[arg(long, value_enum, default_value_t)]
    role: Role,
}

/// The answer.
#[derive(Serialize)]
struct Removed {
    role: &'static str,
    interfaces: Vec<String>,
    maps: u32,
}

/// Removes a role's programs and pins and prints what there was.
///
/// # Errors
/// A daemon of the role runs, or something cannot be removed.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let role = dataplane::Role::from(arguments.role);
    let root = Pins::new(&options.bpffs, role);
    let detached = match std::fs::metadata(root.root()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Detached::default(),
        Err(error) => return Err(Failure::path(root.root(), &error).hint("run it as root")),
        Ok(_) => {
            let detached = dataplane::detach(&options.bpffs, role);
            let detached = detached.map_err(|error| failure(&error, role))?;
            if role == dataplane::Role::Balancer {
                converse(take_probe_link())?;
            }
            detached
        }
    };
    let Detached { interfaces, maps } = detached;
    print(&Removed { role: role.name(), interfaces, maps }, options.output)
}

/// Takes away the link of health checks that a daemon leaves which was killed.
async fn take_probe_link() -> Result<(), Failure> {
    let taken = ProbeLink::take_away().await;
    taken.map_err(|error| {
        Failure::new(Exit::Failure, format!("{PROBE_LINK}: {}", causes::of(&error)))
    })
}

fn failure(error: &BpffsError, role: dataplane::Role) -> Failure {
    match error {
        BpffsError::InUse { path } => {
            let message = format!("{}: a spillwayd {role} runs with these pins", path.display());
            Failure::new(Exit::Conflict, message)
                .hint("stop the daemon first; packets go on without it until you detach")
        }
        BpffsError::File { path, source } => Failure::path(path, source).hint("run it as root"),
        error => Failure::new(Exit::Failure, causes::of(error)),
    }
}

impl Report for Removed {
    fn table(&self) -> String {
        if self.interfaces.is_empty() && self.maps == 0 {
            return format!("{}: nothing was pinned\n", self.role);
        }
        let interfaces = match self.interfaces.is_empty() {
            true => "no interface".into(),
            false => self.interfaces.join(", "),
        };
        let maps = count(self.maps.into(), "map");
        format!("{}: detached from {interfaces}; {maps} removed\n", self.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_said_in_one_line() {
        let removed = |interfaces: &[&str], maps| Removed {
            role: "balancer",
            interfaces: interfaces.iter().map(ToString::to_string).collect(),
            maps,
        };
        assert_eq!(
            removed(&["eth0", "eth1"], 15).table(),
            "balancer: detached from eth0, eth1; 15 maps removed\n"
        );
        assert_eq!(
            removed(&[], 1).table(),
            "balancer: detached from no interface; 1 map removed\n"
        );
        assert_eq!(removed(&[], 0).table(), "balancer: nothing was pinned\n");
    }
}
