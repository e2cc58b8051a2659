use std::fmt;

/// What the health service of gRPC says, `HealthCheckResponse.ServingStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServingStatus {
    Unknown,
    Serving,
    NotServing,
    ServiceUnknown,
    /// A number that the protocol does not have.
    Other(i32),
}

impl From<i32> for ServingStatus {
    fn from(number: i32) -> Self {
        match number {
            0 => Self::Unknown,
            1 => Self::Serving,
            2 => Self::NotServing,
            3 => Self::ServiceUnknown,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for ServingStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("UNKNOWN"),
            Self::Serving => f.write_str("SERVING"),
            Self::NotServing => f.write_str("NOT_SERVING"),
            Self::ServiceUnknown => f.write_str("SERVICE_UNKNOWN"),
            Self::Other(number) => write!(f, "status {number}"),
        }
    }
}
