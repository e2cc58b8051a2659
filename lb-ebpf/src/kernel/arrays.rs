//! The balancer's arrays: regions of one map's value. Words may change at any time, so they are read once, volatile.
//! Structs are immutable once published.

use core::cell::UnsafeCell;

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array as Map, macros::btf_map};
use lb_common::abi::{
    arrays::{Array, ArrayLayout, LAYOUT_NUMBERS, Region},
    pod::Pod,
};

use super::{SharedWord, opaque};

/// Words of the map if the loader sets no other size.
const WORDS: usize = ArrayLayout::DEFAULT.bytes() as usize / size_of::<u64>();

/// The daemon maps it into its memory, so it publishes a word by one store.
#[btf_map]
static ARRAYS: Map<[u64; WORDS], 1, { BPF_F_MMAPABLE as usize }> = Map::new();

/// Where each array is; the loader sets it. The verifier knows the numbers, because the kernel freezes them. (A cell, so
/// the compiler does not know them, but may read one once for several look-ups.)
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.arrays")]
static ARRAY_LAYOUT: Layout = Layout(UnsafeCell::new(ArrayLayout::DEFAULT.numbers()));

#[repr(transparent)]
struct Layout(UnsafeCell<[u32; LAYOUT_NUMBERS]>);

// SAFETY: nothing writes it while a program runs.
unsafe impl Sync for Layout {}

/// The arrays.
#[derive(Clone, Copy)]
pub struct Arrays(*mut u8);

impl Arrays {
    /// Looks them up. They are always there, but the verifier does not know.
    #[inline(always)]
    pub fn open() -> Option<Self> {
        ARRAYS.get_ptr_mut(0).map(|start| Self(start.cast()))
    }

    /// An element, as words.
    #[inline(always)]
    fn element_words(self, array: Array, index: u32) -> Option<*mut u64> {
        let region = region(array);
        // Hidden before the check and after it: otherwise the compiler checks a copy or computes the address first,
        // and the verifier does not see that the address is in bounds.
        let index = opaque(u64::from(index));
        if index >= u64::from(region.entries) {
            return None;
        }
        let offset = opaque(index) * u64::from(array.element_bytes());
        // SAFETY: the element is in the map's value, as the verifier sees.
        Some(unsafe { self.0.add(region.start as usize).add(offset as usize).cast() })
    }

    /// A word that the daemon changes in place.
    #[inline(always)]
    pub fn word(self, array: Array, index: u32) -> Option<u64> {
        // SAFETY: the pointer is to a live, aligned array element; one volatile 8-byte load.
        self.element_words(array, index).map(|word| unsafe { word.read_volatile() })
    }

    /// Some words of an element, by their places in it; each is one load.
    #[inline(always)]
    pub fn words<const W: usize>(
        self,
        array: Array,
        index: u32,
        places: [usize; W],
    ) -> Option<[u64; W]> {
        let first = self.element_words(array, index)?;
        Some(places.map(|place| {
            // The verifier checks that each caller stays within the map.
            // SAFETY: the pointer is to a live, aligned array element; one volatile 8-byte load.
            unsafe { first.add(place).read_volatile() }
        }))
    }

    /// Stores words of an element, one after the other.
    #[inline(always)]
    pub fn store_words<const W: usize>(self, array: Array, index: u32, words: [(usize, u64); W]) {
        if let Some(first) = self.element_words(array, index) {
            for (place, word) in words {
                // SAFETY: as in `words`, a store.
                unsafe { first.add(place).write_volatile(word) }
            }
        }
    }

    /// A word of an element, to change in place.
    #[inline(always)]
    pub fn shared_word(self, array: Array, index: u32, place: usize) -> Option<SharedWord> {
        // SAFETY: the verifier holds the place to the map's size.
        self.element_words(array, index).map(|first| SharedWord(unsafe { first.add(place) }))
    }

    /// An element of an array of immutable values.
    #[inline(always)]
    pub fn element<T: Pod>(&self, array: Array, index: u32) -> Option<&T> {
        // SAFETY: the pointer is to a live, aligned array element, of which every bit pattern is valid.
        self.element_words(array, index).map(|words| unsafe { &*words.cast::<T>() })
    }
}

/// Where an array is.
#[inline(always)]
fn region(array: Array) -> Region {
    if let Some(region) = array.fixed_region() {
        return region;
    }
    // SAFETY: each array has two numbers, which nothing writes while a program runs.
    unsafe {
        let first = ARRAY_LAYOUT.0.get().cast::<u32>().add(2 * array as usize);
        Region { start: first.read(), entries: first.add(1).read() }
    }
}
