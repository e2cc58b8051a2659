//! What the kinds of objects have in common, and where each stands in a configuration.

use std::{collections::HashSet, fmt, net::IpAddr};

use prost::Message;
use spillway_proto::v1::{self, Configuration, Group, Pool};

use super::ObjectRefused;
use lb_base::Quoted;

/// An object of the API, named within its list.
pub(super) trait Object: Message + Default + Clone + PartialEq {
    /// Name of the kind in messages.
    const KIND: &'static str;
    /// Its field in requests.
    const FIELD: &'static str;
    /// The list it is in.
    const LIST: &'static str;
    /// The field that names it.
    const ID: &'static str = "name";
    /// Its message.
    const MESSAGE: &'static str;

    fn name(&self) -> &str;

    fn etag_mut(&mut self) -> &mut String;

    /// The field for the pool of a backend.
    fn pool_mut(&mut self) -> Option<&mut String> {
        None
    }

    /// The list of objects that has this id; `None`: its pool does not exist.
    fn list<'a>(configuration: &'a Configuration, id: &Id) -> Option<&'a [Self]>;

    fn list_mut<'a>(configuration: &'a mut Configuration, id: &Id) -> Option<&'a mut Vec<Self>>;

    /// Objects that use this one, and how.
    fn users(configuration: &Configuration, id: &Id) -> Vec<String>;

    /// Removes what has no meaning without the object.
    fn tidy(_: &mut Configuration, _: &Id) {}

    /// The smallest valid configuration with this object, from which its defaults are computed. `None`: no default depends
    /// on another field of the object.
    fn alone(&self) -> Option<Configuration>;

    /// The pool whose backends a call about an object looks at.
    fn pool(id: &Id) -> Needs<'_>;

    /// The id of an object, in a pool if it is a backend. `path` is the path of the name in the request.
    fn id(pool: Option<&str>, name: &str, path: &str) -> Result<Id, ObjectRefused> {
        debug_assert!(pool.is_none());
        match name {
            "" => Err(ObjectRefused::wrong(format!("{path}{}", Self::ID), "must be set")),
            name => Ok(Id { kind: Self::KIND, pool: None, name: name.into() }),
        }
    }
}

/// The backends that a call about an object looks at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Needs<'a> {
    /// Those of this pool, or none.
    Pool(Option<&'a str>),
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) kind: &'static str,
    /// The pool that a backend is in.
    pub(super) pool: Option<String>,
    /// Its name; of a backend the address, in its usual spelling.
    pub(super) name: String,
}

impl Id {
    pub(super) fn from_listed<O: Object>(pool: Option<&str>, object: &O) -> Self {
        Self { kind: O::KIND, pool: pool.map(Into::into), name: object.name().into() }
    }

    /// No object of a kind, to find the list of those that are in no pool.
    pub(super) fn none<O: Object>() -> Self {
        Self { kind: O::KIND, pool: None, name: String::new() }
    }

    /// The id of its pool.
    pub(super) fn outer(&self) -> Self {
        let name = self.pool.clone().unwrap_or_default();
        Self { kind: Pool::KIND, pool: None, name }
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

/// Digest of an object with all defaults.
pub(super) fn etag<O: Object>(object: &O) -> String {
    format!("{:016x}", xxhash_rust::xxh64::xxh64(&object.encode_to_vec(), 0))
}

/// The object with what answers have of an object of its own.
pub(super) fn answered<O: Object>(object: &O, id: &Id) -> O {
    let mut answer = object.clone();
    *answer.etag_mut() = etag(object);
    if let (Some(pool), Some(name)) = (answer.pool_mut(), &id.pool) {
        pool.clone_from(name);
    }
    answer
}

/// A list of the configuration itself.
macro_rules! top_level {
    ($message:ident, $kind:literal, $field:literal, $list:ident, $users:path, $needs:expr, $alone:expr) => {
        impl Object for v1::$message {
            const KIND: &'static str = $kind;
            const FIELD: &'static str = $field;
            const LIST: &'static str = stringify!($list);
            const MESSAGE: &'static str = concat!("spillway.v1.", stringify!($message));

            fn name(&self) -> &str {
                &self.name
            }

            fn etag_mut(&mut self) -> &mut String {
                &mut self.etag
            }

            fn list<'a>(configuration: &'a Configuration, _: &Id) -> Option<&'a [Self]> {
                Some(&configuration.$list)
            }

            fn list_mut<'a>(
                configuration: &'a mut Configuration,
                _: &Id,
            ) -> Option<&'a mut Vec<Self>> {
                Some(&mut configuration.$list)
            }

