//! The receiver's allow-lists.

use aya_ebpf::{
    btf_maps::{Array, HashMap, LpmTrie},
    macros::btf_map,
};
use lb_common::{
    abi::{limits::MAX_ENDPOINTS, receiver::VipKey, service::AddressWords},
    receive::Allowed,
};

use crate::kernel;

/// Prefixes of balancer addresses the trie can hold.
const MAX_SOURCES: usize = 1_024;
/// VIPs the set can hold.
const MAX_VIPS: usize = 65_536;

#[btf_map]
static SOURCES: LpmTrie<AddressWords, u32, MAX_SOURCES> = LpmTrie::new();
#[btf_map]
static VIPS: HashMap<VipKey, u32, MAX_VIPS> = HashMap::new();
#[btf_map]
static ENDPOINTS: HashMap<VipKey, u32, { MAX_ENDPOINTS as usize }> = HashMap::new();
#[btf_map]
static GUE_PORT: Array<u64, 1> = Array::new();

/// The allow-lists as the decision sees them.
pub(super) struct Lists;

impl Allowed for Lists {
    #[inline(always)]
    fn source(&self, address: &AddressWords) -> bool {
        kernel::has_prefix(&SOURCES, address)
    }

    #[inline(always)]
    fn vip(&self, address: &AddressWords, version: u8) -> bool {
        kernel::contains(&VIPS, &VipKey { address: *address, version: u32::from(version) })
    }

    #[inline(always)]
    fn endpoint(&self, address: &AddressWords, version: u8) -> bool {
        kernel::contains(&ENDPOINTS, &VipKey { address: *address, version: u32::from(version) })
    }

    #[inline(always)]
    fn gue_port(&self) -> u16 {
        kernel::word(&GUE_PORT, 0).unwrap_or(0) as u16
    }
}
