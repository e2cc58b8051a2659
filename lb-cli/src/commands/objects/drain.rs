//! `spillway backend drain|enable|disable`, and `drain` and `enable` of pools and regions.
//!
//! A region's groups are in several pools. They change together, as one generation: the configuration in
//! force is read, changed and applied on top of the generation that was read.

use spillway_proto::{SCHEMA_REVISION, v1};
use tonic::Code;

use super::{
    backend::{Address, Addresses},
    calls::{ObjectCalls as _, ObjectId, UpdateOptions},
    hints::add_hint,
    input::resolve_id,
    kind::Kind,
    pool::group_in,
    report::ChangeReport,
};
use crate::{
    arguments::{Options, ReasonArgument},
    client::{DaemonClient, block_on},
    commands::changes::Changes,
    failure::{Exit, Failure},
    output::{print, print_failure},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainAction {
    /// Stop new connections.
    Drain,
    /// Allow new connections as before the drain.
    Enable,
}

/// How often the change is tried when another change comes first.
const MAX_TRIES: usize = 10;

/// The name of the call in the daemon's refusal of a caller who lacks the role.
const APPLY_CALL: &str = "/spillway.v1.Spillway/Apply";

#[derive(clap::Args, Debug)]
pub(crate) struct PoolArguments {
    /// Pool
    name: String,
    /// Only in this region
    #[arg(long)]
    region: Option<String>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reason: ReasonArgument,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RegionArguments {
    /// Region
    name: String,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// Groups by pool and region; `None`: all.
pub(super) struct GroupFilter<'a> {
    pool: Option<&'a str>,
    region: Option<&'a str>,
    dry_run: bool,
    reason: String,
}

/// Arguments that select groups.
pub(super) trait GroupArguments {
    fn groups(&self) -> GroupFilter<'_>;
}

impl GroupArguments for PoolArguments {
    fn groups(&self) -> GroupFilter<'_> {
        let Self { name, region, dry_run, reason } = self;
        let (pool, region, reason) = (Some(&**name), region.as_deref(), reason.text());
        GroupFilter { pool, region, dry_run: *dry_run, reason }
    }
}

impl GroupArguments for RegionArguments {
    fn groups(&self) -> GroupFilter<'_> {
        let (region, reason) = (Some(&*self.name), self.reason.text());
        GroupFilter { pool: None, region, dry_run: self.dry_run, reason }
    }
}

/// Asks the daemon and prints.
///
/// # Errors
/// There is no such pool, region or group, or the daemon refuses or does not answer.
pub(super) fn drain_groups(
    options: Options,
    which: &impl GroupArguments,
    action: DrainAction,
) -> Result<(), Failure> {
    let groups = which.groups();
    let changes = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let mut tries = 1;
        loop {
            match try_drain(&mut daemon, &groups, action).await {
                Err(failure) if failure.is_overtaken() && tries < MAX_TRIES => tries += 1,
                other => break other,
            }
        }
    })?;
    print(&changes, options.output)
}

async fn try_drain(
    daemon: &mut DaemonClient,
    groups: &GroupFilter<'_>,
    action: DrainAction,
) -> Result<Changes, Failure> {
    require_exists::<v1::Pool>(daemon, groups.pool).await?;
    require_exists::<v1::Region>(daemon, groups.region).await?;
    let exported = daemon.export().await?;
    let mut configuration = exported.configuration.unwrap_or_default();
    if set_drained(&mut configuration, groups, action) == 0 {
        return Err(no_backends(groups));
    }
    let request = v1::ApplyRequest {
        configuration: Some(configuration),
        dry_run: groups.dry_run,
        expected_generation: Some(exported.generation),
        schema_revision: SCHEMA_REVISION.into(),
        any_schema: false,
        reason: groups.reason.clone(),
    };
    let applied =
        daemon.apply(request).await.map_err(|failure| describe_denial(failure, groups, action))?;
    Ok(Changes::new(applied, groups.dry_run))
}

/// Names the command instead of the call in a refusal, with what an operator may do instead.
fn describe_denial(failure: Failure, groups: &GroupFilter<'_>, action: DrainAction) -> Failure {
    if failure.code != Some(Code::PermissionDenied) {
        return failure;
    }
    let (drains, kind) = match (action, groups.pool) {
        (DrainAction::Drain, Some(_)) => ("draining", "a pool"),
        (DrainAction::Drain, None) => ("draining", "a region"),
        (DrainAction::Enable, Some(_)) => ("enabling", "a pool"),
        (DrainAction::Enable, None) => ("enabling", "a region"),
    };
    let message = failure.message.replace(APPLY_CALL, &format!("{drains} {kind}"));
    let failure = Failure { message, ..failure };
    if action == DrainAction::Enable || !failure.message.contains(": is operator, ") {
        return failure;
    }
    let pool = groups.pool.map_or(String::new(), |pool| format!(" --pool {pool}"));
    failure.hint(format!(
        "an operator may drain single backends: `spillway backend drain ADDRESS…{pool}`"
    ))
}

