//! Per-CPU counters.

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
    /// SYNs among them: connections asked for, repeated SYNs included.
    pub connections: u64,
}

/// New connections of one group, repeated SYNs not counted again where they are known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounter {
    /// Those it was asked for: the sum of admitted, overflow out and refused.
    pub offered: u64,
    /// Those it took.
    pub admitted: u64,
    /// Of those it took, the ones that overflowed from a nearer group.
    pub overflow_in: u64,
    /// Those that another group took, because this one was full or had no member for them.
    pub overflow_out: u64,
    /// Those that were dropped because every group was full, counted at the first one asked.
    pub refused: u64,
    /// Of those it took, the ones above its limit, admitted because every group was full.
    pub over_capacity: u64,
}
