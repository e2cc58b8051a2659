use std::time::{SystemTime, UNIX_EPOCH};

use super::Counter;
use lb_control::{HealthCounters, PublishCounters, loops::AllLoopCounters};
use lb_secure::{refusals::ApiRefusals, tls::CertificateExpiry};
use lb_store::StoreCounters;

/// Counters of this process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Writes to the packet path.
    pub publish: PublishCounters,
    /// Health in the packet path.
    pub health: HealthCounters,
    /// Writes of the store.
    pub store: StoreCounters,
    /// The loops and their queues.
    pub loops: AllLoopCounters,
    /// Health checks.
    pub checks: lb_health::Counters,
    /// Certificates of the API and of the HTTP listener.
    pub certificates: CertificateExpiry,
    /// Requests over HTTP without a valid token.
    pub http_refused: Counter,
    /// Entries of the log that were dropped.
    pub log_dropped: Counter,
    /// Refusals of the API because of a limit.
    pub api_refused: ApiRefusals,
}

/// Seconds since the Unix epoch.
pub(super) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
