use std::time::Duration;

/// How a backend's health is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HealthCheck {
    /// What is asked.
    pub probe: Probe,
    /// Port on the backend.
    pub port: u16,
    /// From the start of one check to the start of the next.
    pub interval: Duration,
    /// Time a check may take.
    pub timeout: Duration,
    /// Successes in a row that bring a failed backend back; the very first success suffices alone.
    pub rise: u32,
    /// Failures in a row that take it out.
    pub fall: u32,
    /// How far an interval may be shortened or lengthened at random, percent.
    pub jitter_percent: u32,
}

/// What a check asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Probe {
    /// A TCP connect.
    Tcp,
    /// An HTTP/1.1 request.
    Http(HttpProbe),
}

/// An HTTP/1.1 request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HttpProbe {
    /// Path with its query.
    pub path: String,
    /// Host header; `None`: the backend's address and port.
    pub host: Option<String>,
    /// Lowest status that is a success.
    pub status_min: u16,
    /// Highest status that is a success.
    pub status_max: u16,
}
