//! Sums of as much of a packet as one wants.

use aya_ebpf::{
    bindings::{__sk_buff, xdp_md},
    helpers::generated::bpf_csum_diff,
};
use lb_common::wire::packet::Packet as _;

use super::{Revalidated, global, repeat, revalidate::Context};

/// What a step adds: the largest piece that is left. It follows from the step's number alone, so that
/// the verifier need not know what others did.
const LARGE: usize = 512;
const MIDDLE: usize = 32;
const SMALL: usize = 4;
/// How far it looks into a packet: half as far as the kernel lets a program.
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

/// Sum of so many bytes as one call of the kernel takes: at most 512, and in fours.
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
        sum_apart(context, offset as usize, length as usize)
    }

    /// The same of what tc has.
    fn sum_of_skb(context: *mut __sk_buff, offset: u32, length: u32) -> u64 {
        sum_apart(context, offset as usize, length as usize)
    }
}

#[inline(always)]
fn sum_apart<C: Context>(context: *mut C, offset: usize, length: usize) -> u64 {
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
        // With the byte before it, which is a header's: of a single one the verifier is not convinced.
        let [_, byte] = *frame.bytes::<2>((at + left).wrapping_sub(2) & FARTHEST)?;
        sum += u64::from(u16::from_ne_bytes([byte, 0]));
    }
    Some(sum)
}
