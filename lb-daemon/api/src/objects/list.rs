//! Lists of objects, a page at a time. A page of backends converts no others, however many there are.

use std::{
    net::IpAddr,
    ops::Bound::{Excluded, Included, Unbounded},
    sync::Arc,
};

use spillway_proto::v1;

use super::{Content, Id, InForce, Needs, Object, ObjectRefused, Objects, object::answered};
use crate::page::{PageKey, PageRequest};
use lb_config::message;
use lb_model::{AdminState, Backend, Configuration, Name, Pool};

/// A page of a list.
pub(super) struct Page<O> {
    pub(super) objects: Vec<O>,
    pub(super) next_page_token: String,
    pub(super) generation: u64,
}

/// Which backends are listed.
#[derive(Debug, Default)]
pub(super) struct BackendFilter {
    /// Empty: of all pools.
    pub(super) pool: String,
    /// Empty: in all regions.
    pub(super) region: String,
    /// `None`: whatever the configuration asks of them.
    pub(super) admin_state: Option<AdminState>,
}

impl Objects {
    /// Objects that are not in a pool, other than pools.
    pub(super) async fn list<O: Object>(
        &self,
        request: &PageRequest,
    ) -> Result<Page<O>, ObjectRefused> {
        let in_force = self.read().await?;
        let draft = in_force.draft(Needs::Pool(None));
        Ok(list_of(&in_force, draft.message(), request, |_| true))
    }

    /// Services of a pool; of all pools if it is empty.
    ///
    /// # Errors
    /// There is no such pool.
    pub(super) async fn list_services(
        &self,
        request: &PageRequest,
        pool: &str,
    ) -> Result<Page<v1::Service>, ObjectRefused> {
        let in_force = self.read().await?;
        let draft = in_force.draft(Needs::Pool(None));
        check_listed::<v1::Pool>(pool, draft.message().pools.iter().map(|pool| &*pool.name))?;
        let is_listed = |service: &v1::Service| pool.is_empty() || service.pool == pool;
        Ok(list_of(&in_force, draft.message(), request, is_listed))
    }

    pub(super) async fn list_pools(
        &self,
        request: &PageRequest,
    ) -> Result<Page<v1::Pool>, ObjectRefused> {
        let in_force = self.read().await?;
        let answer = |pool: &v1::Pool| answered(pool, &Id::from_listed(None, pool));
        Ok(match &in_force.configuration {
            Content::InForce(configuration) => {
                let pools = configuration.pools.iter();
                let pools = pools.map(|it| (PageKey::new("", it.0.as_str()), it));
                page(&in_force, request, pools, |(name, pool): (&Name, &Arc<Pool>)| {
                    answer(&message::pool(name, pool))
                })
            }
            Content::Stored(message) => {
                let pools = sorted(&message.pools, |pool| PageKey::new("", &pool.name));
                page(&in_force, request, pools.into_iter(), answer)
            }
        })
    }

    /// # Errors
    /// There is no such pool or region.
    pub(super) async fn list_backends(
        &self,
        request: &PageRequest,
        filter: &BackendFilter,
    ) -> Result<Page<v1::Backend>, ObjectRefused> {
        let in_force = self.read().await?;
        let answer = |pool: &str, backend: &v1::Backend| {
            answered(backend, &Id::from_listed(Some(pool), backend))
        };
        Ok(match &in_force.configuration {
            Content::InForce(configuration) => {
                let pools = configuration.pools.keys().map(Name::as_str);
                filter.check(pools, configuration.regions.keys().map(Name::as_str))?;
                let backends = backends_after(configuration, filter, request.after());
                page(&in_force, request, backends, |(pool, address, backend): InPool<'_>| {
                    answer(pool.as_str(), &message::backend((&address, backend)))
                })
            }
            Content::Stored(message) => {
                let pools = message.pools.iter().map(|pool| &*pool.name);
                filter.check(pools, message.regions.iter().map(|region| &*region.name))?;
                let pools = message.pools.iter();
                let backends: Vec<_> = pools
                    .flat_map(|pool| pool.backends.iter().map(|it| (&*pool.name, it)))
                    .filter(|(pool, backend)| filter.takes_message(pool, backend))
                    .collect();
                let backends = sorted(&backends, |(pool, it)| PageKey::new(pool, &it.address));
                page(&in_force, request, backends.into_iter(), |(pool, it)| answer(pool, it))
            }
        })
    }
}

