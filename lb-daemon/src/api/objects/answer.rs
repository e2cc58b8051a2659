//! An object as calls answer with it.

use spillway_proto::v1;

use super::{Id, Object, etag};

/// An object with what goes with it, whatever its kind.
pub(super) struct Answer<O> {
    pool: Option<String>,
    object: O,
    etag: String,
    generation: u64,
    changes: Vec<v1::Change>,
}

impl<O: Object> Answer<O> {
    /// An object of a generation.
    pub(super) fn of(object: &O, id: &Id, generation: u64) -> Self {
        let (pool, object, etag) = (id.pool.clone(), object.clone(), etag(object));
        Self { pool, object, etag, generation, changes: Vec::new() }
    }

    /// The same of a call that changed something.
    pub(super) fn with(self, changes: Vec<v1::Change>) -> Self {
        Self { changes, ..self }
    }
}

macro_rules! answers {
    ($($message:ident, $answer:ident, $field:ident);* $(;)?) => {$(
        impl From<Answer<v1::$message>> for v1::$answer {
            fn from(answer: Answer<v1::$message>) -> Self {
                let Answer { pool: _, object, etag, generation, changes } = answer;
                Self { $field: Some(object), etag, generation, changes }
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
        let Answer { pool, object, etag, generation, changes } = answer;
        let pool = pool.unwrap_or_default();
        Self { pool, backend: Some(object), etag, generation, changes }
    }
}
