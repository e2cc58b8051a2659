//! Map memory. Words may change at any time, so they are read once, volatile. Structs are immutable once published.

use core::mem::MaybeUninit;

use aya_ebpf::btf_maps::{
    Array, ArrayOfMaps, HashMap, LpmTrie, LruHashMap, PerCpuArray, lpm_trie::Key,
};
use lb_common::{
    abi::{flow_map::LINE_WORDS, pod::Pod, service::AddressWords},
    flow_table::Bucket,
    word::Word,
};

use super::helpers::{opaque, zero_after};

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

/// A word that programs of other CPUs write too.
#[derive(Clone, Copy)]
pub struct SharedWord(pub(super) *mut u64);

impl Word for SharedWord {
    #[inline(always)]
    fn load(self) -> u64 {
        // SAFETY: the pointer is to live, aligned map memory; one volatile 8-byte load.
        unsafe { self.0.read_volatile() }
    }

    #[inline(always)]
    fn exchange(self, from: u64, to: u64) -> Result<(), u64> {
        match compare_exchange(self.0, from, to) {
            found if found == from => Ok(()),
            found => Err(found),
        }
    }

    #[inline(always)]
    fn add(self, value: u64) -> u64 {
        fetch_add(self.0, value)
    }
}

/// Adds to a word, and returns its value before: one instruction (kernel 5.12), as below.
#[cfg(target_arch = "bpf")]
#[inline(always)]
fn fetch_add(word: *mut u64, value: u64) -> u64 {
    let found;
    // SAFETY: the pointer is to live, aligned map memory, which is all the instruction touches.
    unsafe {
        core::arch::asm!(
            "{value} = atomic_fetch_add((u64 *)({word} + 0), {value})",
            word = in(reg) word,
            value = inlateout(reg) value => found,
            options(nostack),
        );
    }
    found
}

/// Off the kernel this crate is only type-checked.
#[cfg(not(target_arch = "bpf"))]
fn fetch_add(word: *mut u64, value: u64) -> u64 {
    // SAFETY: as above.
    let word = unsafe { core::sync::atomic::AtomicU64::from_ptr(word) };
    word.fetch_add(value, core::sync::atomic::Ordering::SeqCst)
}

/// Stores `to` if the value is `from`, and returns the value before: one instruction (kernel 5.12), which
/// the compiler's own atomics do not offer for this target.
#[cfg(target_arch = "bpf")]
#[inline(always)]
fn compare_exchange(word: *mut u64, from: u64, to: u64) -> u64 {
    let found;
    // SAFETY: the pointer is to live, aligned map memory, which is all the instruction touches.
    unsafe {
        core::arch::asm!(
            "r0 = cmpxchg_64({word} + 0, r0, {to})",
            word = in(reg) word,
            to = in(reg) to,
            inlateout("r0") from => found,
            options(nostack),
        );
    }
    found
}

/// Off the kernel this crate is only type-checked.
#[cfg(not(target_arch = "bpf"))]
fn compare_exchange(word: *mut u64, from: u64, to: u64) -> u64 {
    // SAFETY: as above.
    let word = unsafe { core::sync::atomic::AtomicU64::from_ptr(word) };
    let order = core::sync::atomic::Ordering::SeqCst;
    word.compare_exchange(from, to, order, order).unwrap_or_else(|found| found)
}

/// A cache line of an array of them, whose words programs of other CPUs change too.
#[derive(Clone, Copy)]
pub struct SharedLine(*mut u64);

impl SharedLine {
    #[inline(always)]
    fn word(self, word: u32) -> SharedWord {
        // SAFETY: a line has `LINE_WORDS` words, a power of two.
        SharedWord(unsafe { self.0.add(word as usize % LINE_WORDS) })
    }

    /// The same of a number that the compiler cannot prove to be one of the line, so that it keeps the bounds check, which
    /// the verifier cannot do without.
    #[inline(always)]
    fn word_at(self, word: u32) -> SharedWord {
        self.word(opaque(word.into()) as u32)
    }
}

impl Bucket for SharedLine {
    #[inline(always)]
    fn load(self, word: u32) -> u64 {
        self.word(word).load()
    }

    /// The address depends on what was read before, so that no CPU reads it earlier.
    #[inline(always)]
    fn load_after(self, word: u32, earlier: u64) -> u64 {
        Self(self.0.wrapping_byte_add(zero_after(earlier) as usize)).load(word)
    }

    #[inline(always)]
    fn exchange(self, word: u32, from: u64, to: u64) -> bool {
        self.word(word).exchange(from, to).is_ok()
    }

    #[inline(always)]
    fn store(self, word: u32, to: u64) {
        // SAFETY: the pointer is to live, aligned map memory; one volatile 8-byte store.
        unsafe { self.word_at(word).0.write_volatile(to) }
    }
}

/// A line of an array of cache lines.
#[inline(always)]
pub fn shared_line<const N: usize, const F: usize>(
    map: &Array<[u64; LINE_WORDS], N, F>,
    index: u32,
) -> Option<SharedLine> {
    map.get_ptr_mut(index).map(|line| SharedLine(line.cast()))
}

/// The word of a key, to change by atomic operations only: the kernel may have evicted the element and given its memory to
/// another key.
#[inline(always)]
pub fn lru_word<K: Pod, const N: usize, const F: usize>(
    map: &LruHashMap<K, u64, N, F>,
    key: K,
) -> Option<SharedWord> {
    map.get_ptr_mut(key).map(SharedWord)
}

