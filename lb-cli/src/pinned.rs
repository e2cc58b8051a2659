//! The balancer's maps and the names of what is in them, read without the daemon.

use lb_daemon::{
    causes,
    dataplane::{MapsError, PinnedMaps, Pins, Role},
    directory::{Directory, DirectoryError},
    names::NoPool,
};

use crate::{
    arguments::Options,
    exit::Exit,
    failure::Failure,
    names::Names,
    rights::{self, BPF, Capability, NET_ADMIN},
};

/// Opens the pinned maps and the directory of names. Without the directory things are called by
/// their numbers, which stderr is told.
///
/// # Errors
/// No balancer is pinned, the user may not read it, or it is of another layout.
pub(crate) fn open(options: &Options) -> Result<(PinnedMaps, Names), Failure> {
    let maps = PinnedMaps::open(&options.bpffs).map_err(|error| match error {
        MapsError::Missing { .. } => nothing_pinned(options, Role::Balancer),
        error => failure(&error),
    })?;
    let names = Directory::read(options.state_dir()).map(Names).unwrap_or_else(|error| {
        let names = Names::default();
        // Before the first generation there is no directory, and nothing to name.
        if !names.pools(&maps).is_empty() {
            eprintln!("warning: {}; things are called by their numbers", unnamed(&error));
            let or_socket = match options.socket {
                // It does not answer.
                Some(_) => "",
                None => ", or its socket with --socket",
            };
            eprintln!("hint: name the daemon's state directory with --state-dir{or_socket}");
        }
        names
    });
    Ok((maps, names))
}

/// Says on standard error where interfaces cannot be named, since the maps are those of a daemon in another
/// network namespace.
pub(crate) fn warn_of_namespace(names: &Names) {
    if names.is_of_another_namespace() {
        eprintln!(
            "warning: the daemon is in another network namespace than this command; interfaces are called by \
             their numbers there"
        );
        eprintln!(
            "hint: ask the daemon with --socket, or run this command in its namespace with `nsenter --net`"
        );
    }
}

/// Why there are no names.
fn unnamed(error: &DirectoryError) -> String {
    match error {
        DirectoryError::File { path, source } => Failure::path(path, source).message,
        error => causes::of(error),
    }
}

/// There are no pins of a role.
pub(crate) fn nothing_pinned(options: &Options, role: Role) -> Failure {
    let root = Pins::new(&options.bpffs, role).root().display().to_string();
    let hint = other_host(options, role).unwrap_or_else(|| {
        format!(
            "start it (`systemctl start spillway-{role}`), or name its BPF file system with --bpffs"
        )
    });
    Failure::new(Exit::Unavailable, format!("{root}: no {role} is pinned there")).hint(hint)
}

/// What to ask instead, on a host that has the other role alone.
pub(crate) fn other_host(options: &Options, role: Role) -> Option<String> {
    let has = |role| Pins::new(&options.bpffs, role).root().is_dir();
    match role {
        Role::Balancer if !has(role) && has(Role::Receiver) => {
            Some("this host is a backend: `spillway stats --role receiver`".into())
        }
        Role::Receiver if !has(role) && has(Role::Balancer) => {
            Some("this host is a balancer: `spillway stats`".into())
        }
        _ => None,
    }
}

/// Maps that cannot be read.
pub(crate) fn failure(error: &MapsError) -> Failure {
    let lacks = rights::effective("self").and_then(|own| rights::missing(own, &TO_READ));
    of(error, lacks.as_deref())
}

/// What it takes to read the maps. Without them the kernel's answers mislead.
const TO_READ: [Capability; 2] = [BPF, NET_ADMIN];

fn of(error: &MapsError, lacks: Option<&str>) -> Failure {
    let failure = |exit| Failure::new(exit, causes::of(error));
    match (error, lacks) {
        (MapsError::Missing { path }, _) => {
            Failure::new(Exit::Unavailable, format!("{}: there is no such pin", path.display()))
                .hint("start the daemon, which completes its pins")
        }
        (MapsError::Changing { .. }, _) => failure(Exit::Conflict).hint("try it again"),
        (_, Some(lacks)) => {
            Failure::new(Exit::Permission, format!("pinned maps: cannot be read without {lacks}"))
                .hint("run it as root, with root's capabilities")
        }
        (MapsError::Permission { path }, None) => {
            Failure::new(Exit::Permission, format!("{}: permission denied", path.display()))
                .hint("run it as root")
        }
        (MapsError::Layout { path, difference }, None) => {
            Failure::new(Exit::Failure, format!("{}: has {difference}", path.display()))
                .hint("another build made it: use its spillway, or start this build's daemon anew")
        }
        _ => failure(Exit::Failure),
    }
}

/// Indices of the published pools of a name, or of all in order of their names.
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

/// No pool has the name that was given.
pub(crate) fn unknown_pool(no_pool: &NoPool) -> Failure {
    Failure::new(Exit::NotFound, no_pool.to_string()).hint(no_pool.hint())
}

#[cfg(test)]
mod tests {
    use lb_daemon::dataplane::DEFAULT_BPFFS;

    use super::*;

    #[test]
    fn what_looks_like_another_build_is_named_as_what_it_is() {
        let layout = || MapsError::Layout {
            path: format!("{DEFAULT_BPFFS}/x/DEVICES").into(),
            difference: "a value of 4 bytes, expected 8".into(),
        };
        let denied = of(&layout(), Some("CAP_BPF"));
        assert_eq!(denied.exit, Exit::Permission);
        assert_eq!(denied.message, "pinned maps: cannot be read without CAP_BPF");
        assert_eq!(of(&layout(), None).exit, Exit::Failure);
        let changing = MapsError::Changing { pool: 1 };
        assert_eq!(of(&changing, Some("CAP_BPF")).exit, Exit::Conflict);
    }
}