            fn users(configuration: &Configuration, id: &Id) -> Vec<String> {
                $users(configuration, &id.name)
            }

            fn pool(id: &Id) -> Needs<'_> {
                $needs(id)
            }

            fn alone(&self) -> Option<Configuration> {
                $alone(self)
            }
        }
    };
}

top_level!(Region, "region", "region", regions, users_of_region, |_| Needs::All, |_| None);
top_level!(
    HealthCheck,
    "health check",
    "health_check",
    health_checks,
    users_of_health_check,
    |_| Needs::Pool(None),
    |check: &v1::HealthCheck| {
        let health_checks = vec![check.clone()];
        Some(Configuration { health_checks, ..Configuration::default() })
    }
);
top_level!(Pool, "pool", "pool", pools, users_of_pool, backends_of_itself, |_| None);
top_level!(
    Service,
    "service",
    "service",
    services,
    users_of_service,
    |_| Needs::Pool(None),
    |service: &v1::Service| {
        let pools = vec![Pool { name: service.pool.clone(), ..Pool::default() }];
        let services = vec![service.clone()];
        Some(Configuration { pools, services, ..Configuration::default() })
    }
);

impl Object for v1::Backend {
    const KIND: &'static str = "backend";
    const FIELD: &'static str = "backend";
    const LIST: &'static str = "backends";
    const ID: &'static str = "address";
    const MESSAGE: &'static str = "spillway.v1.Backend";

    fn name(&self) -> &str {
        &self.address
    }

    fn etag_mut(&mut self) -> &mut String {
        &mut self.etag
    }

    fn pool_mut(&mut self) -> Option<&mut String> {
        Some(&mut self.pool)
    }

    fn list<'a>(configuration: &'a Configuration, id: &Id) -> Option<&'a [Self]> {
        let pool = configuration.pools.iter().find(|pool| Some(&pool.name) == id.pool.as_ref())?;
        Some(&pool.backends)
    }

    fn list_mut<'a>(configuration: &'a mut Configuration, id: &Id) -> Option<&'a mut Vec<Self>> {
        let mut pools = configuration.pools.iter_mut();
        Some(&mut pools.find(|pool| Some(&pool.name) == id.pool.as_ref())?.backends)
    }

    fn users(configuration: &Configuration, id: &Id) -> Vec<String> {
        let pool = configuration.pools.iter().find(|pool| Some(&pool.name) == id.pool.as_ref());
        pool.map(|pool| users_of_backend(pool, &id.name)).unwrap_or_default()
    }

    /// That a region is drained ends with the last backend there.
    fn tidy(configuration: &mut Configuration, id: &Id) {
        let mut pools = configuration.pools.iter_mut();
        let Some(pool) = pools.find(|pool| Some(&pool.name) == id.pool.as_ref()) else { return };
        forget_empty_groups(pool);
    }

    fn pool(id: &Id) -> Needs<'_> {
        Needs::Pool(id.pool.as_deref())
    }

    fn alone(&self) -> Option<Configuration> {
        None
    }

    fn id(pool: Option<&str>, name: &str, path: &str) -> Result<Id, ObjectRefused> {
        let pool = pool.unwrap_or_default();
        if pool.is_empty() {
            return Err(ObjectRefused::wrong(format!("{path}pool"), "must be set"));
        }
        if name.is_empty() {
            return Err(ObjectRefused::wrong(format!("{path}address"), "must be set"));
        }
        let address: IpAddr = name.parse().map_err(|_| {
            let cause = format!("{} is not an IPv4 or IPv6 address", Quoted(name));
            ObjectRefused::wrong(format!("{path}address"), cause)
        })?;
        Ok(Id { kind: Self::KIND, pool: Some(pool.into()), name: address.to_string() })
    }
}

