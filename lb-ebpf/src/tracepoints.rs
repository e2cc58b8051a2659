//! Counts frames that the kernel drops after a packet program, at its tracepoints (include/trace/events/xdp.h, kernel 5.6).
//!
//! They report frames of all programs on the host. Those of interfaces of other network namespaces are left out, whose
//! numbers may be the same.

use aya_ebpf::{btf_maps::LruHashMap, macros::btf_map, programs::RawTracePointContext};
use lb_common::{
    abi::tracepoint::{MAX_TRACED, Tracepoint},
    word::Word as _,
};

use crate::kernel::{self, Device};

#[btf_map]
static TRACED_DROPS: LruHashMap<u64, u64, { MAX_TRACED as usize }> = LruHashMap::new();

/// Adds an entry only if there is none (`BPF_NOEXIST`).
const NEW: u64 = 1;

/// `xdp_exception(device, program, action)`: one frame.
#[inline(always)]
pub fn xdp_exception(context: &RawTracePointContext) -> Option<()> {
    count(Tracepoint::XdpException, Device::argument(context, 0), 1)
}

/// `xdp_redirect_err(device, program, target, error, …)`: one frame.
#[inline(always)]
pub fn xdp_redirect_err(context: &RawTracePointContext) -> Option<()> {
    count(Tracepoint::XdpRedirectErr, Device::argument(context, 0), 1)
}

/// `xdp_devmap_xmit(from, to, sent, drops, error)`: up to 16 frames, which are counted at the interface by which they were
/// to leave. The kernel reports frames that were sent as well, so that case comes first.
#[inline(always)]
pub fn xdp_devmap_xmit(context: &RawTracePointContext) -> Option<()> {
    let drops = kernel::argument(context, 3) as i32;
    if drops <= 0 {
        return None;
    }
    count(Tracepoint::XdpDevmapXmit, Device::argument(context, 1), drops as u64)
}

#[inline(always)]
fn count(tracepoint: Tracepoint, device: Device, frames: u64) -> Option<()> {
    let key = tracepoint.key(device.interface()?);
    if kernel::lru_word(&TRACED_DROPS, key).is_none() {
        // Another CPU may have been faster.
        let _added = TRACED_DROPS.insert(key, 0, NEW);
    }
    kernel::lru_word(&TRACED_DROPS, key)?.add(frames);
    Some(())
}
