//! The calls of `spillway.v1.Overrides`.

use std::time::Duration;

use spillway_proto::v1::{
    ListOverridesRequest, ListOverridesResponse, OverrideTarget, RemoveOverridesRequest,
    RemoveOverridesResponse, SetOverridesRequest, SetOverridesResponse,
    overrides_server::Overrides,
};
use tonic::{Request, Response, Status};

use super::{
    access::{caller, may_change, within_pools, working},
    convert::{
        OrStatus, WrongField, override_kind, override_message, override_names, override_target,
        warning,
    },
    page::{PageKey, PageRequest},
    service::reason,
};
use crate::audit::Audit;
use lb_control::command::{OverrideChange, OverridesChanged};
use lb_member::Changes;
use lb_model::overrides::{Action, ActionError, Key, Kind, Percent, Scope, Target};

/// Most targets and names of a request.
const MOST_TARGETS: usize = 1000;
const MOST_NAMES: usize = 4000;

/// Longest time of an override.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// The service `spillway.v1.Overrides`.
#[derive(Debug)]
pub(super) struct OverridesApi {
    changes: Changes,
    audit: Audit,
}

impl OverridesApi {
    pub(super) fn new(changes: Changes, audit: Audit) -> Self {
        Self { changes, audit }
    }

    async fn change(
        &self,
        change: OverrideChange,
        dry_run: bool,
        text: &str,
    ) -> Result<OverridesChanged, Status> {
        let by = (caller().actor, reason(text)?);
        let _at_work = working().await;
        let changed = self.audit.change_overrides(&self.changes, change, dry_run, by).await;
        changed.or_status()?.or_status()
    }
}

#[tonic::async_trait]
impl Overrides for OverridesApi {
    async fn set_overrides(
        &self,
        request: Request<SetOverridesRequest>,
    ) -> Result<Response<SetOverridesResponse>, Status> {
        let request = request.into_inner();
        may_change(request.validate_only)?;
        let action = action(&request)?;
        let targets = targets(&request.targets, action)?;
        targets.iter().try_for_each(within_pools)?;
        let time = request.duration.map(time).transpose()?;
        let scope = if request.local { Scope::Local } else { Scope::Shared };
        let wrong = |error: ActionError| WrongField::new("local", error.to_string());
        scope.check(action.kind()).map_err(wrong)?;
        let change = OverrideChange::Set { targets, action, time, scope };
        let changed = self.change(change, request.validate_only, &request.reason).await?;
        let overrides = changed.overrides.iter().map(|(key, it)| override_message((key, it)));
        Ok(Response::new(SetOverridesResponse {
            overrides: overrides.collect(),
            revision: changed.revision,
            unstored: changed.unstored.unwrap_or_default(),
            warnings: changed.warnings.iter().map(warning).collect(),
        }))
    }

    async fn remove_overrides(
        &self,
        request: Request<RemoveOverridesRequest>,
    ) -> Result<Response<RemoveOverridesResponse>, Status> {
        let RemoveOverridesRequest { names, reason, validate_only } = request.into_inner();
        may_change(validate_only)?;
        check_number("names", names.len(), MOST_NAMES)?;
        let keys = override_names(&names)?;
        keys.iter().try_for_each(|key| within_pools(&key.target))?;
        let change = OverrideChange::Remove(keys);
        let changed = self.change(change, validate_only, &reason).await?;
        let removed = changed.overrides.iter().map(|(key, it)| override_message((key, it)));
        Ok(Response::new(RemoveOverridesResponse {
            removed: removed.collect(),
            revision: changed.revision,
            unstored: changed.unstored.unwrap_or_default(),
            warnings: changed.warnings.iter().map(warning).collect(),
        }))
    }

    async fn list_overrides(
        &self,
        request: Request<ListOverridesRequest>,
    ) -> Result<Response<ListOverridesResponse>, Status> {
        let ListOverridesRequest { page_size, page_token, pool } = request.into_inner();
        let page = PageRequest::new(page_size, &page_token, &format!("overrides {pool:?}"))?;
        let _at_work = working().await;
        let in_force = self.changes.commands().overrides().await.or_status()?;
        let is_of_pool = |key: &Key| key.target.pool().is_some_and(|name| name.as_str() == pool);
        let listed = in_force.overrides.iter();
        let listed = listed.filter(|(key, _)| pool.is_empty() || is_of_pool(key));
        let mut listed: Vec<_> =
            listed.map(|(key, it)| (PageKey::new("", &key.to_string()), (key, it))).collect();
        listed.sort_by(|(one, _), (other, _)| one.cmp(other));
        let (overrides, next_page_token) = page.page(listed.into_iter(), override_message, 0);
        Ok(Response::new(ListOverridesResponse {
            overrides,
            revision: in_force.overrides.revision(),
            unstored: in_force.is_unstored,
            next_page_token,
        }))
    }
}

fn check_number(field: &str, number: usize, most: usize) -> Result<(), WrongField> {
    match number {
        0 => Err(WrongField::new(field, "must be set")),
        number if number > most => {
            Err(WrongField::new(field, format!("has {number} entries; at most {most} are allowed")))
        }
        _ => Ok(()),
    }
}

fn action(request: &SetOverridesRequest) -> Result<Action, WrongField> {
    let kind = override_kind(request.kind)
        .ok_or_else(|| WrongField::new("kind", "must be drain, disable, weight or scale"))?;
    let percent = || {
        let percent = request
            .percent
            .ok_or_else(|| WrongField::new("percent", "must be set for this kind"))?;
        let percent = u8::try_from(percent).ok().and_then(|it| Percent::try_from(it).ok());
        percent.ok_or_else(|| WrongField::new("percent", "must be 0 to 100"))
    };
    match kind {
        Kind::Drain | Kind::Disable if request.percent.is_some() => {
            Err(WrongField::new("percent", "must not be set for this kind"))
        }
        Kind::Drain => Ok(Action::Drain),
        Kind::Disable => Ok(Action::Disable),
        Kind::Weight => Ok(Action::Weight(percent()?)),
        Kind::Scale => Ok(Action::Scale(percent()?)),
    }
}

fn targets(messages: &[OverrideTarget], action: Action) -> Result<Vec<Target>, WrongField> {
    check_number("targets", messages.len(), MOST_TARGETS)?;
    let target = |(at, message): (usize, &OverrideTarget)| {
        let target = override_target(&format!("targets[{at}]"), message)?;
        match action.check(&target) {
            Ok(()) => Ok(target),
            Err(error) => {
                let field = match error {
                    ActionError::Scale => "percent",
                    _ => "kind",
                };
                Err(WrongField::new(field, error.to_string()))
            }
        }
    };
    messages.iter().enumerate().map(target).collect()
}

fn time(duration: prost_types::Duration) -> Result<Duration, WrongField> {
    let time = Duration::try_from(duration).ok().filter(|it| !it.is_zero() && *it <= LONGEST);
    time.ok_or_else(|| WrongField::new("duration", "must be above 0, and 366 days at most"))
}