fn backends_of_itself(id: &Id) -> Needs<'_> {
    Needs::Pool(Some(&id.name))
}

/// Pools that have backends or settings in a region or prefer it, and regions that overflow to it.
pub(super) fn users_of_region(configuration: &Configuration, name: &str) -> Vec<String> {
    let pools = configuration.pools.iter().flat_map(|pool| {
        let backends = pool.backends.iter().filter(|backend| backend.region == name).count();
        let uses = [
            (backends == 1, "has a backend there"),
            (backends > 1, "has backends there"),
            (pool.groups.iter().any(|group| group.region == name), "has settings for it"),
            (pool.preferred_regions.iter().any(|region| region == name), "prefers it"),
        ];
        let uses = uses.into_iter().filter(|(is, _)| *is);
        uses.map(|(_, how)| format!("pool {} ({how})", Quoted(&pool.name)))
    });
    let regions = configuration.regions.iter();
    let regions = regions.filter(|region| region.overflow_to.iter().any(|to| to == name));
    pools.chain(regions.map(|r| format!("region {} (overflows to it)", Quoted(&r.name)))).collect()
}

/// Pools that are checked by a health check.
pub(super) fn users_of_health_check(configuration: &Configuration, name: &str) -> Vec<String> {
    let checked = |pool: &&Pool| pool.health_checks.iter().any(|check| check == name);
    let pools = configuration.pools.iter().filter(checked);
    pools.map(|pool| format!("pool {}", Quoted(&pool.name))).collect()
}

/// Services of a pool.
pub(super) fn users_of_pool(configuration: &Configuration, name: &str) -> Vec<String> {
    let services = configuration.services.iter().filter(|service| service.pool == name);
    services.map(|service| format!("service {}", Quoted(&service.name))).collect()
}

/// The pool of a backend, where it has settings for the region of which this is the last one. That the
/// region is drained is none: it goes with the backend.
pub(super) fn users_of_backend(pool: &Pool, address: &str) -> Vec<String> {
    let Some(gone) = pool.backends.iter().find(|backend| backend.address == address) else {
        return Vec::new();
    };
    match pool.backends.iter().filter(|backend| backend.region == gone.region).count() {
        1 => users_of_last(pool, &gone.region),
        _ => Vec::new(),
    }
}

/// The same of the last backend in a region.
pub(super) fn users_of_last(pool: &Pool, region: &str) -> Vec<String> {
    let sets = |group: &&Group| {
        let scaled = group.scaler.is_some_and(|scaler| scaler != 1.0);
        group.region == region && (group.capacity_per_second.is_some() || scaled)
    };
    let settings = pool.groups.iter().filter(sets);
    let of = |group: &Group| {
        let (pool, region) = (Quoted(&pool.name), Quoted(&group.region));
        format!(
            "pool {pool} (has a capacity or scaler for region {region}, and no other backend there)"
        )
    };
    settings.map(of).collect()
}

/// Removes the settings of regions in which the pool has no backends.
pub(super) fn forget_empty_groups(pool: &mut Pool) {
    let regions: HashSet<_> = pool.backends.iter().map(|backend| &*backend.region).collect();
    pool.groups.retain(|group| regions.contains(&*group.region));
}

/// Nothing uses a service.
pub(super) fn users_of_service(_: &Configuration, _: &str) -> Vec<String> {
    Vec::new()
}