async fn require_exists<K: Kind>(
    daemon: &mut DaemonClient,
    name: Option<&str>,
) -> Result<(), Failure> {
    let Some(name) = name else { return Ok(()) };
    let id = ObjectId { pool: String::new(), name: name.into() };
    let got = daemon.objects(async |client| K::get(client, id.clone()).await).await;
    add_hint::<K, _>(daemon, &id, got).await.map(drop)
}

/// Drains or enables groups, and returns their number.
fn set_drained(
    configuration: &mut v1::Configuration,
    which: &GroupFilter<'_>,
    action: DrainAction,
) -> usize {
    let pools = configuration.pools.iter_mut();
    pools
        .filter(|pool| which.pool.is_none_or(|name| pool.name == name))
        .map(|pool| {
            let backends = pool.backends.iter().map(|backend| backend.region.clone());
            let mut regions: Vec<_> =
                backends.filter(|region| which.region.is_none_or(|name| region == name)).collect();
            regions.sort();
            regions.dedup();
            for region in &regions {
                let group = group_in(pool, region);
                group.drained = action == DrainAction::Drain;
                // A scaler of 0 drains a group too.
                group.scaler =
                    group.scaler.filter(|scaler| action == DrainAction::Drain || *scaler > 0.0);
            }
            regions.len()
        })
        .sum()
}

fn no_backends(groups: &GroupFilter<'_>) -> Failure {
    let (message, hint) = match (groups.pool, groups.region) {
        (Some(pool), Some(region)) => (
            format!("pool {pool:?} has no backends in region {region:?}"),
            format!("`spillway backend list --pool {pool}` shows its backends"),
        ),
        (Some(pool), None) => (
            format!("pool {pool:?} has no backends"),
            format!("`spillway backend create --pool {pool}` adds one"),
        ),
        (None, region) => (
            format!("no pool has backends in region {:?}", region.unwrap_or_default()),
            "`spillway backend list` shows the backends".into(),
        ),
    };
    Failure::new(Exit::NotFound, message).hint(hint)
}

#[derive(clap::Args, Debug)]
pub(crate) struct BackendArguments {
    #[command(flatten)]
    which: Addresses,
    /// Only change the backend if it has this etag; for a single backend
    #[arg(long)]
    etag: Option<String>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// Changes each backend by itself, in the order given.
///
/// # Errors
/// There is no such backend, or the daemon refuses or does not answer. Of several failures each is printed and
/// the first is returned.
pub(super) fn set_admin_state(
    options: Options,
    arguments: &BackendArguments,
    admin_state: v1::AdminState,
) -> Result<(), Failure> {
    let each = arguments.which.each();
    if each.len() > 1 && arguments.etag.is_some() {
        let message = "--etag: needs a single backend, but several are named";
        return Err(Failure::new(Exit::Usage, message).hint("name one backend with --etag"));
    }
    block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let mut first = None;
        for which in &each {
            let done = update_backend(&mut daemon, which, arguments, admin_state).await;
            match done.and_then(|done| print(&done, options.output)) {
                Err(failure) if each.len() > 1 => {
                    first.get_or_insert(print_failure(failure));
                }
                other => other?,
            }
        }
        first.map_or(Ok(()), Err)
    })
}

