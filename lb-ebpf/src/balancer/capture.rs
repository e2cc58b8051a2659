//! What a capture sees: a frame as it came, and as it leaves once its verdict is known.
//!
//! While no capture runs, a packet of the fast path pays one load of a word that nothing writes meanwhile.

use aya_ebpf::{
    btf_maps::{PerCpuArray, RingBuf},
    macros::btf_map,
    programs::XdpContext,
};
use lb_common::{
    abi::{
        capture::{CaptureBuffer, RING_BYTES, SAMPLE_BYTES, SampleHead},
        limiter,
    },
    capture,
    path::Tables as _,
    wire::Packet as _,
};

use super::{emit::Disposition, maps::Maps, subprograms};
use crate::kernel::{self, Frame, LiveCapture};

#[btf_map]
static CAPTURE_BUFFER: PerCpuArray<CaptureBuffer, 1> = PerCpuArray::new();
#[btf_map]
/// Without a value type: with one, libbpf requires a value size, and ring buffers have none.
static SAMPLES: RingBuf<(), { RING_BYTES as usize }> = RingBuf::new();

/// Whether a frame is of the capture, by its addresses and ports.
#[inline(always)]
pub(super) fn matches(context: &XdpContext) -> bool {
    if kernel::now() >= LiveCapture.until() {
        // The daemon renews the deadline every second, so it is gone.
        kernel::end_capture();
        return false;
    }
    capture::matches(&LiveCapture, &Frame::new(context))
}

/// Copies a frame that matches as it came, if the ring has room.
#[inline(always)]
pub(super) fn before(context: &XdpContext) {
    let frame = Frame::new(context);
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        // Zeros that the compiler does not know, because it would set known ones by a call.
        let zero = kernel::opaque(0);
        let zero_32 = zero as u32;
        buffer.head = SampleHead {
            time: zero,
            number: LiveCapture.number(),
            backend: [zero_32; 4],
            backend_version: zero_32,
            verdict: zero_32,
            interface: frame.interface(),
            length: frame.length() as u32,
            captured: zero_32,
            left_length: zero_32,
            left_captured: zero_32,
            left_by: zero_32,
        };
        buffer.backend = NO_BACKEND;
        if has_room() {
            buffer.head.time = kernel::exact_time();
            buffer.head.captured = kernel::copy_frame(buffer, &frame, 0, LiveCapture.snap());
        }
    });
}

/// No backend was chosen: no array has so many elements.
const NO_BACKEND: u64 = u32::MAX as u64;

/// Whether the ring has room for the largest sample. A packet for which it has none is only counted.
#[inline(always)]
fn has_room() -> bool {
    const MOST: u64 = (size_of::<SampleHead>() + SAMPLE_BYTES + RING_HEADER) as u64;
    kernel::waiting_bytes(&SAMPLES) + MOST <= u64::from(RING_BYTES)
}

/// What the kernel puts before each sample in the ring, bytes (`BPF_RINGBUF_HDR_SZ`, include/uapi/linux/bpf.h).
const RING_HEADER: usize = 8;

/// Records the index of the frame's backend, and the interface that it would leave by.
#[inline(always)]
pub(super) fn note_choice(backend: u32, interface: u32) {
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        buffer.backend = backend.into();
        buffer.head.left_by = interface;
    });
}

/// Records the frame's verdict and the frame as it leaves, and sends the sample to the daemon.
#[inline(always)]
pub(super) fn after(context: &XdpContext, ended: u64) {
    let (ended, frame) = (Disposition(ended as u32), Frame::in_subprogram(context));
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        // Without a time the ring had no room when the packet came.
        let is_copied = buffer.head.time != 0;
        if is_copied || !LiveCapture.backend().is_any() {
            buffer.add_backend();
        }
        if !buffer.is_wanted(ended) {
            return;
        }
        buffer.counted.matched += 1;
        if !is_copied {
            // A sample that is lost does not count against the rate.
            buffer.counted.lost += 1;
            return;
        }
        if subprograms::debit(limiter::SAMPLES, kernel::now()) == 0 {
            buffer.counted.left_out += 1;
            return;
        }
        if ended.is_sent_back() {
            // An answer does not leave by the interface that the packet would have left by.
            buffer.head.left_by = 0;
        }
        buffer.leaves(&frame, ended);
        let bytes = buffer.head.captured + buffer.head.left_captured;
        if !kernel::send_sample(&SAMPLES, buffer, bytes) {
            buffer.counted.lost += 1;
        }
    });
}

trait CaptureActions {
    fn add_backend(&mut self);
    fn is_wanted(&mut self, ended: Disposition) -> bool;
    fn leaves(&mut self, frame: &Frame<'_>, ended: Disposition);
}

impl CaptureActions for CaptureBuffer {
    /// Adds the address of the backend that was chosen, if one was.
    #[inline(always)]
    fn add_backend(&mut self) {
        if let Some(maps) = Maps::open()
            && let Some(backend) = maps.backend(self.backend as u32)
        {
            self.head.backend = backend.address;
            self.head.backend_version = u32::from(backend.version);
        }
    }

    /// Whether its capture is still the one that runs, and its verdict and backend match.
    #[inline(always)]
    fn is_wanted(&mut self, ended: Disposition) -> bool {
        self.head.verdict = ended.verdict();
        self.head.number == LiveCapture.number()
            && LiveCapture.verdicts() >> self.head.verdict & 1 != 0
            && LiveCapture.backend().has(&self.head.backend)
    }

    /// Records the frame as it leaves, if it does.
    #[inline(always)]
    fn leaves(&mut self, frame: &Frame<'_>, ended: Disposition) {
        if ended.leaves() {
            self.head.left_length = frame.length() as u32;
            self.head.left_captured =
                kernel::copy_frame(self, frame, self.head.captured, LiveCapture.snap());
        }
    }
}
