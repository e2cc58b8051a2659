//! The one place of this crate with unsafe code: plain-old-data views of the map values.
#![allow(unsafe_code)]

use crate::path::Deferred;

use super::{
    backend::Backend,
    capture::{Capture, CaptureBuffer, SampleHead},
    counter::{GroupCounter, TrafficCounter, VerdictCounter},
    flow_map::FlowHead,
    form::ProbeRoute,
    limiter::Limiter,
    next_hop::NextHopEntry,
    pool::{Descriptor, Group, PoolLine},
    service::{Service, ServiceKey, SourcePrefix, VipKey},
    zone::Zone,
};

/// A map key or value: `repr(C)`, without padding, valid for every bit pattern.
///
/// # Safety
/// The implementing type has no padding bytes, no references, and no invalid bit patterns.
pub unsafe trait Pod: Copy + 'static {}

macro_rules! pod {
    ($($name:ty = $size:literal),+ $(,)?) => {$(
        const _: () = assert!(size_of::<$name>() == $size, "a size in the map ABI changed");
        // SAFETY: `repr(C)`, integers and arrays of integers only; the size above equals the sum
        // of the fields' sizes, so there is no padding.
        unsafe impl Pod for $name {}
    )+};
}

pod!(
    u32 = 4,
    u64 = 8,
    ServiceKey = 20,
    Service = 32,
    Descriptor = 128,
    Group = 32,
    Backend = 32,
    NextHopEntry = 32,
    VerdictCounter = 16,
    TrafficCounter = 24,
    GroupCounter = 48,
    PoolLine = 32,
    Limiter = 64,
    FlowHead = 64,
    Zone = 16,
    [u64; 2] = 16,
    [u64; 5] = 40,
    SourcePrefix = 20,
    VipKey = 20,
    ProbeRoute = 48,
    Capture = 168,
    SampleHead = 64,
    CaptureBuffer = 4_192,
    Deferred = 120,
);

/// The bytes of a value, as the kernel sees them.
pub fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: `Pod` has no padding, so every byte is initialised; the lifetime is the value's.
    unsafe { core::slice::from_raw_parts(core::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) }
}

/// A value from its bytes, or `None` where the length differs.
pub fn from_bytes<T: Pod>(bytes: &[u8]) -> Option<T> {
    if bytes.len() != size_of::<T>() {
        return None;
    }
    // SAFETY: the length was checked, `Pod` is valid for every bit pattern, the read is unaligned.
    Some(unsafe { core::ptr::read_unaligned(bytes.as_ptr().cast::<T>()) })
}
