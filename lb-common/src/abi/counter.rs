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
    /// A repeated SYN went where the first one had gone.
    SynRepeated = 6, "syn_repeated";
    /// A new connection had to stay at its full home, at one that gives connections away for now (slow start,
    /// shares), or at the one that a remap takes it from, because the flow table had no room for it. If its region is full, a
    /// service that rejects refuses it.
    HeldAtHome = 7, "held_at_home";
    /// A limit could not be debited because too many CPUs were at it, or it changed; the connection was refused there, or the
    /// answer not sent.
    LimitContended = 8, "limit_contended";
    /// A flow got a cell of the flow table: a new connection that is away from home, or whose pool has limits, or whose
    /// flow had another one; or a new flow of a tracking UDP service.
    FlowTaken = 17, "flow_taken";
    /// A flow got no cell, because all that it may have are in use, or its pool has its share of the table; it goes by the
    /// tables.
    FlowNoRoom = 18, "flow_no_room";
    /// A stream came close below the number of a SYN of its own flow that is not its own; the SYN's cell was dropped.
    SynDropped = 19, "syn_dropped";
    /// During a remap, an open connection that it moves got a cell at the backend where it is.
    RemapTaken = 20, "remap_taken";
    /// During a remap, an open connection that it moves got no cell, because all that it may have are in use, or
    /// its pool has its share of the table; each further packet tries again.
    RemapNoRoom = 21, "remap_no_room";
    /// The home of a new connection could not have it (unhealthy, drained, or without a next hop), and the flow table had
    /// no room. The connection went elsewhere all the same; its next packets are sent home, which resets it, once home
    /// takes connections again.
    DisplacedWithoutCell = 22, "displaced_without_cell";
    /// A ping was not answered, or an ICMP error not sent, because the network that it would go to (a /24 of IPv4, a /56 of
    /// IPv6) had its part of such answers.
    AnswerLimitedNetwork = 23, "answer_limited_network";
    /// A ping was not answered, or an ICMP error not sent, because its VIP had its part of such answers.
    AnswerLimitedVip = 24, "answer_limited_vip";
}

/// Entries of the event counter map: room for later events without a new layout.
pub const EVENT_SLOTS: u32 = 64;
