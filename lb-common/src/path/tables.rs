//! The maps as the decision sees them.

use super::{
    admit,
    answers::AnswerLimits,
    search::{self, Search, SearchEnd, SearchRequest},
    select::{self, Choice, Observe},
};
use crate::{
    abi::{
        backend::{Backend, BackendStateWord},
        clock::{Coarse, Nanoseconds},
        counter::{Event, GroupCounter},
        limiter::LimitWord,
        member::{Accepts, MemberWord},
        next_hop::{InterfaceWord, NextHopWord},
        pool::{Descriptor, Group, GroupHead, PoolLine},
        service::{AddressWords, Service, ServiceKey, VipWord},
        slot::{SlotWord, StandbyWord, TableRef},
        zone::Zone,
    },
    flow_table::FlowCells,
    word::Word,
};

/// The maps: the kernel's in a packet program, pinned ones in a command, plain ones in a test.
///
/// `None` means that there is no such entry. Words are read once per call.
pub trait Tables: FlowCells {
    /// A word that packets write.
    type Word<'t>: Word
    where
        Self: 't;

    /// The service with a key.
    fn service(&self, key: &ServiceKey) -> Option<&Service>;
    /// The service with a key; where there is none, that of any port of its address.
    #[inline(always)]
    fn service_of_port(&self, key: &ServiceKey) -> Option<&Service> {
        self.service(key).or_else(|| self.service(&key.any_port()))
    }
    /// The word of an address that some service has; `version` is 4 or 6.
    fn vip(&self, address: &AddressWords, version: u8) -> Option<VipWord>;
    /// A pool's line.
    fn pool(&self, index: u32) -> Option<PoolLine>;
    /// A pool's descriptor.
    fn descriptor(&self, index: u32) -> Option<&Descriptor>;
    /// A group.
    fn group(&self, index: u32) -> Option<&Group>;
    /// A slot's preference list.
    fn slot(&self, table: TableRef, slot: u32) -> Option<SlotWord>;
    /// The rank of a slot's owner, the first of its list, of which maps have a copy
    /// ([`crate::abi::slot::TableShape`]).
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
    /// The outer source of tunnels by a next hop; all zero: there is none.
    fn tunnel_source(&self, next_hop: u32) -> Option<AddressWords>;
    /// An interface's word, by interface index.
    fn interface(&self, index: u32) -> Option<InterfaceWord>;

    /// The current time.
    fn now(&self) -> Nanoseconds;
    /// A limiter's limit and arrival.
    fn limiter(&self, index: u32) -> Option<(LimitWord, u64)>;
    /// A limiter's arrival.
    fn arrival(&self, index: u32) -> Option<Self::Word<'_>>;
    /// The arrival of answers to a network or in the name of a VIP, by its word's index.
    fn answer_arrival(&self, index: u32) -> Option<Self::Word<'_>>;
    /// The limiter of a member with a limit of its own, by the index of its word.
    fn member_limiter(&self, index: u32) -> Option<u32>;
    /// A backend's best state.
    fn backend_state(&self, backend: u32) -> Option<BackendStateWord>;
    /// The state of a backend that several pools have, in one of them.
    fn shared_backend(&self, pool: u32, backend: u32) -> Accepts;
    /// Stores when a connection of a pool was last displaced.
    fn set_last_displaced(&self, pool: u32, now: Coarse);
    /// A zone.
    fn zone(&self, index: u32) -> Option<Zone>;
    /// Stores when a flow of a zone last got a cell.
    fn set_zone_displaced(&self, index: u32, now: Coarse);
    /// About how many cells of a pool are not half-open, to read and to add to; index 0: of all pools.
    fn flow_count(&self, pool: u32) -> Option<Self::Word<'_>>;
    /// The key of this balancer's that flows are hashed with for the flow table.
    fn flow_secret(&self) -> [u64; 2];

    /// Counts an event.
    fn count(&self, event: Event);
    /// Counts at a group, by its limiter.
    fn count_group(&self, limiter: u32, count: impl FnOnce(&mut GroupCounter));

    // What follows is the same for all maps. A packet program overrides it with global functions, which the kernel verifies
    // once each instead of once for every path to them.

    /// Counts a connection against a limiter's limit: [`search::debit`].
    #[inline(always)]
    fn debit(&self, limiter: u32, now: Nanoseconds) -> bool {
        search::debit(self, limiter, now)
    }
    /// Whether a limiter's limit is reached: [`search::is_full`].
    #[inline(always)]
    fn is_full(&self, limiter: u32, now: Nanoseconds) -> bool {
        search::is_full(self, limiter, now)
    }
    /// Whether an answer finds a limit reached: [`AnswerLimits::is_full`].
    #[inline(always)]
    fn is_answer_full(&self, limits: &AnswerLimits, now: Nanoseconds) -> bool {
        limits.is_full(self, now)
    }
    /// Counts an answer against its limits: [`AnswerLimits::debit`].
    #[inline(always)]
    fn debit_answer(&self, limits: &AnswerLimits, now: Nanoseconds) -> bool {
        limits.debit(self, now)
    }
    /// Position in the list of the member that stands in for an owner that is marked out: [`select::stand_in`].
    #[inline(always)]
    fn stand_in(&self, head: &GroupHead, slot: u32) -> u32 {
        select::stand_in(self, head, slot)
    }
    /// Counts a connection that went to a further region: [`admit::count_overflow`].
    #[inline(always)]
    fn count_overflow(&self, version: u32, taken_by: u32, over_capacity: bool) {
        admit::count_overflow(self, version, taken_by, over_capacity);
    }
    /// Searches a member.
    #[inline(always)]
    fn search<O: Observe>(
        &self,
        request: SearchRequest,
        choice: &mut Choice,
        observer: &mut O,
    ) -> SearchEnd {
        let mut search = Search::new(request);
        for step in 0..Search::STEPS {
            if search.step(step, self, observer) {
                break;
            }
        }
        let (ended, found) = search.end();
        *choice = found;
        ended
    }
}
