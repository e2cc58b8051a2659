use std::{
    ffi::CString,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use aya::maps::{MapData, RingBuf};
use tokio::io::{Interest, unix::AsyncFd};

/// A command of `enum bpf_cmd` with its member of `union bpf_attr`, include/uapi/linux/bpf.h.
///
/// # Safety
/// The implementing type is `repr(C)` without padding and is what the kernel reads for `COMMAND`;
/// its fields that hold addresses are valid for what the kernel reads there while a call lasts.
unsafe trait Command {
    const COMMAND: libc::c_long;
}

/// The beginning of what makes a map.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    name: [u8; 16],
}

#[repr(C)]
struct ObjGet {
    path: u64,
    fd: u32,
    flags: u32,
}

/// Elements of a map, many by one call.
#[repr(C)]
struct UpdateBatch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: RawFd,
    element_flags: u64,
    flags: u64,
}

#[repr(C)]
struct LinkDetach {
    link_fd: RawFd,
}

/// What is known of an object.
#[repr(C)]
struct ObjInfo {
    fd: RawFd,
    length: u32,
    info: u64,
}

/// The beginning of `struct bpf_link_info` of a link to an interface.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    kind: u32,
    id: u32,
    program: u32,
    padding: u32,
    interface: u32,
    more: u32,
}

// SAFETY: 44 bytes without padding, of which none is an address.
unsafe impl Command for MapCreate {
    const COMMAND: libc::c_long = 0;
}

// SAFETY: 16 bytes without padding; `path` is made from a `CString` that outlives the call.
unsafe impl Command for ObjGet {
    const COMMAND: libc::c_long = 7;
}

// SAFETY: 16 bytes without padding; `info` is the address of `length` bytes to write to, which outlive the call.
unsafe impl Command for ObjInfo {
    const COMMAND: libc::c_long = 15;
}

// SAFETY: 56 bytes without padding; `keys` and `values` are made from vectors of `count` elements
// of four bytes, the key and value size of an array of maps, which outlive the call.
unsafe impl Command for UpdateBatch {
    const COMMAND: libc::c_long = 26;
}

// SAFETY: one integer.
unsafe impl Command for LinkDetach {
    const COMMAND: libc::c_long = 34;
}

fn call<C: Command>(attributes: &mut C) -> io::Result<RawFd> {
    // SAFETY: `Command` vouches for the attributes; the kernel reads `size_of::<C>()` bytes of them
    // and writes at most back into them. aya has none of these calls in its public interface.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, C::COMMAND, &raw mut *attributes, size_of::<C>()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        RawFd::try_from(result).map_err(io::Error::other)
    }
}

/// Sets many elements of an array of maps by one call, which waits for one grace period at most
/// (since 6.8 for exactly one, before that for none); an element each waits for one each.
///
/// # Errors
/// What the kernel answers, with elements before the refused one already set.
pub(crate) fn update_batch(outer: impl AsFd, elements: &[(u32, BorrowedFd<'_>)]) -> io::Result<()> {
    let keys: Vec<u32> = elements.iter().map(|(key, _)| *key).collect();
    let values: Vec<RawFd> = elements.iter().map(|(_, inner)| inner.as_raw_fd()).collect();
    call(&mut UpdateBatch {
        in_batch: 0,
        out_batch: 0,
        keys: keys.as_ptr() as u64,
        values: values.as_ptr() as u64,
        count: u32::try_from(elements.len()).map_err(io::Error::other)?,
        map_fd: outer.as_fd().as_raw_fd(),
        element_flags: 0,
        flags: 0,
    })?;
    Ok(())
}

/// Makes an array of one element with so many bytes (from Linux 6.0 on at most 2^31); aya cannot choose the size of an
/// element. The name has at most 15 bytes.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn create_array(name: &str, value_size: u32, flags: u32) -> io::Result<OwnedFd> {
    /// `BPF_MAP_TYPE_ARRAY`.
    const ARRAY: u32 = 2;
    let (map_type, key_size) = (ARRAY, size_of::<u32>() as u32);
    let mut create =
        MapCreate { map_type, key_size, value_size, max_entries: 1, flags, ..MapCreate::default() };
    create.name.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
    let fd = call(&mut create)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens a pinned link.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn open_link(pin: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(pin.as_os_str().as_bytes())?;
    let fd = call(&mut ObjGet { path: path.as_ptr() as u64, fd: 0, flags: 0 })?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Index of the interface that a link of XDP or of tc has its program on; 0: it is gone, or the link is detached.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn link_interface(link: impl AsFd) -> io::Result<u32> {
    let mut info = LinkInfo::default();
    call(&mut ObjInfo {
        fd: link.as_fd().as_raw_fd(),
        length: size_of::<LinkInfo>() as u32,
        info: &raw mut info as u64,
    })?;
    Ok(info.interface)
}

/// Detaches a link at once; the last close of a pinned link does so some time later.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn detach_link(link: impl AsFd) -> io::Result<()> {
    call(&mut LinkDetach { link_fd: link.as_fd().as_raw_fd() })?;
    Ok(())
}

/// A ring that can be waited for, in the context of a runtime.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn watched(ring: RingBuf<MapData>) -> io::Result<AsyncFd<RingBuf<MapData>>> {
    // SAFETY: the ring owns its descriptor, which stays open and the same for as long as it lives.
    let watched = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) };
    watched.map_err(Into::into)
}
