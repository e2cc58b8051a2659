//! What a capture needs of the kernel: the word that turns it on, copies of frames, the ring.

use core::{cell::UnsafeCell, mem::offset_of};

use aya_ebpf::{
    bindings::BPF_RB_AVAIL_DATA,
    btf_maps::RingBuf,
    helpers::generated::{
        bpf_ktime_get_ns, bpf_ringbuf_output, bpf_ringbuf_query, bpf_xdp_load_bytes,
    },
};
use lb_common::{
    abi::{
        capture::{Capture, CaptureBuffer, Ends, MAX_SNAP, Prefix, SAMPLE_BYTES, SampleHead},
        clock::Nanoseconds,
    },
    capture::Filter,
};

use super::{Frame, opaque};

/// Read volatile, because the daemon writes it. In a section of its own, because that makes it a map whose memory needs no
/// look-up: every packet reads its first word.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".data.capture")]
static CAPTURE: Shared = Shared(UnsafeCell::new(WORDS_OF_NONE));

const WORDS: usize = size_of::<Capture>() / size_of::<u64>();
const WORDS_OF_NONE: [u64; WORDS] = [0; WORDS];
const _: () = assert!(WORDS * size_of::<u64>() == size_of::<Capture>());
const _: () = assert!(offset_of!(Capture, until) == 0);

#[repr(transparent)]
struct Shared(UnsafeCell<[u64; WORDS]>);

// SAFETY: it is read and written word by word, volatile.
unsafe impl Sync for Shared {}

/// Whether a capture runs; one load.
#[inline(always)]
pub fn is_captured() -> bool {
    // SAFETY: the word is live and aligned; one volatile 8-byte load.
    unsafe { CAPTURE.0.get().cast::<u64>().read_volatile() != 0 }
}

/// The capture. Each field is read when it is asked for, because most packets are told by the first one or two.
pub struct LiveCapture;

/// Reads a field; all of it is words that the daemon may write meanwhile.
macro_rules! field {
    ($name:ident) => {{
        let capture = CAPTURE.0.get().cast::<Capture>();
        // SAFETY: the field is live and aligned, every bit pattern of it is valid, and it is read volatile.
        unsafe { (&raw const (*capture).$name).read_volatile() }
    }};
}

impl LiveCapture {
    #[inline(always)]
    pub fn until(&self) -> Nanoseconds {
        field!(until)
    }

    #[inline(always)]
    pub fn number(&self) -> u64 {
        field!(number)
    }

    #[inline(always)]
    pub fn verdicts(&self) -> u64 {
        field!(verdicts)
    }

    #[inline(always)]
    pub fn backend(&self) -> Prefix {
        field!(backend)
    }

    /// Bytes of a frame to capture.
    #[inline(always)]
    pub fn snap(&self) -> u32 {
        field!(snap).min(MAX_SNAP)
    }
}

impl Filter for LiveCapture {
    #[inline(always)]
    fn version(&self) -> u8 {
        field!(version)
    }
    #[inline(always)]
    fn client(&self) -> Prefix {
        field!(client)
    }
    #[inline(always)]
    fn vip(&self) -> Prefix {
        field!(vip)
    }
    #[inline(always)]
    fn port(&self) -> u16 {
        field!(port)
    }
    #[inline(always)]
    fn except(&self) -> Ends {
        field!(except)
    }
}

/// Ends the capture, whose deadline has expired.
#[inline(always)]
pub fn end_capture() {
    // SAFETY: the word is live and aligned; one volatile 8-byte store.
    unsafe { CAPTURE.0.get().cast::<u64>().write_volatile(0) }
}

/// The exact monotonic clock; it costs 30 ns.
#[inline(always)]
pub fn exact_time() -> Nanoseconds {
    // SAFETY: the helper takes nothing and touches nothing.
    unsafe { bpf_ktime_get_ns() }
}

/// The mask of where the second frame begins, and of how much more than a byte is copied.
const PLACE: u64 = SAMPLE_BYTES as u64 / 2 - 1;

/// Copies the first bytes of a frame, at most `snap`, to the buffer behind `at` others and returns how many
/// (`bpf_xdp_load_bytes`, kernel 5.18).
#[inline(always)]
pub fn copy_frame(buffer: &mut CaptureBuffer, frame: &Frame<'_>, at: u32, snap: u32) -> u32 {
    use lb_common::wire::Packet as _;
    let length = (frame.length() as u64).min(u64::from(snap));
    if length == 0 {
        return 0;
    }
    // The masks show the verifier that both ends are inside the buffer; they change neither number.
    let at = opaque(u64::from(at)) & PLACE;
    let length = (opaque(length.wrapping_sub(1)) & PLACE) + 1;
    // SAFETY: the place is within the bytes; the kernel writes `length` bytes there or none, which
    // the verifier holds to the map value's end.
    let copied = unsafe {
        let to = buffer.bytes.as_mut_ptr().add(at as usize);
        bpf_xdp_load_bytes(frame.context(), 0, to.cast(), length as u32)
    };
    if copied == 0 { length as u32 } else { 0 }
}

/// Bytes in the ring that wait for the daemon (`bpf_ringbuf_query`, kernel 5.8).
#[inline(always)]
pub fn waiting_bytes<const N: usize>(ring: &RingBuf<(), N>) -> u64 {
    // SAFETY: the helper reads the ring's positions.
    unsafe {
        bpf_ringbuf_query(core::ptr::from_ref(ring).cast_mut().cast(), BPF_RB_AVAIL_DATA.into())
    }
}

/// Puts the buffer's head and `bytes` bytes of its frames into the ring; false where it is full.
#[inline(always)]
#[must_use]
pub fn send_sample<const N: usize>(
    ring: &RingBuf<(), N>,
    buffer: &mut CaptureBuffer,
    bytes: u32,
) -> bool {
    const { assert!(offset_of!(CaptureBuffer, bytes) == offset_of!(CaptureBuffer, head) + HEAD) }
    const HEAD: usize = size_of::<SampleHead>();
    let size = HEAD as u64 + (opaque(u64::from(bytes)) & (SAMPLE_BYTES as u64 - 1));
    let first = core::ptr::from_mut(buffer);
    // SAFETY: the frames' bytes follow the head in the buffer; the kernel reads `size` bytes from there,
    // which the verifier holds to the map value's end.
    unsafe {
        let head = first.cast::<u8>().add(offset_of!(CaptureBuffer, head));
        bpf_ringbuf_output(core::ptr::from_ref(ring).cast_mut().cast(), head.cast(), size, 0) == 0
    }
}
