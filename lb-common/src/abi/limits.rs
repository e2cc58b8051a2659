//! How many entries the maps have that no setting sizes ([`super::sizes`] has the others). Part of the layout: a change
//! is a new [`super::LAYOUT_VERSION`].

/// Regions one pool can overflow through, its own included.
pub const MAX_REGIONS_PER_POOL: usize = 8;
/// Standby words of a group.
pub const STANDBYS_PER_GROUP: u32 = 8;
/// Next-hop words; index 0 means *none*, and the last one that a next hop is [`super::next_hop::AWAITED`]. The words of members
/// and backends have 16 bits for the index.
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
/// Addresses of a receiver where tunnels end.
pub const MAX_ENDPOINTS: u32 = 16_384;
