//! Events: what happens beside the verdicts, counted per CPU. Numbers are never used again.

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
    /// An open connection away from home was given an exception.
    ExceptionInserted = 0, "exception_inserted";
    /// An open connection away from home got no exception: the budget is used up, or the kernel had no
    /// room. Its packet went to its backend all the same, and the next one tries again.
    ExceptionRefused = 1, "exception_refused";
    /// The exceptions were asked for a packet.
    ExceptionLookup = 2, "exception_lookup";
    /// A packet went by an exception.
    ExceptionHit = 3, "exception_hit";
    /// An exception's connection ended, and a new one with its addresses and ports took its place.
    ExceptionReplaced = 4, "exception_replaced";
    /// A SYN met an exception that says something else, and marked it.
    ExceptionMarked = 5, "exception_marked";
    /// A repeated SYN went where the first one had gone.
    SynRepeated = 6, "syn_repeated";
    /// A new connection stayed at its full home, at one that gives connections away for now (slow start,
    /// shares), or at its former one, because there was no budget for an exception.
    HeldAtHome = 7, "held_at_home";
    /// A limit could not be debited because too many CPUs were at it; the connection was refused there.
    LimitContended = 8, "limit_contended";
    /// A stream came close below the sequence number of a record of its own flow that is not its own;
    /// the record went.
    RecordDropped = 9, "record_dropped";
    /// During a change of home, an open connection was given an exception at its former home.
    Adopted = 10, "adopted";
    /// During a change of home, an open connection got no exception: the budget is used up.
    AdoptionRefused = 11, "adoption_refused";
    /// A UDP flow entered the table of tracked flows.
    FlowTracked = 12, "flow_tracked";
    /// The kernel had no room for a tracked UDP flow; it went where the next packet will go too while
    /// nothing changes.
    FlowRefused = 13, "flow_refused";
    /// The home of a new connection could not have it (unhealthy, drained, or without a next hop), and there
    /// was no budget for an exception. The connection went elsewhere all the same; once its handshake is
    /// over it may be sent home, which resets it.
    AwayWithoutBudget = 14, "away_without_budget";
}

/// Entries of the event counter map: room for later events without a new layout.
pub const EVENT_SLOTS: u32 = 64;
