//! The only pointer arithmetic on packets.

use aya_ebpf::{
    bindings::xdp_md,
    helpers::generated::{bpf_xdp_adjust_head, bpf_xdp_adjust_tail},
    programs::XdpContext,
};
use lb_common::wire::{Packet, vlan::Tags};

use super::{hide_constant, opaque, revalidate};

/// A frame in the driver's buffer. Views of it must not outlive [`Frame::grow`] or [`Frame::shrink`]. The borrow checker
/// ensures that, because both borrow the frame mutably.
pub struct Frame<'c> {
    context: &'c XdpContext,
}

impl<'c> Frame<'c> {
    /// The frame of a context.
    #[inline(always)]
    pub const fn new(context: &'c XdpContext) -> Self {
        Self { context }
    }

    /// The frame of a context that was passed to a function which is not inlined. Hides the pointer from the compiler,
    /// which would otherwise let the caller read the context and pass the bounds as numbers, in which the verifier does
    /// not recognise packet pointers.
    #[inline(always)]
    pub fn in_subprogram(context: &'c XdpContext) -> Self {
        let address = opaque(core::ptr::from_ref(context).expose_provenance() as u64);
        let pointer = core::ptr::with_exposed_provenance::<XdpContext>(address as usize);
        // SAFETY: it is the pointer of the reference, for as long as that lives.
        Self::new(unsafe { &*pointer })
    }

    /// The kernel's own context, for functions that are verified by themselves.
    #[inline(always)]
    pub const fn context(&self) -> *mut xdp_md {
        self.context.ctx
    }

    /// Index of the interface it came in on.
    #[inline(always)]
    pub fn interface(&self) -> u32 {
        // SAFETY: the context pointer that the kernel gave is valid while the program runs.
        unsafe { (*self.context.ctx).ingress_ifindex }
    }

    /// `N` bytes from `offset` to write to, or `None` where the frame ends before.
    #[inline(always)]
    pub fn bytes_mut<const N: usize>(&mut self, offset: usize) -> Option<&mut [u8; N]> {
        let start = self.context.data() + offset;
        if start + N > self.context.data_end() {
            return None;
        }
        // SAFETY: the range was checked against the end of the packet; `&mut self` excludes views.
        Some(unsafe { &mut *(start as *mut [u8; N]) })
    }

    /// Makes room of `by` bytes in front; false where the driver has none.
    #[inline(always)]
    #[must_use]
    pub fn grow(&mut self, by: usize) -> bool {
        self.adjust(-(by as i32))
    }

    /// Takes all but `length` bytes off the end; false where the frame is shorter.
    #[inline(always)]
    #[must_use]
    pub fn truncate(&mut self, length: usize) -> bool {
        // Hidden, because the compiler adds the length to the packet's start otherwise, which the verifier forbids.
        let beyond = (opaque(self.length() as u64) as usize).wrapping_sub(length) as i32;
        // SAFETY: the context is the kernel's; no view of the packet is alive.
        beyond >= 0 && unsafe { bpf_xdp_adjust_tail(self.context.ctx, -beyond) == 0 }
    }

    /// Takes `by` bytes off the front; false where the frame is shorter.
    #[inline(always)]
    #[must_use]
    pub fn shrink(&mut self, by: usize) -> bool {
        self.adjust(by as i32)
    }

    /// Takes the outermost VLAN tags off, two at most, and returns them; [`Tags::NONE`] if there are none.
    #[inline(always)]
    pub fn untag(&mut self) -> Tags {
        let tags = Tags::read(self);
        let Some(macs) = self.bytes(0).map(Macs::from_bytes) else { return Tags::NONE };
        if tags.is_none() {
            return tags;
        }
        let moved =
            if tags.is_pair() { self.bytes_mut::<MACS>(8) } else { self.bytes_mut::<MACS>(4) };
        let Some(place) = moved else { return Tags::NONE };
        macs.put(place);
        let shrunk = if tags.is_pair() { self.shrink(8) } else { self.shrink(4) };
        if shrunk { tags } else { Tags::NONE }
    }

    /// Puts VLAN tags on; false where the driver has no room for them. A function of its own, because untagged frames do
    /// not need it.
    #[must_use]
    pub fn tag(&mut self, tags: Tags) -> bool {
        put_tags(self.context, tags.0) != 0
    }

    #[inline(always)]
    fn adjust(&mut self, by: i32) -> bool {
        // SAFETY: the context is the kernel's; no view of the packet is alive.
        unsafe { bpf_xdp_adjust_head(self.context.ctx, by) == 0 }
    }
}

/// Length of the two MACs of a frame, bytes.
const MACS: usize = 12;

/// The MACs of a frame, as words: the compiler would move overlapping bytes one by one.
struct Macs([u32; 3]);

impl Macs {
    #[inline(always)]
    fn from_bytes(bytes: &[u8; MACS]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        Self([[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_ne_bytes))
    }

    #[inline(always)]
    fn put(&self, to: &mut [u8; MACS]) {
        let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] = self.0.map(u32::to_ne_bytes);
        *to = [a, b, c, d, e, f, g, h, i, j, k, l];
    }
}

/// [`Frame::tag`]; 0: no.
#[inline(never)]
fn put_tags(context: &XdpContext, tags: u64) -> u32 {
    let (mut frame, tags) = (Frame::in_subprogram(context), Tags(tags));
    let done = if tags.is_pair() {
        put::<8, { MACS + 8 }>(&mut frame, tags)
    } else {
        put::<4, { MACS + 4 }>(&mut frame, tags)
    };
    u32::from(done.is_some())
}

/// Puts the first `N` bytes of tags behind the MACs.
#[inline(always)]
fn put<const N: usize, const ALL: usize>(frame: &mut Frame<'_>, tags: Tags) -> Option<()> {
    if !frame.grow(N) {
        return None;
    }
    let macs = Macs::from_bytes(frame.bytes(N)?);
    let bytes = tags.bytes();
    let head = frame.bytes_mut::<ALL>(0)?;
    macs.put(head.first_chunk_mut()?);
    *head.last_chunk_mut::<N>()? = *bytes.first_chunk()?;
    Some(())
}

impl Packet for Frame<'_> {
    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: usize) -> Option<&[u8; N]> {
        let start = self.context.data() + offset;
        if start + N > self.context.data_end() {
            return None;
        }
        // SAFETY: the range was checked against the end of the packet; packet memory has no
        // alignment that a byte array would need.
        Some(unsafe { &*(start as *const [u8; N]) })
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.context.data_end() - self.context.data()
    }

    #[inline(always)]
    fn sum<const N: usize>(&self, offset: usize) -> Option<u32> {
        self.bytes::<N>(offset).map(revalidate::sum_of_bytes)
    }

    #[inline(always)]
    fn sum_up(&self, offset: usize, length: usize) -> Option<u32> {
        revalidate::sum_up(self.context.ctx, offset, length)
    }

    #[inline(always)]
    fn hide_constant(&self, number: u64) -> u64 {
        hide_constant(number)
    }
}
