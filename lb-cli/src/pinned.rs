//! The balancer's maps and the names of what is in them, read without the daemon.

use lb_daemon::{
    causes,
    dataplane::{MapsError, PinnedMaps, Pins, Role},
    directory::{Directory, DirectoryError},
};

pub(crate) use lb_daemon::names::address;
use nix::net::if_::if_indextoname;

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
    let names = Directory::read(&options.state_dir).map(Names).unwrap_or_else(|error| {
        let names = Names::default();
        // Before the first generation there is no directory, and nothing to name.
        if !names.pools(&maps).is_empty() {
            eprintln!("warning: {}; things are called by their numbers", unnamed(&error));
            eprintln!("hint: name the daemon's state directory with --state-dir");
        }
        names
    });
    Ok((maps, names))
}

/// An interface by its name; `interface 3` where this namespace has none of the number.
pub(crate) fn interface(index: u16) -> String {
    let name = if_indextoname(index.into()).ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("interface {index}"))
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
    let known = names.pools(maps);
    let Some(pool) = pool else { return Ok(known) };
    let of_name: Vec<_> = known.iter().copied().filter(|&i| names.pool(i) == pool).collect();
    if of_name.is_empty() {
        let all: Vec<_> = known.iter().map(|&index| names.pool(index)).collect();
        let hint = match all.is_empty() {
            true => "no pool is published; apply a configuration first".into(),
            false => format!("the pools are: {}", all.join(", ")),
        };
        let message = format!("pool {pool:?}: there is none of this name");
        return Err(Failure::new(Exit::NotFound, message).hint(hint));
    }
    Ok(of_name)
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

    #[test]
    fn an_interface_is_called_by_its_name_where_it_has_one() {
        // The first of every namespace.
        assert_eq!(interface(1), "lo");
        assert_eq!(interface(u16::MAX), "interface 65535");
    }
}
