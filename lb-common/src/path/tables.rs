//! What the decision asks of the maps.

use super::{
    admit,
    choose::{self, Choice, Observe},
    records::{self, Found, Line, Segment},
    search::{self, Ended, Search, Wanted},
};
use crate::{
    abi::{
        backend::Backend,
        clock::{Coarse, Nanoseconds},
        counter::GroupCounter,
        descriptor::Descriptor,
        event::Event,
        exception::ExceptionWord,
        group::{Group, GroupHead},
        host::HostWord,
        member::{MemberState, MemberWord},
        meter::LimitWord,
        next_hop::{InterfaceWord, NextHopWord},
        pool::PoolLine,
        record::Record,
        service::{AddressWords, Service, ServiceKey},
        slot::{SlotWord, StandbyWord},
        table_ref::TableRef,
    },
    flow_hash::FlowTuple,
    word::Word,
};

/// The maps: the kernel's in a packet program, pinned ones in a command, plain ones in a test.
///
/// `None` means that there is no such entry. Words are read once per call.
pub trait Tables {
    /// A word that packets write.
    type Word<'t>: Word
    where
        Self: 't;

    /// The service with a key: a copy whose own key was read last. A hash element may be reused for
    /// another service under the reader; read in this order, a copy with the right key is whole.
    fn service(&self, key: &ServiceKey) -> Option<Service>;
    /// The service with a key; where there is none, that of any port of its address. As [`Self::service`].
    #[inline(always)]
    fn service_of_port(&self, key: &ServiceKey) -> Option<Service> {
        self.service(key).or_else(|| self.service(&key.any_port()))
    }
    /// Whether some service has an address; `version` is 4 or 6.
    fn is_vip(&self, address: &AddressWords, version: u8) -> bool;
    /// A pool's line.
    fn pool(&self, index: u32) -> Option<PoolLine>;
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

    /// What time it is.
    fn now(&self) -> Nanoseconds;
    /// A meter's limit, and what its arrival says.
    fn meter(&self, index: u32) -> Option<(LimitWord, u64)>;
    /// A meter's arrival.
    fn arrival(&self, index: u32) -> Option<Self::Word<'_>>;
    /// The meter of a member with a limit of its own, by the index of its word.
    fn member_meter(&self, index: u32) -> Option<u32>;
    /// What a remembered flow must know of a backend.
    fn host(&self, backend: u32) -> Option<HostWord>;
    /// The state of a backend that several pools have, in one of them.
    fn shared_backend(&self, pool: u32, backend: u32) -> MemberState;
    /// Stores when a connection of a pool was last placed away from home.
    fn set_last_away(&self, pool: u32, now: Coarse);
    /// A cell of a line of records.
    fn record(&self, line: u32, cell: u32) -> Option<Record>;
    /// Writes a cell of a line of records, its first word first.
    fn set_record(&self, line: u32, cell: u32, record: Record);
    /// The exception of a connection, to read and to change in place.
    fn exception(&self, flow: &FlowTuple) -> Option<Self::Word<'_>>;
    /// Adds an exception; false where there is no room.
    fn insert_exception(&self, flow: &FlowTuple, word: ExceptionWord) -> bool;
    /// What is remembered of a tracked flow, to read and to change in place.
    fn tracked(&self, flow: &FlowTuple) -> Option<Self::Word<'_>>;
    /// Adds a tracked flow; false where there is no room.
    fn insert_tracked(&self, flow: &FlowTuple, word: ExceptionWord) -> bool;

    /// Counts an event.
    fn count(&self, event: Event);
    /// Counts at a group, by its meter.
    fn count_group(&self, meter: u32, count: impl FnOnce(&mut GroupCounter));

    // What follows is the same whatever the maps are; a packet program makes functions of it that are
    // verified once by themselves instead of once for every way to them.

    /// Counts a connection against a meter's limit: [`search::debit`].
    #[inline(always)]
    fn debit(&self, meter: u32, now: Nanoseconds) -> bool {
        search::debit(self, meter, now)
    }
    /// Whether a debit would find a meter's limit reached: [`search::is_full`].
    #[inline(always)]
    fn is_full(&self, meter: u32, now: Nanoseconds) -> bool {
        search::is_full(self, meter, now)
    }
    /// Who has the home of an owner that is out of it: [`choose::stand_in`].
    #[inline(always)]
    fn stand_in(&self, head: &GroupHead, slot: u32) -> u32 {
        choose::stand_in(self, head, slot)
    }
    /// What a repeated SYN decided before: [`records::repeated`].
    #[inline(always)]
    fn repeated(&self, line: Line, number: u32) -> Found {
        records::repeated(self, line, number)
    }
    /// Writes what a SYN decided: [`records::write`].
    #[inline(always)]
    fn write_record(&self, line: Line, record: Record) {
        records::write(self, line, record);
    }
    /// What the SYN of a packet's handshake decided: [`records::handshake`].
    #[inline(always)]
    fn handshake(&self, line: Line, segment: Segment) -> Found {
        records::handshake(self, line, segment)
    }
    /// Counts a connection that went to a further region: [`admit::count_spilled`].
    #[inline(always)]
    fn count_spilled(&self, version: u32, taken_by: u32, overrun: bool) {
        admit::count_spilled(self, version, taken_by, overrun);
    }
    /// Looks for a member, and says who was found.
    #[inline(always)]
    fn search<O: Observe>(&self, wanted: Wanted, choice: &mut Choice, observer: &mut O) -> Ended {
        let mut search = Search::new(wanted);
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
