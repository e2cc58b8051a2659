//! The balancer's slow path: a program that the fast path jumps into, by an array of programs.
//!
//! Each load has an array of its own, so the slow path is always that of the same object. The kernel empties an array of
//! programs that no process holds and no pin names, so it is pinned for as long as its fast path is on an interface.

use std::{collections::BTreeSet, fs, io};

use aya::{
    Ebpf,
    maps::{MapError, ProgramArray},
    programs::{ProgramError, Xdp},
};
use lb_common::abi::names::{BALANCER_SLOW, SLOW_PATH};

use super::{detach, pinned};
use crate::{BpffsError, MapsError, Pins};

/// Why the slow path cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum SlowPathError {
    /// The object has none, or the kernel refused it.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The array of programs does not take it.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The object is no balancer's.
    #[error("the object has no {0}")]
    Missing(&'static str),
}

/// Loads the slow path of a balancer's object, and lets the fast path jump into it.
///
/// # Errors
/// [`SlowPathError`].
pub fn load_slow_path(balancer: &mut Ebpf) -> Result<(), SlowPathError> {
    let program = balancer.program_mut(BALANCER_SLOW);
    let program: &mut Xdp = program.ok_or(SlowPathError::Missing(BALANCER_SLOW))?.try_into()?;
    program.load()?;
    let program = program.fd()?.try_clone().map_err(ProgramError::IOError)?;
    let map = balancer.map_mut(SLOW_PATH).ok_or(SlowPathError::Missing(SLOW_PATH))?;
    Ok(ProgramArray::try_from(map)?.set(0, &program, 0)?)
}

/// Pins the array of an object whose fast path the kernel gave this number.
///
/// # Errors
/// [`MapsError::Pin`].
pub(super) fn pin(balancer: &Ebpf, pins: &Pins, program: u32) -> Result<(), MapsError> {
    let path = pins.slow_path(program);
    let pinned = fs::create_dir_all(pins.slow_paths()).and_then(|()| {
        let map = balancer.map(SLOW_PATH).ok_or(io::ErrorKind::NotFound)?;
        map.pin(&path).map_err(io::Error::other)
    });
    pinned.map_err(|source| MapsError::Pin { path, source })
}

/// Removes the arrays of fast paths that are on no interface. A grace period must have passed since they were.
///
/// # Errors
/// What cannot be read or removed.
pub(super) fn remove_unused(pins: &Pins) -> Result<(), BpffsError> {
    let links = detach::attached(pins)?;
    let used = links.iter().map(|interface| pinned::program(&pins.link(interface)));
    // One that cannot be read may use any.
    let Some(used) = used.collect::<Option<BTreeSet<u32>>>() else { return Ok(()) };
    for name in detach::files(&pins.slow_paths())? {
        if !name.parse().is_ok_and(|program| used.contains(&program)) {
            let path = pins.slow_paths().join(name);
            detach::remove(&path, fs::remove_file(&path))?;
        }
    }
    Ok(())
}
