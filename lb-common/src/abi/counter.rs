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