/// A backend, with the name of its pool and its address.
type InPool<'a> = (&'a Name, IpAddr, &'a Backend);

/// The backends after a key, sorted.
fn backends_after<'a>(
    configuration: &'a Configuration,
    filter: &'a BackendFilter,
    after: Option<&PageKey>,
) -> impl Iterator<Item = (PageKey, InPool<'a>)> {
    let from = after.and_then(|key| Some((Name::new(key.pool()).ok()?, key.address()?)));
    let first = from.as_ref().map_or(Unbounded, |(pool, _)| Included(pool.clone()));
    let pools = configuration.pools.range((first, Unbounded));
    let pools = pools.filter(|(name, _)| filter.pool.is_empty() || name.as_str() == filter.pool);
    let backends = pools.flat_map(move |(name, pool)| {
        let first = match &from {
            Some((pool, address)) if pool == name => Excluded(*address),
            _ => Unbounded,
        };
        pool.backends.range((first, Unbounded)).map(move |(address, it)| (name, *address, it))
    });
    let taken = backends.filter(|(.., backend)| filter.takes(backend));
    taken.map(|it| (PageKey::backend(it.0.as_str(), it.1), it))
}

impl BackendFilter {
    /// As text, for a page token.
    pub(super) fn list(&self) -> String {
        let Self { pool, region, admin_state } = self;
        format!("backends {pool:?} {region:?} {admin_state:?}")
    }

    fn check<'a>(
        &self,
        pools: impl Iterator<Item = &'a str>,
        regions: impl Iterator<Item = &'a str>,
    ) -> Result<(), ObjectRefused> {
        check_listed::<v1::Pool>(&self.pool, pools)?;
        check_listed::<v1::Region>(&self.region, regions)
    }

    fn takes(&self, backend: &Backend) -> bool {
        (self.region.is_empty() || backend.region.as_str() == self.region)
            && self.admin_state.is_none_or(|state| backend.admin_state == state)
    }

    fn takes_message(&self, pool: &str, backend: &v1::Backend) -> bool {
        use lb_config::message::ApiEnum as _;
        let state = AdminState::from_api(backend.admin_state).map(Option::unwrap_or_default);
        (self.pool.is_empty() || pool == self.pool)
            && (self.region.is_empty() || backend.region == self.region)
            && self.admin_state.is_none_or(|asked| state.is_ok_and(|state| state == asked))
    }
}

/// # Errors
/// A filter names an object that does not exist.
fn check_listed<'a, O: Object>(
    name: &str,
    mut names: impl Iterator<Item = &'a str>,
) -> Result<(), ObjectRefused> {
    if name.is_empty() || names.any(|each| each == name) {
        return Ok(());
    }
    Err(ObjectRefused::Missing(O::id(None, name, "")?))
}

/// A page of the objects of a kind that are listed.
fn list_of<O: Object>(
    in_force: &InForce,
    configuration: &v1::Configuration,
    request: &PageRequest,
    is_listed: impl Fn(&O) -> bool,
) -> Page<O> {
    let list = O::list(configuration, &Id::none::<O>()).unwrap_or_default();
    let objects = sorted(list, |object| PageKey::new("", object.name()));
    let objects = objects.into_iter().filter(|(_, object)| is_listed(object));
    page(in_force, request, objects, |object: &O| answered(object, &Id::from_listed(None, object)))
}

fn page<L, O: Object>(
    in_force: &InForce,
    request: &PageRequest,
    listed: impl Iterator<Item = (PageKey, L)>,
    message: impl Fn(L) -> O,
) -> Page<O> {
    let (objects, next_page_token) = request.page(listed, message, 0);
    Page { objects, next_page_token, generation: in_force.generation }
}

fn sorted<T>(list: &[T], key: impl Fn(&T) -> PageKey) -> Vec<(PageKey, &T)> {
    let mut sorted: Vec<_> = list.iter().map(|object| (key(object), object)).collect();
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    sorted
}
