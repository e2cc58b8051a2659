//! `spillway detach`: takes programs and pins away, counters with them.

use lb_common::abi::LAYOUT_VERSION;
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
    origin,
    output::{Report, count, print},
    role::Role,
};

/// Options of `detach`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Whose programs
    #[arg(long, value_enum, default_value_t)]
    role: Role,
    /// Only the pins of this layout, as in the name of their directory (`balancer-v1`); else those of all
    /// layouts, which other versions may have left
    #[arg(long, value_name = "NUMBER")]
    layout: Option<u32>,
}

/// The answer.
#[derive(Serialize)]
struct Removed {
    role: &'static str,
    /// Layouts of the pins that were removed.
    layouts: Vec<u32>,
    interfaces: Vec<String>,
    maps: u32,
}

/// Removes a role's programs and pins and prints what there was.
///
/// # Errors
/// A daemon of the role runs, something cannot be removed, or a server is given.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    origin::this_host(options, "detach", "takes away what is pinned on this host")?;
    let role = dataplane::Role::from(arguments.role);
    let found = Pins::layouts(&options.bpffs, role);
    let found = found.map_err(|error| {
        Failure::path(&options.bpffs.join("spillway"), &error).hint("run it as root")
    })?;
    let wanted = |layout: &u32| arguments.layout.is_none_or(|only| only == *layout);
    let layouts: Vec<_> = found.iter().copied().filter(wanted).collect();
    let detached = dataplane::detach_layouts(&options.bpffs, role, &layouts);
    let detached = detached.map_err(|error| failure(&error, role, &found))?;
    // A daemon of another layout may run, and need its link.
    let is_all = detached.layouts == found;
    if role == dataplane::Role::Balancer && is_all && !found.is_empty() {
        converse(take_probe_link())?;
    }
    let Detached { layouts, interfaces, maps } = detached;
    print(&Removed { role: role.name(), layouts, interfaces, maps }, options.output)
}

/// Takes away the link of health checks that a daemon leaves which was killed.
async fn take_probe_link() -> Result<(), Failure> {
    let taken = ProbeLink::take_away().await;
    taken.map_err(|error| {
        Failure::new(Exit::Failure, format!("{PROBE_LINK}: {}", causes::of(&error)))
    })
}

fn failure(error: &BpffsError, role: dataplane::Role, found: &[u32]) -> Failure {
    match error {
        BpffsError::InUse { path } => {
            let message = format!("{}: a spillwayd {role} runs with these pins", path.display());
            let stop = "stop the daemon first; packets go on without it until you detach";
            Failure::new(Exit::Conflict, message).hint(match found {
                [_] => stop.into(),
                _ => format!("{stop}; `--layout NUMBER` removes the pins of another layout alone"),
            })
        }
        BpffsError::File { path, source } => Failure::path(path, source).hint("run it as root"),
        error => Failure::new(Exit::Failure, causes::of(error)),
    }
}

impl Report for Removed {
    fn table(&self) -> String {
        if self.layouts.is_empty() {
            return format!("{}: nothing was pinned\n", self.role);
        }
        let interfaces = match self.interfaces.is_empty() {
            true => "no interface".into(),
            false => self.interfaces.join(", "),
        };
        let maps = count(self.maps.into(), "map");
        let of = match self.layouts[..] {
            [LAYOUT_VERSION] => String::new(),
            [other] => format!(", of layout {other}"),
            ref all => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                format!(", of layouts {}", all.join(", "))
            }
        };
        format!("{}: detached from {interfaces}; {maps} removed{of}\n", self.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_said_in_one_line() {
        let removed = |layouts: &[u32], interfaces: &[&str], maps| Removed {
            role: "balancer",
            layouts: layouts.to_vec(),
            interfaces: interfaces.iter().map(ToString::to_string).collect(),
            maps,
        };
        let own = LAYOUT_VERSION;
        assert_eq!(
            removed(&[own], &["eth0", "eth1"], 15).table(),
            "balancer: detached from eth0, eth1; 15 maps removed\n"
        );
        assert_eq!(
            removed(&[own], &[], 1).table(),
            "balancer: detached from no interface; 1 map removed\n"
        );
        assert_eq!(
            removed(&[own + 6], &["eth0"], 15).table(),
            format!("balancer: detached from eth0; 15 maps removed, of layout {}\n", own + 6)
        );
        assert_eq!(
            removed(&[own, own + 1], &["eth0"], 30).table(),
            format!(
                "balancer: detached from eth0; 30 maps removed, of layouts {own}, {}\n",
                own + 1
            )
        );
        // The directory of another build may hold nothing that is counted.
        assert_eq!(
            removed(&[own], &[], 0).table(),
            "balancer: detached from no interface; 0 maps removed\n"
        );
        assert_eq!(removed(&[], &[], 0).table(), "balancer: nothing was pinned\n");
    }
}
