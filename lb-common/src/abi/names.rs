//! Names of maps and programs, as they stand in the objects and under the pin path.

/// Array of one element: all [`super::arrays::Array`]s.
pub const ARRAYS: &str = "ARRAYS";
/// Hash: [`super::service::VipKey`] to [`super::service::VipWord`]: the addresses of all services.
pub const ADDRESSES: &str = "ADDRESSES";
/// Array of chunks, which are arrays of words with slot tables in them ([`super::slot::TableShape`]).
pub const TABLES: &str = "TABLES";
/// Hash: [`super::backend::shared_key`] to the number of a [`super::member::Accepts`], of backends that several pools
/// have. Without an entry the pool does not have the backend, or the backend accepts nothing there.
pub const SHARED_BACKENDS: &str = "SHARED_BACKENDS";
/// Array of cache lines: the flow table's head ([`super::flow_map::FlowHead`]), then its buckets.
pub const FLOWS: &str = "FLOWS";
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
/// Hash set of [`super::service::VipKey`]: VIPs that are addresses of the balancer (probes' program; not pinned).
pub const PROBE_VIPS: &str = "PROBE_VIPS";
/// Global variable: index of the probes' link.
pub const PROBE_LINK: &str = "PROBE_LINK";

/// LRU hash: [`super::tracepoint::Tracepoint::key`] to a number of frames (tracepoints' programs).
pub const TRACED_DROPS: &str = "TRACED_DROPS";

/// Array of one program: what the balancer's fast path jumps into.
pub const SLOW_PATH: &str = "SLOW_PATH";

/// The balancer's fast path, and its object.
pub const BALANCER: &str = "balancer";
/// The balancer's slow path.
pub const BALANCER_SLOW: &str = "balancer_slow";
/// The program that returns the low half of the number of ticks since the kernel's start.
pub const BALANCER_CLOCK: &str = "balancer_clock";
/// The receiver's program and object.
pub const RECEIVER: &str = "receiver";
/// The program and object of probes.
pub const PROBE: &str = "probe";
/// The program for answers to probes, of the same object.
pub const PROBE_ANSWERS: &str = "probe_answers";
/// The object of the programs on tracepoints.
pub const TRACEPOINTS: &str = "tracepoints";
