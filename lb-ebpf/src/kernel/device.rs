//! The kernel's own record of an interface, which programs on tracepoints get a pointer to.

use core::mem::MaybeUninit;

use aya_ebpf::{
    EbpfContext as _, Global, bindings::bpf_raw_tracepoint_args, helpers::generated,
    programs::RawTracePointContext,
};

/// Offset of `ifindex` in `struct net_device`; the loader sets it, from the kernel's BTF.
#[unsafe(no_mangle)]
static IFINDEX_OFFSET: Global<u64> = Global::new(0);
/// Offset of `nd_net` in `struct net_device`; the loader sets it.
#[unsafe(no_mangle)]
static NAMESPACE_OFFSET: Global<u64> = Global::new(0);
/// Offset of `ns.inum` in `struct net`; the loader sets it.
#[unsafe(no_mangle)]
static INODE_OFFSET: Global<u64> = Global::new(0);
/// Inode number of the network namespace of the daemon, which sets it.
#[unsafe(no_mangle)]
static NAMESPACE_INODE: Global<u64> = Global::new(0);

/// A `struct net_device`, by its address.
#[derive(Clone, Copy)]
pub struct Device(u64);

impl Device {
    /// The device that an argument of a tracepoint points to.
    #[inline(always)]
    pub fn argument(context: &RawTracePointContext, index: usize) -> Self {
        Self(argument(context, index))
    }

    /// The index of the interface; `None`: it is in another network namespace than the daemon.
    #[inline(always)]
    pub fn interface(self) -> Option<u32> {
        let namespace: u64 = read(self.0.wrapping_add(NAMESPACE_OFFSET.load()))?;
        let inode: u32 = read(namespace.wrapping_add(INODE_OFFSET.load()))?;
        if u64::from(inode) != NAMESPACE_INODE.load() {
            return None;
        }
        read(self.0.wrapping_add(IFINDEX_OFFSET.load()))
    }
}

/// An argument of a tracepoint, by its position in the kernel's declaration.
#[inline(always)]
pub fn argument(context: &RawTracePointContext, index: usize) -> u64 {
    let arguments = context.as_ptr().cast::<bpf_raw_tracepoint_args>();
    // SAFETY: the kernel gives a program as many words as the tracepoint has arguments; the verifier knows twelve.
    unsafe { (*arguments).args.as_ptr().add(index).read() }
}

/// An integer of the kernel's memory; `None`: there is no memory at that address (`bpf_probe_read_kernel`, kernel 5.5).
#[inline(always)]
fn read<T: Integer>(address: u64) -> Option<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the helper writes that many bytes, whatever the address is, and every bit pattern is an integer.
    unsafe {
        let to = value.as_mut_ptr().cast();
        match generated::bpf_probe_read_kernel(to, size_of::<T>() as u32, address as *const _) {
            0 => Some(value.assume_init()),
            _ => None,
        }
    }
}

/// What [`read`] reads.
trait Integer {}
impl Integer for u32 {}
impl Integer for u64 {}
