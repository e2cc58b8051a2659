//! What the fast path leaves to the slow path, which is a program of its own: in memory, because a jump keeps no stack.

use aya_ebpf::{
    btf_maps::{PerCpuArray, ProgramArray},
    macros::btf_map,
    programs::XdpContext,
};
use lb_common::path::{Deferred, Query};

use crate::kernel;

#[btf_map]
static DEFERRED: PerCpuArray<Deferred, 1> = PerCpuArray::new();

/// The slow path. The loader puts it there.
#[btf_map]
static SLOW_PATH: ProgramArray<1> = ProgramArray::new();

/// Sets why a frame is deferred ([`super::emit::DEFERRED`] and the like), and whether it is captured.
#[inline(always)]
pub(super) fn set_reason(reason: u32, is_captured: bool) {
    kernel::per_cpu(&DEFERRED, 0, |deferred| {
        deferred.reason = reason;
        deferred.is_captured = is_captured.into();
    });
}

/// Whether the frame that was deferred is captured.
#[inline(always)]
pub(super) fn is_captured() -> bool {
    kernel::is_captured() && get().is_some_and(|deferred| deferred.is_captured != 0)
}

/// Defers a query.
#[inline(always)]
pub(super) fn set_query(query: &Query) {
    kernel::per_cpu(&DEFERRED, 0, |deferred| deferred.query = *query);
}

/// Defers a frame that is too large for its backend, where packets of at most `room` bytes fit.
#[inline(always)]
pub(super) fn set_room(room: u16) {
    kernel::per_cpu(&DEFERRED, 0, |deferred| deferred.room = room.into());
}

/// What is deferred.
#[inline(always)]
pub(super) fn get() -> Option<&'static Deferred> {
    kernel::own_element(&DEFERRED)
}

/// Goes on with the slow path. Returns only if it is not there.
#[inline(always)]
pub(super) fn run_slow_path(context: &XdpContext) {
    kernel::tail_call(&SLOW_PATH, context, 0);
}
