//! The balancer's maps and the names of what is in them, read without the daemon.

use lb_daemon::{
    causes,
    dataplane::{MapsError, PinnedMaps, Pins, Role},
    directory::{Directory, DirectoryError},
};

pub(crate) use lb_daemon::names::address;

use crate::{arguments::Options, exit::Exit, failure::Failure, names::Names};

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
    Failure::new(Exit::Unavailable, format!("{root}: no {role} is pinned there")).hint(format!(
        "start it (`systemctl start spillway-{role}`), or name its BPF file system with --bpffs"
    ))
}

/// Maps that cannot be read.
pub(crate) fn failure(error: &MapsError) -> Failure {
    let failure = |exit| Failure::new(exit, causes::of(error));
    match error {
        MapsError::Missing { path } => {
            Failure::new(Exit::Unavailable, format!("{}: there is no such pin", path.display()))
                .hint("start the daemon, which completes its pins")
        }
        MapsError::Permission { path } => {
            Failure::new(Exit::Permission, format!("{}: permission denied", path.display()))
                .hint("run it as root")
        }
        MapsError::Layout { path, difference } => {
            Failure::new(Exit::Failure, format!("{}: has {difference}", path.display()))
                .hint("another build made it: use its spillway, or start this build's daemon anew")
        }
        MapsError::Changing { .. } => failure(Exit::Conflict).hint("try it again"),
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
        let message = format!("pool {pool}: there is none of this name");
        return Err(Failure::new(Exit::NotFound, message).hint(hint));
    }
    Ok(of_name)
}