async fn update_backend(
    daemon: &mut DaemonClient,
    which: &Address,
    arguments: &BackendArguments,
    admin_state: v1::AdminState,
) -> Result<ChangeReport<v1::Backend>, Failure> {
    let BackendArguments { etag, dry_run, reason, .. } = arguments;
    let id = resolve_id(daemon, which).await?;
    let backend = v1::Backend {
        address: id.name.clone(),
        admin_state: admin_state.into(),
        ..v1::Backend::default()
    };
    let how = UpdateOptions {
        paths: vec!["admin_state".into()],
        etag: etag.clone().unwrap_or_default(),
        allow_missing: false,
        dry_run: *dry_run,
        reason: reason.text(),
    };
    let pool = id.pool.clone();
    let update = async |client: &mut _| v1::Backend::update(client, pool, backend, how).await;
    let updated = daemon.objects(update).await;
    ChangeReport::new(add_hint::<v1::Backend, _>(daemon, &id, updated).await?, *dry_run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_names_draining_and_what_an_operator_may_do() {
        let denial = |role: &str, pool, region, action, code| {
            let message =
                format!("certificate a: is {role}, but /spillway.v1.Spillway/Apply needs admin");
            let failure = Failure { code, ..Failure::new(Exit::Permission, message) }.hint("ask");
            let groups = GroupFilter { pool, region, dry_run: false, reason: String::new() };
            let Failure { message, hint, exit, .. } = describe_denial(failure, &groups, action);
            assert_eq!(exit, Exit::Permission);
            (message, hint.unwrap())
        };
        let refused = Some(Code::PermissionDenied);
        let single = "an operator may drain single backends: `spillway backend drain ADDRESS…";
        for (role, pool, action, message, hint) in [
            (
                "operator",
                Some("web"),
                DrainAction::Drain,
                "draining a pool",
                format!("{single} --pool web`"),
            ),
            ("operator", None, DrainAction::Drain, "draining a region", format!("{single}`")),
            ("operator", Some("web"), DrainAction::Enable, "enabling a pool", "ask".into()),
            ("viewer", Some("web"), DrainAction::Drain, "draining a pool", "ask".into()),
        ] {
            let message = format!("certificate a: is {role}, but {message} needs admin");
            assert_eq!(denial(role, pool, Some("eu"), action, refused), (message, hint));
        }
        let (message, hint) =
            denial("operator", Some("web"), None, DrainAction::Drain, Some(Code::Internal));
        assert!(message.contains(APPLY_CALL) && hint == "ask", "another failure stays: {message}");
    }

    fn pool(name: &str, regions: &[&str]) -> v1::Pool {
        let backend =
            |region: &&str| v1::Backend { region: (*region).into(), ..Default::default() };
        let backends = regions.iter().map(backend).collect();
        v1::Pool { name: name.into(), backends, ..v1::Pool::default() }
    }

    /// Pool, region, scaler, and whether it is drained.
    fn groups(configuration: &v1::Configuration) -> Vec<(&str, &str, Option<f64>, bool)> {
        let pools = configuration.pools.iter();
        let groups = pools.flat_map(|pool| pool.groups.iter().map(move |group| (pool, group)));
        groups.map(|(p, group)| (&*p.name, &*group.region, group.scaler, group.drained)).collect()
    }

    fn fixture() -> v1::Configuration {
        let mut web = pool("web", &["eu", "us", "eu"]);
        web.groups = vec![v1::Group {
            region: "eu".into(),
            capacity_per_second: Some(5.0),
            scaler: Some(0.5),
            drained: false,
        }];
        v1::Configuration { pools: vec![web, pool("dns", &["eu"])], ..Default::default() }
    }

    #[test]
    fn a_region_is_drained_in_every_pool_and_only_there() {
        let mut configuration = fixture();
        let eu =
            GroupFilter { pool: None, region: Some("eu"), dry_run: false, reason: String::new() };
        assert_eq!(set_drained(&mut configuration, &eu, DrainAction::Drain), 2);
        let drained = [("web", "eu", Some(0.5), true), ("dns", "eu", None, true)];
        assert_eq!(groups(&configuration), drained);
        assert_eq!(configuration.pools[0].groups[0].capacity_per_second, Some(5.0));
    }

    #[test]
    fn a_pool_is_drained_in_all_its_regions_or_in_one_and_comes_back_as_it_was() {
        let mut configuration = fixture();
        let web =
            GroupFilter { pool: Some("web"), region: None, dry_run: false, reason: String::new() };
        assert_eq!(set_drained(&mut configuration, &web, DrainAction::Drain), 2);
        let drained = [("web", "eu", Some(0.5), true), ("web", "us", None, true)];
        assert_eq!(groups(&configuration), drained);
        let us = GroupFilter {
            pool: Some("web"),
            region: Some("us"),
            dry_run: false,
            reason: String::new(),
        };
        assert_eq!(set_drained(&mut configuration, &us, DrainAction::Enable), 1);
        let one = [("web", "eu", Some(0.5), true), ("web", "us", None, false)];
        assert_eq!(groups(&configuration), one);
        assert_eq!(set_drained(&mut configuration, &web, DrainAction::Enable), 2);
        assert_eq!(groups(&configuration)[0], ("web", "eu", Some(0.5), false));
        let none = GroupFilter {
            pool: Some("dns"),
            region: Some("us"),
            dry_run: false,
            reason: String::new(),
        };
        assert_eq!(set_drained(&mut configuration, &none, DrainAction::Drain), 0);
    }

    #[test]
    fn a_scaler_of_0_is_a_drain_too() {
        let mut configuration = fixture();
        configuration.pools[0].groups[0].scaler = Some(0.0);
        let eu = GroupFilter {
            pool: Some("web"),
            region: Some("eu"),
            dry_run: false,
            reason: String::new(),
        };
        assert_eq!(set_drained(&mut configuration, &eu, DrainAction::Enable), 1);
        assert_eq!(groups(&configuration), [("web", "eu", None, false)]);
    }
}
