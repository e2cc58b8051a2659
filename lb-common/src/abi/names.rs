//! Names of maps and programs, as they stand in the objects and under the pin path.

/// Array of [`super::service::Service`], in no order.
pub const SERVICES: &str = "SERVICES";
/// Array of words: the index of `SERVICES` by [`super::service::ServiceKey`] ([`crate::service_index`]).
pub const SERVICE_INDEX: &str = "SERVICE_INDEX";
/// Array of words of bits: addresses that may have an any-port service ([`super::service::any_port_bit`]).
pub const ANY_PORTS: &str = "ANY_PORTS";
/// Hash set of [`super::service::VipKey`]: the addresses of all services.
pub const ADDRESSES: &str = "ADDRESSES";
/// Array of [`super::pool::PoolLine`].
pub const POOLS: &str = "POOLS";
/// Array of [`super::pool::Descriptor`].
pub const DESCRIPTORS: &str = "DESCRIPTORS";
/// Array of [`super::pool::Group`].
pub const GROUPS: &str = "GROUPS";
/// Array of [`super::slot::StandbyWord`]: a group's words stand at `group * STANDBYS_PER_GROUP`.
pub const STANDBYS: &str = "STANDBYS";
/// Array of chunks, which are arrays of words with slot tables in them ([`super::slot::TableShape`]).
pub const TABLES: &str = "TABLES";
/// Array of [`super::member::MemberWord`].
pub const MEMBERS: &str = "MEMBERS";
/// Array of limiter indices, by index of the member's word: the limit of its own that a member has.
pub const MEMBER_LIMITERS: &str = "MEMBER_LIMITERS";
/// Array of [`super::limiter::Limiter`].
pub const LIMITERS: &str = "LIMITERS";
/// Array of [`super::backend::BackendStateWord`], by backend index.
pub const BACKEND_STATES: &str = "BACKEND_STATES";
/// Hash: [`super::backend::shared_key`] to the number of a [`super::member::Accepts`], of backends that several pools
/// have. Without an entry the pool does not have the backend, or the backend accepts nothing there.
pub const SHARED_BACKENDS: &str = "SHARED_BACKENDS";
/// Array of [`super::connection::HandshakeLine`].
pub const HANDSHAKES: &str = "HANDSHAKES";
/// LRU hash: [`super::connection::FlowKeyV4`] to [`super::connection::DisplacedWord`].
pub const DISPLACED_V4: &str = "DISPLACED_V4";
/// LRU hash: [`super::connection::FlowKeyV6`] to [`super::connection::DisplacedWord`].
pub const DISPLACED_V6: &str = "DISPLACED_V6";
/// LRU hash of tracked UDP flows, as [`DISPLACED_V4`].
pub const FLOWS_V4: &str = "FLOWS_V4";
/// LRU hash of tracked UDP flows, as [`DISPLACED_V6`].
pub const FLOWS_V6: &str = "FLOWS_V6";
/// Array of [`super::backend::Backend`].
pub const BACKENDS: &str = "BACKENDS";
/// Array of [`super::next_hop::NextHopWord`].
pub const NEXT_HOPS: &str = "NEXT_HOPS";
/// Array of [`super::next_hop::InterfaceWord`] by interface index.
pub const INTERFACES: &str = "INTERFACES";
/// Array of bonds' interface indices, by the index of a port of theirs; 0: a port of none.
pub const BONDS: &str = "BONDS";
/// Device hash map: interface index to interface index.
pub const DEVICES: &str = "DEVICES";
/// Per-CPU array of [`super::counter::VerdictCounter`] by verdict number (both programs).
pub const VERDICT_COUNTERS: &str = "VERDICT_COUNTERS";
/// Per-CPU array of [`super::counter::TrafficCounter`] by service index.
pub const SERVICE_COUNTERS: &str = "SERVICE_COUNTERS";
/// Per-CPU array of [`super::counter::TrafficCounter`] by backend index.
pub const BACKEND_COUNTERS: &str = "BACKEND_COUNTERS";
/// Per-CPU array of [`super::counter::GroupCounter`] by limiter index.
pub const GROUP_COUNTERS: &str = "GROUP_COUNTERS";
/// Per-CPU array of counts by [`super::counter::Event`] number.
pub const EVENT_COUNTERS: &str = "EVENT_COUNTERS";
/// The [`super::capture::Capture`], which the balancer's object has as [`super::capture::SECTION`].
pub const CAPTURE: &str = "CAPTURE";
/// Per-CPU array of one [`super::capture::CaptureBuffer`].
pub const CAPTURE_BUFFER: &str = "CAPTURE_BUFFER";
/// Ring of samples: [`super::capture::SampleHead`]s with their bytes.
pub const SAMPLES: &str = "SAMPLES";
/// Longest-prefix trie of [`super::service::SourcePrefix`] (receiver).
pub const SOURCES: &str = "SOURCES";
/// Hash set of [`super::service::VipKey`] (receiver).
pub const VIPS: &str = "VIPS";
/// Hash set of [`super::service::VipKey`]: the addresses where tunnels end (receiver).
pub const ENDPOINTS: &str = "ENDPOINTS";
/// Array of one word: the UDP port where GUE ends at a receiver; 0: nowhere.
pub const GUE_PORT: &str = "GUE_PORT";
/// Hash of [`super::form::ProbeRoute`]s by number (probes' program; not pinned).
pub const PROBE_ROUTES: &str = "PROBE_ROUTES";

/// The balancer's program and object.
pub const BALANCER: &str = "balancer";
/// The receiver's program and object.
pub const RECEIVER: &str = "receiver";
/// The program and object of probes.
pub const PROBE: &str = "probe";
