//! How many entries each map holds. Part of the layout: a change is a new [`super::LAYOUT_VERSION`].

/// Services.
pub const MAX_SERVICES: u32 = 4_096;
/// What packets are looked up as, of one IP version: each port of each service, each any-port service,
/// and each service that fragments go to.
pub const MAX_SERVICE_KEYS: u32 = 65_536;
/// Pools that at least one service names.
pub const MAX_POOLS: u32 = 4_096;
/// Descriptors: a pool needs its current one, its former one, and room for the next.
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
/// Slot tables, published and in preparation together.
pub const MAX_TABLES: u32 = 4_096;
/// Slots of a table where the configuration does not say otherwise (a prime).
pub const DEFAULT_SLOTS: u32 = 65_537;
/// Meters, the first [`super::meter::FIRST_METER`] of which are the packet path's own.
pub const MAX_METERS: u32 = 65_536;
/// Lines of records: half a million SYNs of the last 64 s. A power of two.
pub const RECORD_LINES: u32 = 131_072;
/// Exceptions of IPv4 connections, where the daemon's start does not say otherwise.
pub const DEFAULT_EXCEPTIONS_V4: u32 = 524_288;
/// Exceptions of IPv6 connections, where the daemon's start does not say otherwise.
pub const DEFAULT_EXCEPTIONS_V6: u32 = 131_072;
/// Tracked flows of IPv4, where the daemon's start does not say otherwise.
pub const DEFAULT_FLOWS_V4: u32 = 262_144;
/// Tracked flows of IPv6, where the daemon's start does not say otherwise.
pub const DEFAULT_FLOWS_V6: u32 = 65_536;
/// Addresses of a receiver where tunnels end.
pub const MAX_ENDPOINTS: u32 = 16_384;
