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
        capture::{Capture, CaptureBuffer, MAX_SNAP, NO_CAPTURE, RING_BYTES, SampleHead},
        limiter,
    },
    capture,
    path::Tables as _,
    wire::Packet as _,
};

use super::{emit::Disposition, maps::Maps, subprograms};
use crate::kernel::{self, Frame};

#[btf_map]
static CAPTURE_BUFFER: PerCpuArray<CaptureBuffer, 1> = PerCpuArray::new();
#[btf_map]
/// Without a value type: with one, libbpf requires a value size, and ring buffers have none.
static SAMPLES: RingBuf<(), { RING_BYTES as usize }> = RingBuf::new();

/// Captures a frame as it came, if it matches the capture's addresses and ports.
#[inline(never)]
pub(super) fn before(context: &XdpContext) {
    let frame = Frame::in_subprogram(context);
    let (now, capture) = (kernel::exact_time(), kernel::capture());
    if now >= capture.until {
        // The daemon renews the deadline every second, so it is gone.
        kernel::end_capture();
    }
    let is_wanted = now < capture.until && capture::matches(&capture, &frame);
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        let number = if is_wanted { capture.number } else { NO_CAPTURE };
        buffer.head = SampleHead { number, ..SampleHead::default() };
        if is_wanted {
            buffer.head.time = now;
            buffer.head.interface = frame.interface();
            buffer.head.length = frame.length() as u32;
            buffer.head.captured = kernel::copy_frame(buffer, &frame, 0, snap(&capture));
        }
    });
}

/// Records the frame's backend, and the interface that it would leave by.
#[inline(always)]
pub(super) fn note_choice(backend: u32, interface: u32) {
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
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
    let capture = kernel::capture();
    kernel::per_cpu(&CAPTURE_BUFFER, 0, |buffer| {
        // Reset, because nothing may be recorded of the next packet.
        let number = core::mem::replace(&mut buffer.head.number, NO_CAPTURE);
        if number == NO_CAPTURE || number != capture.number || !buffer.is_wanted(&capture, ended) {
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
        buffer.head.number = number;
        buffer.leaves(&frame, &capture, ended);
        let bytes = buffer.head.captured + buffer.head.left_captured;
        if !kernel::send_sample(&SAMPLES, buffer, bytes) {
            buffer.counted.lost += 1;
        }
        buffer.head.number = NO_CAPTURE;
    });
}

trait CaptureActions {
    fn is_wanted(&mut self, capture: &Capture, ended: Disposition) -> bool;
    fn leaves(&mut self, frame: &Frame<'_>, capture: &Capture, ended: Disposition);
}

impl CaptureActions for CaptureBuffer {
    /// Whether its verdict and backend match the capture.
    #[inline(always)]
    fn is_wanted(&mut self, capture: &Capture, ended: Disposition) -> bool {
        self.head.verdict = ended.verdict();
        capture.verdicts >> self.head.verdict & 1 != 0 && capture.backend.has(&self.head.backend)
    }

    /// Records the frame as it leaves, if it does.
    #[inline(always)]
    fn leaves(&mut self, frame: &Frame<'_>, capture: &Capture, ended: Disposition) {
        if ended.leaves() {
            self.head.left_length = frame.length() as u32;
            self.head.left_captured =
                kernel::copy_frame(self, frame, self.head.captured, snap(capture));
        }
    }
}

#[inline(always)]
fn snap(capture: &Capture) -> u32 {
    capture.snap.min(MAX_SNAP)
}
