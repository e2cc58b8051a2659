//! An object as calls answer with it.

use spillway_proto::v1;

use super::{Id, Object, etag};

/// An object with what goes with it, whatever its kind.
pub(super) struct Answer<O> {
    pool: Option<String>,
    object: O,
    etag: String,
    applied: v1::ApplyResponse,
}

impl<O: Object> Answer<O> {
    /// An object of a generation.
    pub(super) fn of(object: &O, id: &Id, generation: u64) -> Self {
        let (pool, object, etag) = (id.pool.clone(), object.clone(), etag(object));
        let applied = v1::ApplyResponse { generation, ..v1::ApplyResponse::default() };
        Self { pool, object, etag, applied }
    }

    /// The same of a call that changed something.
    pub(super) fn with(self, applied: v1::ApplyResponse) -> Self {
        Self { applied, ..self }
    }
}

macro_rules! answers {
    ($($message:ident, $answer:ident, $field:ident);* $(;)?) => {$(
        impl From<Answer<v1::$message>> for v1::$answer {
            fn from(answer: Answer<v1::$message>) -> Self {
                let Answer { pool: _, object, etag, applied } = answer;
                let v1::ApplyResponse {
 generation, changes, memory, movements, warnings, movements_unknown
 } = applied;
                Self { $field: Some(object), etag, generation, changes, movements, memory, warnings, movements_unknown }
            }
        }
    )*};
}

answers! {
    Region, RegionObject, region;
    HealthCheck, HealthCheckObject, health_check;
    Pool, PoolObject, pool;
    Service, ServiceObject, service;
}

impl From<Answer<v1::Backend>> for v1::BackendObject {
    fn from(answer: Answer<v1::Backend>) -> Self {
        let Answer { pool, object, etag, applied } = answer;
        let v1::ApplyResponse {
            generation,
            changes,
            memory,
            movements,
            warnings,
            movements_unknown,
        } = applied;
        let pool = pool.unwrap_or_default();
        Self {
            pool,
            backend: Some(object),
            etag,
            generation,
            changes,
            movements,
            memory,
            warnings,
            movements_unknown,
        }
    }
}

/// What came of a removal, whatever went.
pub(super) struct Removed(pub(super) v1::ApplyResponse);

macro_rules! removals {
    ($($answer:ident),* $(,)?) => {$(
        impl From<Removed> for v1::$answer {
            fn from(Removed(applied): Removed) -> Self {
                let v1::ApplyResponse {
 generation, changes, memory, movements, warnings, movements_unknown
 } = applied;
                Self { generation, changes, movements, memory, warnings, movements_unknown }
            }
        }
    )*};
}

removals! {
    DeleteRegionResponse,
    DeleteHealthCheckResponse,
    DeletePoolResponse,
    DeleteBackendResponse,
    DeleteServiceResponse,
}
