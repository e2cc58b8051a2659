//! `spillway pool drain`, `spillway region drain` and their counterparts: whether groups are drained.
//!
//! A region's groups are in several pools, so they change together, as one generation: the
//! configuration in force is read, changed and applied on top of the generation that was read.

use spillway_proto::{SCHEMA_REVISION, v1};
use tonic::Code;

use super::{advice::advise, calls::Id, kind::Kind};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::print,
    verbs::change::Changes,
};

/// What becomes of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// They take no new connections.
    Drain,
    /// They take what they took before they were drained.
    Enable,
}

/// How often the configuration is read again because somebody else changed it meanwhile.
const TRIES: usize = 10;

/// The call that it takes, as the daemon names it to a caller who may not make it.
const APPLY: &str = "/spillway.v1.Spillway/Apply";

/// Which groups of a pool.
#[derive(clap::Args, Debug)]
pub(crate) struct OfPool {
    /// Its name
    name: String,
    /// Only in this region
    #[arg(long)]
    region: Option<String>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

/// Which region's groups.
#[derive(clap::Args, Debug)]
pub(crate) struct OfRegion {
    /// Its name
    name: String,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

/// Groups, by the pool and the region that they are of.
pub(super) struct Groups<'a> {
    pool: Option<&'a str>,
    region: Option<&'a str>,
    dry_run: bool,
}

/// Arguments that say which groups are meant.
pub(super) trait Which {
    fn groups(&self) -> Groups<'_>;
}

impl Which for OfPool {
    fn groups(&self) -> Groups<'_> {
        let Self { name, region, dry_run } = self;
        Groups { pool: Some(name), region: region.as_deref(), dry_run: *dry_run }
    }
}

impl Which for OfRegion {
    fn groups(&self) -> Groups<'_> {
        Groups { pool: None, region: Some(&self.name), dry_run: self.dry_run }
    }
}

/// Asks the daemon and prints.
///
/// # Errors
/// There is no such pool, region or group, or the daemon refuses or does not answer.
pub(super) fn run(options: Options, which: &impl Which, wish: Wish) -> Result<(), Failure> {
    let groups = which.groups();
    let changes = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let mut tries = 1;
        loop {
            match once(&mut daemon, &groups, wish).await {
                Err(failure) if failure.is_overtaken() && tries < TRIES => tries += 1,
                other => break other,
            }
        }
    })?;
    print(&changes, options.output)
}

async fn once(daemon: &mut Daemon, groups: &Groups<'_>, wish: Wish) -> Result<Changes, Failure> {
    exists::<v1::Pool>(daemon, groups.pool).await?;
    exists::<v1::Region>(daemon, groups.region).await?;
    let exported = daemon.export().await?;
    let mut configuration = exported.configuration.unwrap_or_default();
    if change(&mut configuration, groups, wish) == 0 {
        return Err(nobody(groups));
    }
    let request = v1::ApplyRequest {
        configuration: Some(configuration),
        dry_run: groups.dry_run,
        expected_generation: Some(exported.generation),
        schema_revision: SCHEMA_REVISION.into(),
        any_schema: false,
    };
    let applied = daemon.apply(request).await.map_err(|failure| denied(failure, groups, wish))?;
    Ok(Changes::new(applied, groups.dry_run))
}

/// Says of a refusal that it is about draining, not about a call, and what an operator may do instead.
fn denied(failure: Failure, groups: &Groups<'_>, wish: Wish) -> Failure {
    if failure.code != Some(Code::PermissionDenied) {
        return failure;
    }
    let (drains, kind) = match (wish, groups.pool) {
        (Wish::Drain, Some(_)) => ("draining", "a pool"),
        (Wish::Drain, None) => ("draining", "a region"),
        (Wish::Enable, Some(_)) => ("enabling", "a pool"),
        (Wish::Enable, None) => ("enabling", "a region"),
    };
    let message = failure.message.replace(APPLY, &format!("{drains} {kind}"));
    let failure = Failure { message, ..failure };
    if wish == Wish::Enable || !failure.message.contains(": is operator, ") {
        return failure;
    }
    let pool = groups.pool.map_or(String::new(), |pool| format!(" --pool {pool}"));
    failure.hint(format!(
        "an operator may drain single backends: `spillway backend drain ADDRESS…{pool}`"
    ))
}

/// Fails where there is no object of a name that was given.
async fn exists<K: Kind>(daemon: &mut Daemon, name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else { return Ok(()) };
    let id = Id { pool: String::new(), name: name.into() };
    let got = daemon.objects(async |client| K::get(client, id.clone()).await).await;
    advise::<K, _>(daemon, &id, got).await.map(drop)
}

/// Drains or enables groups, and says how many there are.
fn change(configuration: &mut v1::Configuration, which: &Groups<'_>, wish: Wish) -> usize {
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
                let group = group_of(pool, region);
                group.drained = wish == Wish::Drain;
                // A scaler of 0 drains it as well.
                group.scaler = group.scaler.filter(|scaler| wish == Wish::Drain || *scaler > 0.0);
            }
            regions.len()
        })
        .sum()
}

