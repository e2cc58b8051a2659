//! What the kinds of objects have in common, and where each stands in a configuration.

use std::{fmt, net::IpAddr};

use prost::Message;
use spillway_proto::v1;

use super::{Refused, users};
use lb_base::Quoted;

/// An object of the API, named within its list.
pub(super) trait Object: Message + Default + Clone + PartialEq {
    /// What people call it.
    const KIND: &'static str;
    /// Its field in requests.
    const FIELD: &'static str;
    /// The list it is in.
    const LIST: &'static str;
    /// The field that names it.
    const ID: &'static str = "name";
    /// Its message.
    const MESSAGE: &'static str;

    /// What names it.
    fn name(&self) -> &str;

    /// The list that an object of this id is in; `None`: its pool is missing.
    fn list<'a>(configuration: &'a v1::Configuration, id: &Id) -> Option<&'a [Self]>;

    /// As [`Self::list`], to be changed.
    fn list_mut<'a>(configuration: &'a mut v1::Configuration, id: &Id)
    -> Option<&'a mut Vec<Self>>;

    /// Who needs it, each with what for.
    fn users(configuration: &v1::Configuration, id: &Id) -> Vec<String>;

    /// Takes away what means nothing any more once it has gone.
    fn tidy(_: &mut v1::Configuration, _: &Id) {}

    /// The smallest configuration that is valid with this object, which tells what its fields are
    /// where they are left out. `None`: none of them follows another of its fields.
    fn alone(&self) -> Option<v1::Configuration>;

    /// The id of an object in a pool, or in none. `of` is where the request has its name.
    fn id(pool: Option<&str>, name: &str, of: &str) -> Result<Id, Refused> {
        debug_assert!(pool.is_none());
        match name {
            "" => Err(Refused::wrong(format!("{of}{}", Self::ID), "must be set")),
            name => Ok(Id { kind: Self::KIND, pool: None, name: name.into() }),
        }
    }
}

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    kind: &'static str,
    /// The pool that a backend is in.
    pub(super) pool: Option<String>,
    /// Its name; of a backend the address, in its usual spelling.
    pub(super) name: String,
}

impl Id {
    /// The id of an object of the configuration in force.
    pub(super) fn of_listed<O: Object>(pool: Option<&str>, object: &O) -> Self {
        Self { kind: O::KIND, pool: pool.map(Into::into), name: object.name().into() }
    }

    /// The pool that it should be in.
    pub(super) fn outer(&self) -> Self {
        let name = self.pool.clone().unwrap_or_default();
        Self { kind: v1::Pool::KIND, pool: None, name }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pool {
            Some(pool) => write!(f, "pool {}: {} {}", Quoted(pool), self.kind, self.name),
            None => write!(f, "{} {}", self.kind, Quoted(&self.name)),
        }
    }
}

/// Digest of an object that has every default spelt out.
pub(super) fn etag<O: Object>(object: &O) -> String {
    format!("{:016x}", xxhash_rust::xxh64::xxh64(&object.encode_to_vec(), 0))
}

/// A list of the configuration itself.
macro_rules! top_level {
    ($message:ident, $kind:literal, $field:literal, $list:ident, $users:path, $alone:expr) => {
        impl Object for v1::$message {
            const KIND: &'static str = $kind;
            const FIELD: &'static str = $field;
            const LIST: &'static str = stringify!($list);
            const MESSAGE: &'static str = concat!("spillway.v1.", stringify!($message));

            fn name(&self) -> &str {
                &self.name
            }

            fn list<'a>(configuration: &'a v1::Configuration, _: &Id) -> Option<&'a [Self]> {
                Some(&configuration.$list)
            }

            fn list_mut<'a>(
                configuration: &'a mut v1::Configuration,
                _: &Id,
            ) -> Option<&'a mut Vec<Self>> {
                Some(&mut configuration.$list)
            }

            fn users(configuration: &v1::Configuration, id: &Id) -> Vec<String> {
                $users(configuration, &id.name)
            }

            fn alone(&self) -> Option<v1::Configuration> {
                $alone(self)
            }
        }
    };
}

top_level!(Region, "region", "region", regions, users::of_region, |_| None);
top_level!(
    HealthCheck,
    "health check",
    "health_check",
    health_checks,
    users::of_health_check,
    |check: &v1::HealthCheck| {
        let health_checks = vec![check.clone()];
        Some(v1::Configuration { health_checks, ..v1::Configuration::default() })
    }
);
top_level!(Pool, "pool", "pool", pools, users::of_pool, |_| None);
top_level!(Service, "service", "service", services, users::of_service, |service: &v1::Service| {
    let pools = vec![v1::Pool { name: service.pool.clone(), ..v1::Pool::default() }];
    let services = vec![service.clone()];
    Some(v1::Configuration { pools, services, ..v1::Configuration::default() })
});

impl Object for v1::Backend {
    const KIND: &'static str = "backend";
    const FIELD: &'static str = "backend";
    const LIST: &'static str = "backends";
    const ID: &'static str = "address";
    const MESSAGE: &'static str = "spillway.v1.Backend";

    fn name(&self) -> &str {
        &self.address
    }

    fn list<'a>(configuration: &'a v1::Configuration, id: &Id) -> Option<&'a [Self]> {
        let pool = configuration.pools.iter().find(|pool| Some(&pool.name) == id.pool.as_ref())?;
        Some(&pool.backends)
    }

    fn list_mut<'a>(
        configuration: &'a mut v1::Configuration,
        id: &Id,
    ) -> Option<&'a mut Vec<Self>> {
        let mut pools = configuration.pools.iter_mut();
        Some(&mut pools.find(|pool| Some(&pool.name) == id.pool.as_ref())?.backends)
    }

    fn users(configuration: &v1::Configuration, id: &Id) -> Vec<String> {
        let pool = configuration.pools.iter().find(|pool| Some(&pool.name) == id.pool.as_ref());
        pool.map(|pool| users::of_backend(pool, &id.name)).unwrap_or_default()
    }

    /// That a region is drained ends with the last backend there.
    fn tidy(configuration: &mut v1::Configuration, id: &Id) {
        let mut pools = configuration.pools.iter_mut();
        let Some(pool) = pools.find(|pool| Some(&pool.name) == id.pool.as_ref()) else { return };
        let v1::Pool { backends, groups, .. } = pool;
        groups.retain(|group| backends.iter().any(|backend| backend.region == group.region));
    }

    fn alone(&self) -> Option<v1::Configuration> {
        None
    }

    fn id(pool: Option<&str>, name: &str, of: &str) -> Result<Id, Refused> {
        let pool = pool.unwrap_or_default();
        if pool.is_empty() {
            return Err(Refused::wrong("pool", "must be set"));
        }
        if name.is_empty() {
            return Err(Refused::wrong(format!("{of}address"), "must be set"));
        }
        let address: IpAddr = name.parse().map_err(|_| {
            let cause = format!("{} is not an IPv4 or IPv6 address", Quoted(name));
            Refused::wrong(format!("{of}address"), cause)
        })?;
        Ok(Id { kind: Self::KIND, pool: Some(pool.into()), name: address.to_string() })
    }
}
