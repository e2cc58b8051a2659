//! What a capture sees: a frame as it came, and as it leaves once its verdict is known.
//!
//! While no capture runs, a packet pays three loads of one word (four if it is tagged) that nothing writes meanwhile.

use aya_ebpf::{
    btf_maps::{PerCpuArray, RingBuf},
    macros::btf_map,
    programs::XdpContext,
};
use lb_common::{
    abi::{
        capture::{CaptureBuffer, NO_CAPTURE, RING_BYTES, SAMPLE_BYTES, SampleHead},
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

/// Notes whether a frame matches the capture's addresses and ports, and copies it as it came if the ring has room.
#[inline(never)]
pub(super) fn before(context: &XdpContext) {
    let frame = Frame::in_subprogram(context);
    if Maps.now() >= LiveCapture.until() {
        // The daemon renews the deadline every second, so it is gone.
        kernel::end_capture();
    }
    let is_wanted = kernel::is_captured() && capture::matches(&LiveCapture, &frame);
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        if is_wanted {
            let number = LiveCapture.number();
            buffer.head = SampleHead { number, ..SampleHead::default() };
            buffer.head.interface = frame.interface();
            buffer.head.length = frame.length() as u32;
            if has_room() {
                buffer.head.time = kernel::exact_time();
                buffer.head.captured = kernel::copy_frame(buffer, &frame, 0, LiveCapture.snap());
            }
        } else {
            buffer.head.number = NO_CAPTURE;
        }
    });
}

/// Whether [`before`] found that the frame matches. (Remembered in memory: if it were in a register, the verifier would
/// explore all that comes between once for each value.)
#[inline(always)]
pub(super) fn is_noted() -> bool {
    let mut is_noted = false;
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| is_noted = buffer.head.number != NO_CAPTURE);
    is_noted
}

/// Whether the ring has room for the largest sample. A packet for which it has none is only counted.
#[inline(always)]
fn has_room() -> bool {
    const MOST: u64 = (size_of::<SampleHead>() + SAMPLE_BYTES + RING_HEADER) as u64;
    kernel::waiting_bytes(&SAMPLES) + MOST <= u64::from(RING_BYTES)
}

/// What the kernel puts before each sample in the ring, bytes (`BPF_RINGBUF_HDR_SZ`, include/uapi/linux/bpf.h).
const RING_HEADER: usize = 8;

/// Records the frame's backend, and the interface that it would leave by.
#[inline(always)]
pub(super) fn note_choice(backend: u32, interface: u32) {
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        if buffer.head.number == NO_CAPTURE {
            return;
        }
        buffer.head.left_by = interface;
        if let Some(backend) = Maps.backend(backend) {
            buffer.head.backend = backend.address;
            buffer.head.backend_version = u32::from(backend.version);
        }
    });
}

/// Records the frame's verdict and the frame as it leaves, and sends the sample to the daemon.
#[inline(never)]
pub(super) fn after(context: &XdpContext, ended: u64) {
    let (ended, frame) = (Disposition(ended as u32), Frame::in_subprogram(context));
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        // Reset, because nothing may be recorded of the next packet.
        let number = core::mem::replace(&mut buffer.head.number, NO_CAPTURE);
        if number != LiveCapture.number() || !buffer.is_wanted(ended) {
            return;
        }
        if ended.is_sent_back() {
            // An answer does not leave by the interface that the packet would have left by.
            buffer.head.left_by = 0;
        }
        buffer.counted.matched += 1;
        if subprograms::debit(limiter::SAMPLES, Maps.now()) == 0 {
            buffer.counted.left_out += 1;
            return;
        }
        // Without a time the ring had no room when the packet came.
        let is_copied = buffer.head.time != 0;
        if is_copied {
            buffer.head.number = number;
            buffer.leaves(&frame, ended);
        }
        let bytes = buffer.head.captured + buffer.head.left_captured;
        if !is_copied || !kernel::send_sample(&SAMPLES, buffer, bytes) {
            buffer.counted.lost += 1;
        }
        buffer.head.number = NO_CAPTURE;
    });
}

trait CaptureActions {
    fn is_wanted(&mut self, ended: Disposition) -> bool;
    fn leaves(&mut self, frame: &Frame<'_>, ended: Disposition);
}

impl CaptureActions for CaptureBuffer {
    /// Whether its verdict and backend match the capture.
    #[inline(always)]
    fn is_wanted(&mut self, ended: Disposition) -> bool {
        self.head.verdict = ended.verdict();
        LiveCapture.verdicts() >> self.head.verdict & 1 != 0
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
