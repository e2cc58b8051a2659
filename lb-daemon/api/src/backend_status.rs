//! Which backends an answer of `Status` has.

use std::collections::BTreeSet;

use prost::Message as _;
use spillway_proto::v1::{StatusRequest, StatusResponse};

use super::{
    convert::{self, WrongField},
    page::{PageKey, PageRequest},
};
use lb_config::message::ApiEnum;
use lb_control::command::{self, Refusal, Status};
use lb_model::{MemberState, NamedValue as _};

/// The backends that a request asks for.
#[derive(Debug)]
pub(super) struct BackendSelection {
    /// Empty: all.
    pools: BTreeSet<String>,
    /// Empty: all.
    regions: BTreeSet<String>,
    /// Empty: any.
    states: Vec<MemberState>,
    /// `None`: all backends at once.
    page: Option<PageRequest>,
}

impl BackendSelection {
    /// # Errors
    /// A state, the size or the token is wrong.
    pub(super) fn new(request: StatusRequest) -> Result<Self, WrongField> {
        let StatusRequest { pools, regions, states, page_size, page_token } = request;
        let (pools, regions) = (BTreeSet::from_iter(pools), BTreeSet::from_iter(regions));
        let states = states.iter().enumerate().map(|(at, number)| {
            let state = MemberState::from_api(*number).ok().flatten();
            let cause = || format!("{number} is not a state that this version knows");
            state.ok_or_else(|| WrongField::new(format!("states[{at}]"), cause()))
        });
        // Each once: they are looked through for each backend.
        let states = states.collect::<Result<Vec<_>, _>>()?;
        let known = MemberState::ALL.iter().copied();
        let states: Vec<_> = known.filter(|state| states.contains(state)).collect();
        let page = match (page_size, &*page_token) {
            (0, "") => None,
            (size, token) => {
                let list = format!("status {pools:?} {regions:?} {states:?}");
                Some(PageRequest::new(size, token, &list)?)
            }
        };
        Ok(Self { pools, regions, states, page })
    }

    /// Whether it has all backends at once.
    pub(super) fn is_all(&self) -> bool {
        let Self { pools, regions, states, page } = self;
        pools.is_empty() && regions.is_empty() && states.is_empty() && page.is_none()
    }

    /// # Errors
    /// There is no such pool.
    pub(super) fn answer(&self, status: &Status) -> Result<StatusResponse, Refusal> {
        let is_there =
            |name: &&String| status.pools.binary_search_by(|it| it.pool.as_str().cmp(name)).is_ok();
        if let Some(missing) = self.pools.iter().find(|name| !is_there(name)) {
            let no_pool = || Refusal::NoPool(missing.clone());
            return Err(status.unusable.clone().map_or_else(no_pool, Refusal::Unusable));
        }
        let pools = status.pools.iter();
        let pools =
            pools.filter(|it| self.pools.is_empty() || self.pools.contains(it.pool.as_str()));
        let selected = pools.flat_map(|pool| &pool.backends).filter(|it| self.has(it));
        let is_later_page = self.page.as_ref().is_some_and(|page| page.after().is_some());
        let head = match is_later_page {
            true => StatusResponse::default(),
            false => convert::without_backends(status),
        };
        let (backends, next_page_token) = match &self.page {
            None => (selected.map(convert::backend).collect(), String::new()),
            Some(page) => {
                let key =
                    |it: &command::BackendStatus| PageKey::backend(it.pool.as_str(), it.address);
                page.page(selected.map(|it| (key(it), it)), convert::backend, head.encoded_len())
            }
        };
        Ok(StatusResponse { backends, next_page_token, ..head })
    }

    fn has(&self, backend: &command::BackendStatus) -> bool {
        let is_in = self.regions.is_empty() || self.regions.contains(backend.region.as_str());
        is_in && (self.states.is_empty() || self.states.contains(&backend.state))
    }
}
