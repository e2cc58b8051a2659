//! The balancer's maps and the names of what is in them, read without the daemon.

use lb_base::error_chain;
use lb_doctor::process::{self, BPF, Capability, NET_ADMIN};
use lb_inspect::names::{Names, NoPool};
use lb_maps::{
    Component, MapsError, PinnedMaps, Pins,
    directory::{Directory, DirectoryError},
};

use crate::{
    arguments::Options,
    failure::{Exit, Failure},
};

/// Opens the pinned maps and the directory of names. Without the directory, numbers stand for names and
/// stderr gets a warning.
///
/// # Errors
/// No balancer is pinned, the user may not read it, or it has another layout.
pub(crate) fn open(options: &Options) -> Result<(PinnedMaps, Names), Failure> {
    let maps = PinnedMaps::open(&options.bpffs).map_err(|error| match error {
        MapsError::Missing { .. } => nothing_pinned(options, Component::Balancer),
        error => maps_failure(&error),
    })?;
    let names = Directory::read(options.state_dir()).map(Names).unwrap_or_else(|error| {
        let names = Names::default();
        // Before the first generation there is neither a directory nor anything to name.
        if !names.pools(&maps).is_empty() {
            eprintln!("warning: {}; showing numbers instead of names", directory_problem(&error));
            let or_socket = match options.socket {
                // The daemon on that socket does not answer.
                Some(_) => "",
                None => ", or its socket with --socket",
            };
            eprintln!("hint: name the daemon's state directory with --state-dir{or_socket}");
        }
        names
    });
    Ok((maps, names))
}

/// Warns on stderr if the maps belong to a daemon in another network namespace: its interfaces have no names
/// here.
pub(crate) fn warn_of_namespace(names: &Names) {
    if names.is_of_another_namespace() {
        eprintln!(
            "warning: the daemon runs in another network namespace; interfaces are shown by number"
        );
        eprintln!(
            "hint: ask the daemon with --socket, or run this command in its namespace with `nsenter --net`"
        );
    }
}

/// Why the directory of names cannot be read.
fn directory_problem(error: &DirectoryError) -> String {
    match error {
        DirectoryError::File { path, source } => Failure::path(path, source).message,
        error => error_chain::message(error),
    }
}

pub(crate) fn nothing_pinned(options: &Options, component: Component) -> Failure {
    let root = Pins::new(&options.bpffs, component).root().display().to_string();
    let hint = other_host(options, component).unwrap_or_else(|| {
        format!(
            "start it (`systemctl start spillway-{component}`), or name its BPF file system with --bpffs"
        )
    });
    Failure::new(Exit::Unavailable, format!("{root}: no {component} is pinned there")).hint(hint)
}

/// What to run instead on a host that has only the other component.
pub(crate) fn other_host(options: &Options, component: Component) -> Option<String> {
    let has = |component| Pins::new(&options.bpffs, component).root().is_dir();
    match component {
        Component::Balancer if !has(component) && has(Component::Receiver) => {
            Some("this host is a backend: `spillway stats --component receiver`".into())
        }
        Component::Receiver if !has(component) && has(Component::Balancer) => {
            Some("this host is a balancer: `spillway stats`".into())
        }
        _ => None,
    }
}

pub(crate) fn maps_failure(error: &MapsError) -> Failure {
    let missing = process::effective_capabilities("self")
        .and_then(|own| process::missing_capabilities(own, &TO_READ));
    explain_maps_error(error, missing.as_deref())
}

/// Needed to read the maps. Without them the kernel's errors are misleading.
const TO_READ: [Capability; 2] = [BPF, NET_ADMIN];

fn explain_maps_error(error: &MapsError, missing: Option<&str>) -> Failure {
    let failure = |exit| Failure::new(exit, error_chain::message(error));
    match (error, missing) {
        (MapsError::Missing { path }, _) => {
            Failure::new(Exit::Unavailable, format!("{}: no such pin", path.display()))
                .hint("start the daemon: it completes its pins")
        }
        (MapsError::Changing { .. }, _) => failure(Exit::Conflict).hint("try again"),
        (_, Some(missing)) => {
            Failure::new(Exit::Permission, format!("pinned maps: cannot be read without {missing}"))
                .hint("run it as root, with root's capabilities")
        }
        (MapsError::Permission { path }, None) => {
            Failure::new(Exit::Permission, format!("{}: permission denied", path.display()))
                .hint("run it as root")
        }
        (MapsError::Layout { path, difference }, None) => Failure::new(
            Exit::Failure,
            format!("{}: has {difference}", path.display()),
        )
        .hint(
            "another build made it: use the spillway of that build, or restart this build's daemon",
        ),
        _ => failure(Exit::Failure),
    }
}

/// Indices of the published pools of that name, or of all pools in order of name.
///
/// # Errors
/// No pool has the name.
pub(crate) fn pools(
    maps: &PinnedMaps,
    names: &Names,
    pool: Option<&str>,
) -> Result<Vec<u32>, Failure> {
    names.pools_named(maps, pool).map_err(|no_pool| unknown_pool(&no_pool))
}

pub(crate) fn unknown_pool(no_pool: &NoPool) -> Failure {
    Failure::new(Exit::NotFound, no_pool.to_string()).hint(no_pool.hint())
}

#[cfg(test)]
mod tests {
    use lb_maps::DEFAULT_BPFFS;

    use super::*;

    #[test]
    fn missing_capabilities_are_not_mistaken_for_another_build() {
        let layout = || MapsError::Layout {
            path: format!("{DEFAULT_BPFFS}/x/DEVICES").into(),
            difference: "a value of 4 bytes, expected 8".into(),
        };
        let denied = explain_maps_error(&layout(), Some("CAP_BPF"));
        assert_eq!(denied.exit, Exit::Permission);
        assert_eq!(denied.message, "pinned maps: cannot be read without CAP_BPF");
        assert_eq!(explain_maps_error(&layout(), None).exit, Exit::Failure);
        let changing = MapsError::Changing { pool: 1 };
        assert_eq!(explain_maps_error(&changing, Some("CAP_BPF")).exit, Exit::Conflict);
    }
}
