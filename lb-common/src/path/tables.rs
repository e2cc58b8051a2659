//! What the decision asks of the maps.

use super::choose::{Observe, Search};
use crate::abi::{
    backend::Backend,
    descriptor::Descriptor,
    group::{Group, GroupHead},
    member::MemberWord,
    next_hop::{InterfaceWord, NextHopWord},
    pool::PoolWord,
    service::{Service, ServiceKey},
    slot::{SlotWord, StandbyWord},
    table_ref::TableRef,
};

/// The maps: the kernel's in a packet program, pinned ones in a command, plain ones in a test.
///
/// `None` means that there is no such entry. Words are read once per call.
pub trait Tables {
    /// The service with a key: a copy whose own key was read last. A hash element may be reused for
    /// another service under the reader; read in this order, a copy with the right key is whole.
    fn service(&self, key: &ServiceKey) -> Option<Service>;
    /// A pool's word.
    fn pool(&self, index: u32) -> Option<PoolWord>;
    /// A pool's descriptor.
    fn descriptor(&self, index: u32) -> Option<&Descriptor>;
    /// A group.
    fn group(&self, index: u32) -> Option<&Group>;
    /// A slot's preference list.
    fn slot(&self, table: TableRef, slot: u32) -> Option<SlotWord>;
    /// The rank of a slot's owner, the first of its list; maps keep it in a place of its own
    /// ([`crate::abi::slot::OwnersWord`]).
    fn owner(&self, head: &GroupHead, slot: u32) -> Option<u16> {
        self.slot(TableRef(head.table), slot).map(|list| list.rank(0))
    }
    /// A group's standby, by `group * STANDBYS_PER_GROUP + n`.
    fn standby(&self, index: u32) -> Option<StandbyWord>;
    /// A member's word.
    fn member(&self, index: u32) -> Option<MemberWord>;
    /// A backend.
    fn backend(&self, index: u32) -> Option<&Backend>;
    /// A next hop.
    fn next_hop(&self, index: u32) -> Option<NextHopWord>;
    /// An interface's word, by interface index.
    fn interface(&self, index: u32) -> Option<InterfaceWord>;

    /// Runs a search's steps until one ends it. The kernel does it with a helper of its own, whose
    /// body is verified once instead of once a step.
    fn search<O: Observe>(&self, search: &mut Search, observer: &mut O) {
        for step in 0..Search::STEPS {
            if search.step(step, self, observer) {
                return;
            }
        }
    }
}
