//! Setting and removing overrides.

use std::net::IpAddr;

use clap::Args;
use lb_model::overrides::{Key, Kind, Scope, Target};
use prost_types::Duration;
use spillway_proto::v1;
use tonic::Code;

use super::{
    report::{Removed, Set},
    wait::WaitForSilence,
};
use crate::{
    arguments::{Options, ReasonArgument, parse_duration},
    client::{DaemonClient, block_on},
    commands::{
        confirm::{Confirmation, Request},
        fleet::parse_wait,
        objects::{hint_for_missing_target, parse_name},
    },
    failure::{Exit, Failure},
    output::{print, print_stderr},
};

/// What a command is about.
pub(crate) trait OverrideTargets {
    /// # Errors
    /// A name is none.
    fn targets(&self) -> Result<Vec<Target>, Failure>;
}

#[derive(Args, Debug)]
pub(crate) struct BackendTarget {
    /// Addresses
    #[arg(value_name = "ADDRESS", required = true, value_parser = parse_address)]
    addresses: Vec<IpAddr>,
    /// Only in this pool [default: every pool that has the backend]
    #[arg(long, value_parser = parse_name)]
    pool: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PoolTarget {
    /// Pool
    name: String,
    /// Only in this region
    #[arg(long)]
    region: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RegionTarget {
    /// Region
    name: String,
}

impl OverrideTargets for BackendTarget {
    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let pool = self.pool.as_deref().map(|pool| name("pool", pool)).transpose()?;
        let target = |address: &IpAddr| Target::Backend { address: *address, pool: pool.clone() };
        Ok(self.addresses.iter().map(target).collect())
    }
}

impl OverrideTargets for PoolTarget {
    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let pool = name("pool", &self.name)?;
        let region = self.region.as_deref().map(|region| name("region", region)).transpose()?;
        Ok(vec![match region {
            Some(region) => Target::Group { pool, region },
            None => Target::Pool(pool),
        }])
    }
}

impl OverrideTargets for RegionTarget {
    fn targets(&self) -> Result<Vec<Target>, Failure> {
        Ok(vec![Target::Region(name("region", &self.name)?)])
    }
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "give an IPv4 or IPv6 address; names are not resolved".into())
}

fn name(kind: &str, text: &str) -> Result<lb_model::Name, Failure> {
    lb_model::Name::new(text).map_err(|error| {
        Failure::new(Exit::Usage, format!("{kind} {text:?}: the name {error}"))
            .hint(format!("`spillway {kind} list` lists the names that there are"))
    })
}

/// How an override is set.
#[derive(Args, Debug)]
pub(crate) struct Setting {
    /// How long it lasts, such as 30m or 2h [default: until it is removed]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Only check it, and print what it would be
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// Whether an override is of this balancer alone.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LocalArgument {
    /// At this balancer alone, and not in its fleet; needs no etcd
    #[arg(long)]
    local: bool,
}

impl LocalArgument {
    const fn scope(self) -> Scope {
        if self.local { Scope::Local } else { Scope::Shared }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DisableOptions {
    #[command(flatten)]
    setting: Setting,
    #[command(flatten)]
    local: LocalArgument,
}

#[derive(Args, Debug)]
pub(crate) struct DrainOptions {
    #[command(flatten)]
    setting: Setting,
    #[command(flatten)]
    local: LocalArgument,
    /// Wait until the backends have had no packet for 30 s, at all live balancers of a fleet (with --local at this one), at
    /// most this long [default: as long as it takes]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    #[arg(value_parser = parse_wait, conflicts_with = "dry_run")]
    wait: Option<Option<std::time::Duration>>,
}

#[derive(Args, Debug)]
pub(crate) struct PercentOptions {
    /// Percent of what is configured; 0 is a drain, 100 ends the override
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100))]
    percent: u32,
    #[command(flatten)]
    setting: Setting,
}

