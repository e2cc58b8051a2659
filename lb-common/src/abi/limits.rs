//! How many entries each map holds. Part of the layout: a change is a new [`super::LAYOUT_VERSION`].

/// Services.
pub const MAX_SERVICES: u32 = 4_096;
/// What packets are looked up as: each port of each service, each any-port service, and each service that fragments go
/// to.
pub const MAX_SERVICE_KEYS: u32 = 65_536;
/// Records of services, of two generations; index 0 is never used.
pub const MAX_SERVICE_RECORDS: u32 = 2 * MAX_SERVICE_KEYS + 1;
/// Pools that at least one service names.
pub const MAX_POOLS: u32 = 4_096;
/// Descriptors: a pool needs its current one, its previous one, and room for the next.
pub const MAX_DESCRIPTORS: u32 = 3 * MAX_POOLS;
/// Groups (a pool's members in one region), published and in preparation together.
pub const MAX_GROUPS: u32 = 16_384;
/// Regions one pool can overflow through, its own included.
pub const MAX_REGIONS_PER_POOL: usize = 8;
/// Standby words of a group.
pub const STANDBYS_PER_GROUP: u32 = 8;
/// Member words, published and in preparation together.
pub const MAX_MEMBERS: u32 = 262_144;
/// Backend indices; index 0 is never given out.
pub const MAX_BACKENDS: u32 = 65_536;
/// Next-hop words; index 0 means *none*.
pub const MAX_NEXT_HOPS: u32 = 65_536;
/// Highest interface index (exclusive) that a next hop can name.
pub const MAX_INTERFACES: u32 = 65_536;
/// Chunks of slot tables, published and in preparation together: 16 GiB.
pub const MAX_CHUNKS: u32 = 4_096;
/// Words of a chunk: 4 MiB. A power of two, so that the place of a word is a shift and a mask. Each balancer has at
/// least one chunk, and the largest table fits one.
pub const CHUNK_WORDS: u32 = 1 << 19;
/// Default slots of a table (a prime).
pub const DEFAULT_SLOTS: u32 = 65_537;
/// Limiters, the first [`super::limiter::FIRST_LIMITER`] of which are the packet path's own.
pub const MAX_LIMITERS: u32 = 65_536;
/// Lines of handshake entries: half a million SYNs of the last 64 s. A power of two.
pub const HANDSHAKE_LINES: u32 = 131_072;
/// Default size of the table of displaced IPv4 connections.
pub const DEFAULT_DISPLACED_V4: u32 = 524_288;
/// Default size of the table of displaced IPv6 connections.
pub const DEFAULT_DISPLACED_V6: u32 = 131_072;
/// Default size of the table of tracked IPv4 flows.
pub const DEFAULT_FLOWS_V4: u32 = 262_144;
/// Default size of the table of tracked IPv6 flows.
pub const DEFAULT_FLOWS_V6: u32 = 65_536;
/// Addresses of a receiver where tunnels end.
pub const MAX_ENDPOINTS: u32 = 16_384;
