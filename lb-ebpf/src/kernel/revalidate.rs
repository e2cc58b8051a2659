//! A frame whose bounds are read again for each access: in functions with many live values the compiler spills the
//! bounds as the 32 bits that they are declared as, and the verifier then takes them for numbers.

use aya_ebpf::{
    bindings::{__sk_buff, xdp_md},
    helpers::generated::bpf_csum_diff,
};
use lb_common::wire::Packet;

use super::helpers::{global, repeat};

/// A packet program's context, with the bounds of the readable bytes.
pub trait Context: Sized {
    /// Its words that hold the bounds: the first byte, and one beyond the last.
    fn ends(context: *mut Self) -> [*const u32; 2];

    /// As [`Packet::sum_up`], in a function that the kernel verifies by itself; [`NONE`]: none.
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
        sum_of(context, offset, length)
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
        sum_of_skb(context, offset, length)
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
        self.bytes::<N>(offset).map(sum_of_bytes)
    }

    #[inline(always)]
    fn sum_up(&self, offset: usize, length: usize) -> Option<u32> {
        sum_up(self.context, offset, length)
    }
}

/// A step adds the largest piece that is left. Which one follows from the step's number alone, so that the verifier need
/// not track the other steps.
const LARGE: usize = 512;
const MIDDLE: usize = 32;
const SMALL: usize = 4;
/// Largest offset that is summed: half of what the kernel allows.
const FARTHEST: usize = 0x7fff;

/// No sum.
const NONE: u64 = u64::MAX;

struct Sum<C> {
    context: *mut C,
    offset: usize,
    length: usize,
    sum: u64,
    is_whole: bool,
}

/// Sum of `length` bytes from `offset`; `None` where the frame ends before, or they are beyond [`FARTHEST`].
#[inline(always)]
pub(super) fn sum_up<C: Context>(context: *mut C, offset: usize, length: usize) -> Option<u32> {
    let sum = C::sum_of(context, offset as u32, length as u32);
    (sum != NONE).then_some(sum as u32)
}

/// Sum of as many bytes as one call of the kernel takes: at most 512, and a multiple of four.
#[inline(always)]
pub(super) fn sum_of_bytes<const N: usize>(bytes: &[u8; N]) -> u32 {
    const { assert!(N <= LARGE && N.is_multiple_of(SMALL)) };
    let from = core::ptr::from_ref(bytes).cast_mut().cast();
    // SAFETY: the kernel reads `N` bytes from there, and nothing from where there are none.
    unsafe { bpf_csum_diff(core::ptr::null_mut(), 0, from, N as u32, 0) as u32 }
}

global! {
    /// [`sum_up`]; [`NONE`]: none.
    fn sum_of(context: *mut xdp_md, offset: u32, length: u32) -> u64 {
        sum_in_steps(context, offset as usize, length as usize)
    }

    /// The same of what tc has.
    fn sum_of_skb(context: *mut __sk_buff, offset: u32, length: u32) -> u64 {
        sum_in_steps(context, offset as usize, length as usize)
    }
}

#[inline(always)]
fn sum_in_steps<C: Context>(context: *mut C, offset: usize, length: usize) -> u64 {
    if offset > FARTHEST || length > FARTHEST || offset + length > FARTHEST {
        return NONE;
    }
    let mut sum = Sum { context, offset, length, sum: 0, is_whole: false };
    repeat(steps(length) + 1, &mut sum, step::<C>);
    if !sum.is_whole {
        return NONE;
    }
    // Carries of 32 bits are carries of 16, twice.
    let folded = (sum.sum & 0xffff_ffff) + (sum.sum >> 32);
    (folded & 0xffff_ffff) + (folded >> 32)
}

/// How many steps so many bytes take but for those that are less than a small one.
#[inline(always)]
const fn steps(length: usize) -> u32 {
    (length / LARGE + length % LARGE / MIDDLE + length % MIDDLE / SMALL) as u32
}

/// Adds some bytes; 1: the frame ends before them, or they are the last.
extern "C" fn step<C: Context>(number: u32, sum: &mut Sum<C>) -> i64 {
    i64::from(sum.add(number as usize).is_none())
}

impl<C: Context> Sum<C> {
    #[inline(always)]
    fn add(&mut self, number: usize) -> Option<()> {
        let frame = Revalidated::new(self.context);
        let (large, middle) = (self.length / LARGE, self.length % LARGE / MIDDLE);
        let small = self.length % MIDDLE / SMALL;
        let at = |in_it: usize| (self.offset + in_it) & FARTHEST;
        let sum = if number < large {
            frame.sum::<LARGE>(at(number * LARGE))?
        } else if number < large + middle {
            frame.sum::<MIDDLE>(at(large * LARGE + (number - large) * MIDDLE))?
        } else if number < large + middle + small {
            let number = number - large - middle;
            frame.sum::<SMALL>(at(large * LARGE + middle * MIDDLE + number * SMALL))?
        } else {
            let last = at(self.length & !(SMALL - 1));
            self.sum += last_bytes(&frame, last, self.length % SMALL)?;
            self.is_whole = true;
            return None;
        };
        self.sum += u64::from(sum);
        Some(())
    }
}

/// Sum of less than four bytes and zeros.
#[inline(always)]
fn last_bytes<C: Context>(frame: &Revalidated<C>, at: usize, left: usize) -> Option<u64> {
    let mut sum = 0;
    if left >= 2 {
        sum += u64::from(u16::from_ne_bytes(*frame.bytes::<2>(at)?));
    }
    if left % 2 == 1 {
        // Read together with the byte before it, which a header has: the verifier rejects the single byte.
        let [_, byte] = *frame.bytes::<2>((at + left).wrapping_sub(2) & FARTHEST)?;
        sum += u64::from(u16::from_ne_bytes([byte, 0]));
    }
    Some(sum)
}
