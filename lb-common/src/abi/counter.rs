//! Per-CPU counters, and the events that are counted beside the verdicts. Numbers of events are never used again.

/// Packets under one verdict.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounter {
    /// Packets.
    pub packets: u64,
    /// Bytes of the frames as they came in.
    pub bytes: u64,
}

/// Traffic of one service or one backend: forwarded packets only.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounter {
    /// Packets forwarded.
    pub packets: u64,
    /// Bytes of the frames as they came in.
    pub bytes: u64,
    /// SYNs among them, repeated ones included.
    pub connections: u64,
}

/// New connections of one group, repeated SYNs not counted again where they are known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounter {
    /// All of them: the sum of admitted, overflow out and refused.
    pub offered: u64,
    /// Those it took.
    pub admitted: u64,
    /// Of those it took, the ones that overflowed from a nearer group.
    pub overflow_in: u64,
    /// Those that another group took, because this one was full or had no member for them.
    pub overflow_out: u64,
    /// Those that were dropped because every group was full, counted at the first group of the order.
    pub refused: u64,
    /// Of those it took, the ones above its limit, admitted because every group was full.
    pub over_capacity: u64,
}

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal, $label:literal;)+) => {
        /// What the packet path counts beside verdicts and traffic.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Event {
            $($(#[doc = $doc])+ $name = $number,)+
        }

        impl Event {
            /// All events, by number.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The label of metrics and commands.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $label,)+ }
            }

            /// What it means, one or more sentences.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc, "\n"),+),)+ }
            }
        }
    };
}

events! {
    /// A displaced open connection was given an entry.
    DisplacedInserted = 0, "displaced_inserted";
    /// A displaced open connection got no entry: the budget is used up, or the kernel had no
    /// room. Its packet went to its backend all the same, and the next one tries again.
    DisplacedRefused = 1, "displaced_refused";
    /// A packet looked up the displaced entries.
    DisplacedLookup = 2, "displaced_lookup";
    /// A packet found its displaced entry.
    DisplacedHit = 3, "displaced_hit";
    /// A displaced entry's connection ended, and a new one with its addresses and ports took its place.
    DisplacedReplaced = 4, "displaced_replaced";
    /// A SYN was placed elsewhere than the displaced entry of its flow; the entry is contested for 64 s.
    DisplacedContested = 5, "displaced_contested";
    /// A repeated SYN went where the first one had gone.
    SynRepeated = 6, "syn_repeated";
    /// A new connection stayed at its full home, at one that gives connections away for now (slow start,
    /// shares), or at its previous one, because there was no budget for a displaced entry.
    HeldAtHome = 7, "held_at_home";
    /// A limit could not be debited because too many CPUs were at it, or it changed; the connection was refused there.
    LimitContended = 8, "limit_contended";
    /// A stream came close below the sequence number of a handshake entry of its own flow that is not its own;
    /// the entry was dropped.
    HandshakeDropped = 9, "handshake_dropped";
    /// During a remap, an open connection was given a displaced entry at its previous home.
    Adopted = 10, "adopted";
    /// During a remap, an open connection got no displaced entry: the budget is used up.
    AdoptionRefused = 11, "adoption_refused";
    /// A UDP flow entered the table of tracked flows.
    FlowTracked = 12, "flow_tracked";
    /// The kernel had no room for a tracked UDP flow; it went where the next packet will go too while
    /// nothing changes.
    FlowRefused = 13, "flow_refused";
    /// The home of a new connection could not have it (unhealthy, drained, or without a next hop), and there
    /// was no budget for a displaced entry. The connection went elsewhere all the same; once its handshake is
    /// over it may be sent home, which resets it.
    DisplacedWithoutBudget = 14, "displaced_without_budget";
}

/// Entries of the event counter map: room for later events without a new layout.
pub const EVENT_SLOTS: u32 = 64;
