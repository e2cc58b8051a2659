//! A frame whose bounds are read again for each access: in functions with many live values the compiler spills the
//! bounds as the 32 bits that they are declared as, and the verifier then takes them for numbers.

use aya_ebpf::bindings::{__sk_buff, xdp_md};
use lb_common::wire::packet::Packet;

use super::sum;

/// The kernel's context of a packet program, with the bounds of the bytes that can be read.
pub trait Context: Sized {
    /// Where its words for that are: the first byte, and one beyond the last.
    fn ends(context: *mut Self) -> [*const u32; 2];

    /// As [`Packet::sum_up`], in a function that the kernel verifies by itself; [`sum::NONE`]: none.
    fn sum_of(context: *mut Self, offset: u32, length: u32) -> u64;
}

impl Context for xdp_md {
    #[inline(always)]
    fn ends(context: *mut Self) -> [*const u32; 2] {
        // SAFETY: the context pointer that the kernel gave is valid while the program runs.
        unsafe { [&raw const (*context).data, &raw const (*context).data_end] }
    }

    #[inline(always)]
    fn sum_of(context: *mut Self, offset: u32, length: u32) -> u64 {
        sum::sum_of(context, offset, length)
    }
}

impl Context for __sk_buff {
    #[inline(always)]
    fn ends(context: *mut Self) -> [*const u32; 2] {
        // SAFETY: as of `xdp_md`.
        unsafe { [&raw const (*context).data, &raw const (*context).data_end] }
    }

    #[inline(always)]
    fn sum_of(context: *mut Self, offset: u32, length: u32) -> u64 {
        sum::sum_of_skb(context, offset, length)
    }
}

/// A frame whose bounds are read again each time; it cannot be changed.
pub struct Revalidated<C> {
    context: *mut C,
}

impl<C: Context> Revalidated<C> {
    /// The frame of a context that a global function was handed.
    #[inline(always)]
    pub const fn new(context: *mut C) -> Self {
        Self { context }
    }

    #[inline(always)]
    fn data(&self) -> usize {
        // SAFETY: it is a word of the context.
        unsafe { C::ends(self.context)[0].read_volatile() as usize }
    }

    #[inline(always)]
    fn data_end(&self) -> usize {
        // SAFETY: as in `data`.
        unsafe { C::ends(self.context)[1].read_volatile() as usize }
    }
}

impl<C: Context> Packet for Revalidated<C> {
    #[inline(always)]
    fn bytes<const N: usize>(&self, offset: usize) -> Option<&[u8; N]> {
        let start = self.data() + offset;
        if start + N > self.data_end() {
            return None;
        }
        // SAFETY: the range was checked against the end of the packet; packet memory has no
        // alignment that a byte array would need.
        Some(unsafe { &*(start as *const [u8; N]) })
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.data_end() - self.data()
    }

    #[inline(always)]
    fn sum<const N: usize>(&self, offset: usize) -> Option<u32> {
        self.bytes::<N>(offset).map(sum::sum_of_bytes)
    }

    #[inline(always)]
    fn sum_up(&self, offset: usize, length: usize) -> Option<u32> {
        sum::sum_up(self.context, offset, length)
    }
}
