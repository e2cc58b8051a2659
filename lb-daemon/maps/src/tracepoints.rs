//! Programs on the kernel's tracepoints, which count frames that are dropped after the balancer's program.
//!
//! They and their counts are pinned beside the balancer's maps, so they count while no daemon runs.

use std::{collections::HashMap, fs, io, os::unix::fs::MetadataExt as _, path::Path};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{self, Map, MapData},
    pin::PinError,
    programs::{ProgramError, RawTracePoint, links::FdLink},
};
use btfparse::{Offset, Readable, TypeInformation};
use lb_base::error_chain;
use lb_common::abi::{
    names::TRACED_DROPS,
    tracepoint::{IFINDEX_OFFSET, INODE_OFFSET, NAMESPACE_INODE, NAMESPACE_OFFSET, Tracepoint},
};

use super::{Component, Objects, Pins, StubObject};

/// The kernel's types (kernel 5.4, `CONFIG_DEBUG_INFO_BTF`).
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// A type that kernels have in which programs can be put on tracepoints (`CONFIG_BPF_EVENTS`).
const TRACEPOINT_TYPE: &[u8] = b"\0btf_trace_xdp_exception\0";

/// Why drops are not traced.
#[derive(Debug, thiserror::Error)]
pub enum TracepointError {
    /// The kernel was built without tracepoints, or without a way to put programs on them.
    #[error("this kernel has no tracepoints for packet programs (CONFIG_BPF_EVENTS)")]
    Missing,
    /// The build has no packet programs.
    #[error(transparent)]
    Stub(#[from] StubObject),
    /// The kernel's types cannot be read.
    #[error("{KERNEL_TYPES}")]
    Types(#[source] io::Error),
    /// The kernel's types are not what they should be.
    #[error("{KERNEL_TYPES}: no offset of {0}")]
    Offset(&'static str),
    /// The network namespace of this thread cannot be told.
    #[error("{NAMESPACE}")]
    Namespace(#[source] io::Error),
    /// The object or its map was refused.
    #[error("tracepoints object")]
    Object(#[from] EbpfError),
    /// The object is another than the daemon knows.
    #[error("tracepoints object: has no {0}")]
    NoProgram(&'static str),
    /// The kernel refused a program, or to attach it.
    #[error("tracepoint {tracepoint}")]
    Program { tracepoint: &'static str, source: ProgramError },
    /// A program cannot be pinned.
    #[error("tracepoint {tracepoint}")]
    Pin { tracepoint: &'static str, source: PinError },
    /// A pin cannot be made or removed.
    #[error("pins of tracepoints")]
    Pins(#[source] io::Error),
}

const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Attaches the programs for interfaces of this thread's network namespace, in place of those of an earlier daemon, whose
/// counts go on. The caller holds the balancer's pins. Reading the kernel's types takes a part of a second.
///
/// # Errors
/// [`TracepointError`]; the programs of the earlier daemon stay, but for those that are replaced by then.
pub fn attach_tracepoints(objects: &Objects, bpffs: &Path) -> Result<(), TracepointError> {
    let pins = Pins::new(bpffs, Component::Balancer);
    fs::create_dir_all(pins.tracepoints()).map_err(TracepointError::Pins)?;
    let object = objects.tracepoints()?;
    let offsets = Offsets::read()?;
    let namespace = fs::metadata(NAMESPACE).map_err(TracepointError::Namespace)?.ino();
    let mut loaded = EbpfLoader::new()
        .btf(None)
        .override_global(IFINDEX_OFFSET, &offsets.ifindex, true)
        .override_global(NAMESPACE_OFFSET, &offsets.namespace, true)
        .override_global(INODE_OFFSET, &offsets.inode, true)
        .override_global(NAMESPACE_INODE, &namespace, true)
        .map_pin_path(TRACED_DROPS, pins.tracepoint(TRACED_DROPS))
        .load(object)?;
    Tracepoint::ALL.into_iter().try_for_each(|tracepoint| attach(&mut loaded, &pins, tracepoint))
}

fn attach(loaded: &mut Ebpf, pins: &Pins, at: Tracepoint) -> Result<(), TracepointError> {
    let tracepoint = at.name();
    let refused = |source| TracepointError::Program { tracepoint, source };
    let program = loaded.program_mut(tracepoint).ok_or(TracepointError::NoProgram(tracepoint))?;
    let program: &mut RawTracePoint = program.try_into().map_err(refused)?;
    program.load().map_err(refused)?;
    // Last, so that hardly a frame is missed; two programs would count each twice.
    remove(&pins.tracepoint(tracepoint)).map_err(TracepointError::Pins)?;
    let link = program.attach(tracepoint).map_err(refused)?;
    let link = program.take_link(link).map_err(refused)?;
    FdLink::from(link)
        .pin(pins.tracepoint(tracepoint))
        .map_err(|source| TracepointError::Pin { tracepoint, source })?;
    Ok(())
}

fn remove(pin: &Path) -> io::Result<()> {
    match fs::remove_file(pin) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Offsets in the kernel's own structs, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offsets {
    /// Of `ifindex` in `struct net_device`.
    ifindex: u64,
    /// Of the pointer to its `struct net` there.
    namespace: u64,
    /// Of the inode number in `struct net`.
    inode: u64,
}

impl Offsets {
    fn read() -> Result<Self, TracepointError> {
        let types = fs::read(KERNEL_TYPES);
        let types = types.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TracepointError::Missing,
            _ => TracepointError::Types(error),
        })?;
        // To look at all types takes a hundred times as long.
        if memchr::memmem::find(&types, TRACEPOINT_TYPE).is_none() {
            return Err(TracepointError::Missing);
        }
        Self::parse(types)
    }

    fn parse(types: Vec<u8>) -> Result<Self, TracepointError> {
        let types = TypeInformation::new(&Bytes(types));
        let types = types
            .map_err(|error| TracepointError::Types(io::Error::other(format!("{error:?}"))))?;
        let offset = |of: &str, member: &str, name| {
            let id = types.id_of(of).ok_or(TracepointError::Offset(name))?;
            match types.offset_of(id, member) {
                Ok((_, Offset::ByteOffset(bytes))) => Ok(bytes.into()),
                _ => Err(TracepointError::Offset(name)),
            }
        };
        Ok(Self {
            ifindex: offset("net_device", "ifindex", "net_device.ifindex")?,
            namespace: offset("net_device", "nd_net.net", "net_device.nd_net.net")?,
            inode: offset("net", "ns.inum", "net.ns.inum")?,
        })
    }
}

struct Bytes(Vec<u8>);

impl Readable for Bytes {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> btfparse::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(buffer.len());
        let bytes = self.0.get(start..end).ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

/// Frames that tracepoints have reported.
#[derive(Clone, Debug, Default)]
pub struct TracedDrops {
    /// Those that programs are attached to.
    attached: Vec<Tracepoint>,
    frames: HashMap<u64, u64>,
}

impl TracedDrops {
    /// Reads the counts; none if no program is attached, or if they cannot be read.
    pub fn read(bpffs: &Path) -> Self {
        let pins = Pins::new(bpffs, Component::Balancer);
        let is_attached = |it: &Tracepoint| pins.tracepoint(it.name()).exists();
        let attached: Vec<_> = Tracepoint::ALL.into_iter().filter(is_attached).collect();
        if attached.is_empty() {
            return Self::default();
        }
        let frames = counts(&pins).unwrap_or_else(|error| {
            let error = error_chain::message(&error);
            tracing::debug!(error, "cannot read what tracepoints count: {error}");
            HashMap::new()
        });
        Self { attached, frames }
    }

    /// What was reported of an interface, by its index, since its tracepoint was attached first.
    pub fn of(&self, interface: u32) -> impl Iterator<Item = (Tracepoint, u64)> {
        let frames = move |it: Tracepoint| self.frames.get(&it.key(interface)).copied();
        self.attached.iter().map(move |it| (*it, frames(*it).unwrap_or(0)))
    }
}

fn counts(pins: &Pins) -> Result<HashMap<u64, u64>, maps::MapError> {
    let map = Map::from_map_data(MapData::from_pin(pins.tracepoint(TRACED_DROPS))?)?;
    let map: maps::HashMap<_, u64, u64> = map.try_into()?;
    map.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_are_none_are_refused() {
        for types in [Vec::new(), vec![0; 24], vec![0xff; 4096]] {
            assert!(matches!(Offsets::parse(types), Err(TracepointError::Types(_))));
        }
    }

    /// The kernel that runs the tests may have no tracepoints, but it has types.
    #[test]
    fn offsets_are_those_of_the_kernel() {
        let Ok(types) = fs::read(KERNEL_TYPES) else { return };
        let offsets = Offsets::parse(types).unwrap();
        let Offsets { ifindex, namespace, inode } = offsets;
        assert!(ifindex % 4 == 0 && namespace % 8 == 0 && inode % 4 == 0, "{offsets:?}");
        assert!(ifindex.max(namespace).max(inode) < 8_192, "{offsets:?}");
    }

    #[test]
    fn nothing_is_traced_without_pins() {
        let bpffs = tempfile::tempdir().unwrap();
        assert_eq!(TracedDrops::read(bpffs.path()).of(1).count(), 0);
    }
}