/// What is set of a pool in a region, which is added where there is nothing.
pub(super) fn group_of<'a>(pool: &'a mut v1::Pool, region: &str) -> &'a mut v1::PoolRegion {
    let at = pool.groups.iter().position(|group| group.region == region).unwrap_or_else(|| {
        pool.groups.push(v1::PoolRegion { region: region.into(), ..Default::default() });
        pool.groups.len() - 1
    });
    &mut pool.groups[at]
}

/// No backend is where somebody meant some.
fn nobody(groups: &Groups<'_>) -> Failure {
    let (message, hint) = match (groups.pool, groups.region) {
        (Some(pool), Some(region)) => (
            format!("pool {pool:?}: it has no backends in region {region:?}"),
            format!("`spillway backend list --pool {pool}` shows where it has some"),
        ),
        (Some(pool), None) => (
            format!("pool {pool:?}: it has no backends"),
            format!("`spillway backend create --pool {pool}` adds one"),
        ),
        (None, region) => (
            format!("region {:?}: no pool has backends there", region.unwrap_or_default()),
            "`spillway backend list` shows where they are".into(),
        ),
    };
    Failure::new(Exit::NotFound, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_is_told_of_draining_and_of_what_he_may() {
        let said = |role: &str, pool, region, wish, code| {
            let message =
                format!("certificate a: is {role}, and /spillway.v1.Spillway/Apply takes admin");
            let failure = Failure { code, ..Failure::new(Exit::Permission, message) }.hint("ask");
            let groups = Groups { pool, region, dry_run: false };
            let Failure { message, hint, exit, .. } = denied(failure, &groups, wish);
            assert_eq!(exit, Exit::Permission);
            (message, hint.unwrap())
        };
        let refused = Some(Code::PermissionDenied);
        let single = "an operator may drain single backends: `spillway backend drain ADDRESS…";
        for (role, pool, wish, message, hint) in [
            (
                "operator",
                Some("web"),
                Wish::Drain,
                "draining a pool",
                format!("{single} --pool web`"),
            ),
            ("operator", None, Wish::Drain, "draining a region", format!("{single}`")),
            ("operator", Some("web"), Wish::Enable, "enabling a pool", "ask".into()),
            ("viewer", Some("web"), Wish::Drain, "draining a pool", "ask".into()),
        ] {
            let message = format!("certificate a: is {role}, and {message} takes admin");
            assert_eq!(said(role, pool, Some("eu"), wish, refused), (message, hint));
        }
        let (message, hint) =
            said("operator", Some("web"), None, Wish::Drain, Some(Code::Internal));
        assert!(message.contains(APPLY) && hint == "ask", "another failure stays: {message}");
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

    fn scene() -> v1::Configuration {
        let mut web = pool("web", &["eu", "us", "eu"]);
        web.groups = vec![v1::PoolRegion {
            region: "eu".into(),
            capacity_per_second: Some(5.0),
            scaler: Some(0.5),
            drained: false,
        }];
        v1::Configuration { pools: vec![web, pool("dns", &["eu"])], ..Default::default() }
    }

    #[test]
    fn a_region_is_drained_in_every_pool_and_only_there() {
        let mut configuration = scene();
        let eu = Groups { pool: None, region: Some("eu"), dry_run: false };
        assert_eq!(change(&mut configuration, &eu, Wish::Drain), 2);
        let drained = [("web", "eu", Some(0.5), true), ("dns", "eu", None, true)];
        assert_eq!(groups(&configuration), drained);
        assert_eq!(configuration.pools[0].groups[0].capacity_per_second, Some(5.0));
    }

    #[test]
    fn a_pool_is_drained_in_all_its_regions_or_in_one_and_comes_back_as_it_was() {
        let mut configuration = scene();
        let web = Groups { pool: Some("web"), region: None, dry_run: false };
        assert_eq!(change(&mut configuration, &web, Wish::Drain), 2);
        let drained = [("web", "eu", Some(0.5), true), ("web", "us", None, true)];
        assert_eq!(groups(&configuration), drained);
        let us = Groups { pool: Some("web"), region: Some("us"), dry_run: false };
        assert_eq!(change(&mut configuration, &us, Wish::Enable), 1);
        let one = [("web", "eu", Some(0.5), true), ("web", "us", None, false)];
        assert_eq!(groups(&configuration), one);
        assert_eq!(change(&mut configuration, &web, Wish::Enable), 2);
        assert_eq!(groups(&configuration)[0], ("web", "eu", Some(0.5), false));
        let none = Groups { pool: Some("dns"), region: Some("us"), dry_run: false };
        assert_eq!(change(&mut configuration, &none, Wish::Drain), 0);
    }

    #[test]
    fn a_scaler_of_0_is_a_drain_too() {
        let mut configuration = scene();
        configuration.pools[0].groups[0].scaler = Some(0.0);
        let eu = Groups { pool: Some("web"), region: Some("eu"), dry_run: false };
        assert_eq!(change(&mut configuration, &eu, Wish::Enable), 1);
        assert_eq!(groups(&configuration), [("web", "eu", None, false)]);
    }
}