/// A word of an inner array.
#[inline(always)]
pub fn table_word<const S: usize, const G: usize, const N: usize, const F: usize>(
    map: &ArrayOfMaps<Array<u64, S, G>, N, F>,
    chunk: u32,
    index: u32,
) -> Option<u64> {
    let word = map.get_value_ptr_mut(chunk, &index)?;
    // SAFETY: the pointer is to a live, aligned array element; one volatile 8-byte load.
    Some(unsafe { word.read_volatile() })
}

/// A value of a hash map, by reference: it stays readable, but may be reused for another key.
#[inline(always)]
pub fn hash_value<V: Pod, const N: usize, const F: usize>(
    map: &HashMap<u64, V, N, F>,
    key: u64,
) -> Option<&V> {
    // SAFETY: elements are preallocated and never unmapped while the program runs; every bit pattern is a valid `Pod`.
    unsafe { map.get(key) }
}

/// A word of a hash map. The kernel may free its element and reuse it for another key of the map at any time.
#[inline(always)]
pub fn hash_word<const N: usize, const F: usize>(
    map: &HashMap<u64, u64, N, F>,
    key: u64,
) -> Option<u64> {
    // SAFETY: the pointer is to an aligned element, which is readable for as long as the program runs; one volatile
    // 8-byte load.
    map.get_ptr(key).map(|word| unsafe { word.read_volatile() })
}

/// A number that a hash map has for a key, as [`hash_word`].
#[inline(always)]
pub fn hash_number<K: Pod, const N: usize, const F: usize>(
    map: &HashMap<K, u32, N, F>,
    key: &K,
) -> Option<u32> {
    // SAFETY: the pointer is to an aligned element, which is readable for as long as the program runs; one volatile
    // 4-byte load.
    map.get_ptr(Stacked::new(key).get()).map(|number| unsafe { number.read_volatile() })
}

/// Whether a hash map has a key.
#[inline(always)]
pub fn contains<K: Pod, V: Pod, const N: usize, const F: usize>(
    map: &HashMap<K, V, N, F>,
    key: &K,
) -> bool {
    map.get_ptr(Stacked::new(key).get()).is_some()
}

/// Whether a trie has a prefix of an address.
#[inline(always)]
pub fn has_prefix<V: Pod, const N: usize, const F: usize>(
    map: &LpmTrie<AddressWords, V, N, F>,
    address: &AddressWords,
) -> bool {
    /// The length of the prefix precedes the address, so that the address is aligned.
    #[repr(C, align(8))]
    struct Aligned {
        padding: u32,
        key: Key<AddressWords>,
    }
    let mut prefix = MaybeUninit::<Aligned>::uninit();
    let words = prefix.as_mut_ptr().cast::<u64>();
    const { assert!(size_of::<Aligned>() == 3 * size_of::<u64>()) };
    let bits = 8 * size_of::<AddressWords>() as u64;
    let [a, b] = pairs(address);
    // SAFETY: three aligned stores fill the three words, whose every bit pattern is valid; a
    // packed field is lent out as a pointer to a type of the same alignment.
    let key = unsafe {
        words.write_volatile(bits << 32);
        words.add(1).write_volatile(a);
        words.add(2).write_volatile(b);
        &prefix.assume_init_ref().key
    };
    map.get(key).is_some()
}

/// A key of 20 bytes on the stack. The verifier requires each store there to be aligned to its size, and the compiler,
/// which does not know that rule, merges two stores into a misaligned one. So the key is aligned, and each of its words
/// is stored separately.
#[repr(C, align(8))]
struct Stacked<K>(MaybeUninit<K>);

impl<K: Pod> Stacked<K> {
    #[inline(always)]
    fn new(key: &K) -> Self {
        const { assert!(size_of::<K>() == 20 && align_of::<K>() == 4) };
        let mut stacked = Self(MaybeUninit::uninit());
        let (from, to) = (core::ptr::from_ref(key).cast::<u32>(), stacked.0.as_mut_ptr());
        // SAFETY: 20 bytes are read, as five words, and written, as aligned words of eight, eight
        // and four bytes; `Pod` has no padding.
        unsafe {
            let word = |at: usize| u64::from(from.add(at).read());
            to.cast::<u64>().write_volatile(word(0) | word(1) << 32);
            to.cast::<u64>().add(1).write_volatile(word(2) | word(3) << 32);
            to.cast::<u32>().add(4).write_volatile(from.add(4).read());
        }
        stacked
    }

    #[inline(always)]
    fn get(&self) -> &K {
        // SAFETY: `new` wrote all of it.
        unsafe { self.0.assume_init_ref() }
    }
}

/// Four words as two, in the order of memory (the target is little-endian).
#[inline(always)]
const fn pairs(words: &AddressWords) -> [u64; 2] {
    [words[0] as u64 | (words[1] as u64) << 32, words[2] as u64 | (words[3] as u64) << 32]
}

/// This CPU's one element of a per-CPU array, to read: the program writes it before, never meanwhile.
#[inline(always)]
pub fn own_element<T: Pod, const F: usize>(map: &PerCpuArray<T, 1, F>) -> Option<&T> {
    // SAFETY: the element is this CPU's alone, programs of one CPU do not nest, and every bit pattern is a valid `Pod`.
    map.get_ptr_mut(0).map(|element| unsafe { &*element })
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
