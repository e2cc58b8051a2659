//! Map memory. Words change under the reader and are read once, volatile; structs are immutable
//! once published; hash values may be reused under the reader, who checks the key they repeat.

use aya_ebpf::btf_maps::{Array, ArrayOfMaps, HashMap, PerCpuArray};
use lb_common::abi::pod::Pod;

/// A word of an array that the daemon changes in place.
#[inline(always)]
pub fn word<const N: usize, const F: usize>(map: &Array<u64, N, F>, index: u32) -> Option<u64> {
    // SAFETY: the pointer is to a live, aligned array element; one volatile 8-byte load.
    map.get_ptr(index).map(|word| unsafe { word.read_volatile() })
}

/// Stores a word of an array that only this program writes.
#[inline(always)]
pub fn store<const N: usize, const F: usize>(map: &Array<u64, N, F>, index: u32, value: u64) {
    if let Some(word) = map.get_ptr_mut(index) {
        // SAFETY: the pointer is to a live, aligned array element; one volatile 8-byte store.
        unsafe { word.write_volatile(value) }
    }
}

/// An element of an array of immutable values.
#[inline(always)]
pub fn element<T: Pod, const N: usize, const F: usize>(
    map: &Array<T, N, F>,
    index: u32,
) -> Option<&T> {
    map.get(index)
}

/// A word of an inner array.
#[inline(always)]
pub fn table_word<const S: usize, const G: usize, const N: usize, const F: usize>(
    map: &ArrayOfMaps<Array<u64, S, G>, N, F>,
    table: u32,
    index: u32,
) -> Option<u64> {
    let word = map.get_value_ptr_mut(table, &index)?;
    // SAFETY: the pointer is to a live, aligned array element; one volatile 8-byte load.
    Some(unsafe { word.read_volatile() })
}

/// A value of a hash map, by reference: it stays readable, but may be reused for another key.
#[inline(always)]
pub fn lookup_copy<'m, K, V: Pod, const N: usize, const F: usize>(
    map: &'m HashMap<K, V, N, F>,
    key: &K,
) -> Option<&'m V> {
    // SAFETY: elements are preallocated and never unmapped while the program runs; every bit
    // pattern is a valid `Pod`, and the caller compares the key that the value repeats.
    unsafe { map.get(key) }
}

/// This CPU's element of a per-CPU array, to count in.
#[inline(always)]
pub fn per_cpu<T: Pod, const N: usize, const F: usize>(
    map: &PerCpuArray<T, N, F>,
    index: u32,
    count: impl FnOnce(&mut T),
) {
    if let Some(element) = map.get_ptr_mut(index) {
        // SAFETY: the element is this CPU's alone and programs of one CPU do not nest.
        count(unsafe { &mut *element });
    }
}