/// How an override is removed.
#[derive(Args, Debug)]
pub(crate) struct Ending {
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    local: LocalArgument,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// Sets a drain, and waits if asked to.
///
/// # Errors
/// There is no such target, the daemon refuses or does not answer, or the drain ends while it is waited for.
pub(crate) fn set(
    options: Options,
    targets: &impl OverrideTargets,
    kind: Kind,
    DrainOptions { setting, local, wait: waits }: &DrainOptions,
) -> Result<(), Failure> {
    let what = (kind, None, local.scope());
    let waits = waits.map(WaitForSilence::new);
    if let (Some(waits), Some(lasts)) = (waits, setting.duration) {
        waits.check(lasts)?;
    }
    set_and_wait(options, &targets.targets()?, what, setting, waits)
}

/// Disables backends.
///
/// # Errors
/// There is no such target, or the daemon refuses or does not answer.
pub(crate) fn disable(
    options: Options,
    targets: &BackendTarget,
    DisableOptions { setting, local }: &DisableOptions,
) -> Result<(), Failure> {
    let what = (Kind::Disable, None, local.scope());
    set_and_wait(options, &targets.targets()?, what, setting, None)
}

/// Sets a weight or scale; all of it removes the override.
///
/// # Errors
/// There is no such target, or the daemon refuses or does not answer.
pub(crate) fn set_percent(
    options: Options,
    targets: &impl OverrideTargets,
    kind: Kind,
    PercentOptions { percent, setting }: &PercentOptions,
) -> Result<(), Failure> {
    let Setting { duration, dry_run, reason, .. } = setting;
    match (percent, duration) {
        (100, None) => {
            let what: (&[Kind], _) = (&[kind], Scope::Shared);
            end_with(options, &targets.targets()?, what, *dry_run, reason)
        }
        (100, Some(_)) => Err(Failure::new(Exit::Usage, "--percent 100 ends the override")
            .hint("nothing was changed; leave --for out")),
        _ => {
            let what = (kind, Some(*percent), Scope::Shared);
            set_and_wait(options, &targets.targets()?, what, setting, None)
        }
    }
}

fn set_and_wait(
    options: Options,
    targets: &[Target],
    (kind, percent, scope): (Kind, Option<u32>, Scope),
    setting: &Setting,
    waits: Option<WaitForSilence>,
) -> Result<(), Failure> {
    block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let set = async |Request { dry_run, .. }| {
            let request = v1::SetOverridesRequest {
                targets: targets.iter().map(message).collect(),
                kind: lb_config::message::ApiEnum::to_api(kind).into(),
                percent,
                duration: setting.duration,
                reason: setting.reason.text(),
                validate_only: dry_run,
                local: scope == Scope::Local,
            };
            daemon.set_overrides(request).await
        };
        let answer = setting.confirmation.change(setting.dry_run, set).await;
        let answer = with_hint(&mut daemon, targets, answer).await?;
        let keys: Vec<_> = answer.overrides.iter().map(|it| it.name.clone()).collect();
        print(&Set::new(answer, setting.dry_run), options.output)?;
        match waits {
            Some(waits) => waits.wait(&mut daemon, targets, (&keys, scope), &options).await,
            None => Ok(()),
        }
    })
}

/// Removes overrides of these kinds.
///
/// # Errors
/// There is no such target, or the daemon refuses or does not answer.
pub(crate) fn end(
    options: Options,
    targets: &impl OverrideTargets,
    kinds: &[Kind],
    Ending { dry_run, local, reason }: &Ending,
) -> Result<(), Failure> {
    end_with(options, &targets.targets()?, (kinds, local.scope()), *dry_run, reason)
}

fn end_with(
    options: Options,
    targets: &[Target],
    (kinds, scope): (&[Kind], Scope),
    dry_run: bool,
    reason: &ReasonArgument,
) -> Result<(), Failure> {
    let keys = targets
        .iter()
        .flat_map(|target| kinds.iter().map(|kind| Key::new(target.clone(), *kind)))
        .map(|key| key.with_scope(scope));
    let names: Vec<_> = keys.map(|key| key.to_string()).collect();
    let removed = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let answer = remove(&mut daemon, names, dry_run, reason).await;
        with_hint(&mut daemon, targets, answer).await
    })?;
    if removed.removed.is_empty() {
        let all: Vec<_> = targets.iter().map(ToString::to_string).collect();
        let what: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
        let (all, what) = (all.join(", "), what.join(" or "));
        let local = if scope == Scope::Local { "local " } else { "" };
        print_stderr(&format!("warning: no override to remove: {all} has no {local}{what}"));
    }
    print(&Removed::new(removed, dry_run), options.output)
}

pub(super) async fn remove(
    daemon: &mut DaemonClient,
    names: Vec<String>,
    dry_run: bool,
    reason: &ReasonArgument,
) -> Result<v1::RemoveOverridesResponse, Failure> {
    let request =
        v1::RemoveOverridesRequest { names, reason: reason.text(), validate_only: dry_run };
    daemon.remove_overrides(request).await
}

pub(super) fn message(target: &Target) -> v1::OverrideTarget {
    let (backend, pool, region) = match target {
        Target::Backend { address, pool } => (address.to_string(), pool.as_ref(), None),
        Target::Pool(pool) => (String::new(), Some(pool), None),
        Target::Group { pool, region } => (String::new(), Some(pool), Some(region)),
        Target::Region(region) => (String::new(), None, Some(region)),
    };
    let text = |name: Option<&lb_model::Name>| name.map(ToString::to_string).unwrap_or_default();
    v1::OverrideTarget { backend, pool: text(pool), region: text(region) }
}

/// Adds to a refusal which name was probably meant.
async fn with_hint<T>(
    daemon: &mut DaemonClient,
    targets: &[Target],
    answer: Result<T, Failure>,
) -> Result<T, Failure> {
    let failure = match answer {
        Ok(answer) => return Ok(answer),
        Err(failure) => failure,
    };
    let is_missing = |target: &&Target| failure.message == target.missing();
    let missing = targets.iter().find(is_missing).filter(|_| failure.code == Some(Code::NotFound));
    let hint = match missing {
        Some(target) => hint_for_missing_target(daemon, target).await,
        None if failure.code == Some(Code::InvalidArgument) => {
            Some("nothing was changed; correct it, then try again".into())
        }
        None => None,
    };
    Err(match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}
