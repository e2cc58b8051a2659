//! `spillway pool drain`, `spillway region drain` and their counterparts: the scaler of groups.
//!
//! A region's groups are in several pools, so they change together, as one generation: the
//! configuration in force is read, changed and applied on top of the generation that was read.

use spillway_proto::v1;

use super::{advice::advise, calls::Id, kind::Kind};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::print,
    verbs::change::Changes,
};

/// Takes no new connections.
pub(super) const DRAINED: f64 = 0.0;
/// Takes what it has capacity for.
pub(super) const WHOLE: f64 = 1.0;

/// How often the configuration is read again because somebody else changed it meanwhile.
const TRIES: usize = 10;

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
pub(super) fn run(options: Options, which: &impl Which, scaler: f64) -> Result<(), Failure> {
    let groups = which.groups();
    let changes = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let mut tries = 1;
        loop {
            match once(&mut daemon, &groups, scaler).await {
                Err(failure) if failure.exit == Exit::Conflict && tries < TRIES => tries += 1,
                other => break other,
            }
        }
    })?;
    print(&changes, options.output)
}

async fn once(daemon: &mut Daemon, groups: &Groups<'_>, scaler: f64) -> Result<Changes, Failure> {
    exists::<v1::Pool>(daemon, groups.pool).await?;
    exists::<v1::Region>(daemon, groups.region).await?;
    let exported = daemon.export().await?;
    let mut configuration = exported.configuration.unwrap_or_default();
    if scale(&mut configuration, groups, scaler) == 0 {
        return Err(nobody(groups));
    }
    let request = v1::ApplyRequest {
        configuration: Some(configuration),
        dry_run: groups.dry_run,
        expected_generation: Some(exported.generation),
    };
    Ok(Changes::new(daemon.apply(request).await?, groups.dry_run))
}

/// Fails where there is no object of a name that was given.
async fn exists<K: Kind>(daemon: &mut Daemon, name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else { return Ok(()) };
    let id = Id { pool: String::new(), name: name.into() };
    let got = daemon.objects(async |client| K::get(client, id.clone()).await).await;
    advise::<K, _>(daemon, &id, got).await.map(drop)
}

/// Sets the scaler of groups, and says how many there are.
fn scale(configuration: &mut v1::Configuration, which: &Groups<'_>, scaler: f64) -> usize {
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
                match pool.groups.iter_mut().find(|group| group.region == *region) {
                    Some(group) => group.scaler = Some(scaler),
                    None => pool.groups.push(v1::PoolRegion {
                        region: region.clone(),
                        scaler: Some(scaler),
                        ..v1::PoolRegion::default()
                    }),
                }
            }
            regions.len()
        })
        .sum()
}

/// No backend is where somebody meant some.
fn nobody(groups: &Groups<'_>) -> Failure {
    let (message, hint) = match (groups.pool, groups.region) {
        (Some(pool), Some(region)) => (
            format!("pool {pool}: it has no backends in region {region}"),
            format!("`spillway backend list --pool {pool}` shows where it has some"),
        ),
        (Some(pool), None) => (
            format!("pool {pool}: it has no backends"),
            format!("`spillway backend create --pool {pool}` adds one"),
        ),
        (None, region) => (
            format!("region {}: no pool has backends there", region.unwrap_or_default()),
            "`spillway backend list` shows where they are".into(),
        ),
    };
    Failure::new(Exit::NotFound, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, regions: &[&str]) -> v1::Pool {
        let backend =
            |region: &&str| v1::Backend { region: (*region).into(), ..Default::default() };
        let backends = regions.iter().map(backend).collect();
        v1::Pool { name: name.into(), backends, ..v1::Pool::default() }
    }

    fn scalers(configuration: &v1::Configuration) -> Vec<(&str, &str, Option<f64>)> {
        let pools = configuration.pools.iter();
        let groups = pools.flat_map(|pool| pool.groups.iter().map(move |group| (pool, group)));
        groups.map(|(pool, group)| (&*pool.name, &*group.region, group.scaler)).collect()
    }

    fn scene() -> v1::Configuration {
        let mut web = pool("web", &["eu", "us", "eu"]);
        web.groups = vec![v1::PoolRegion {
            region: "eu".into(),
            capacity_per_second: Some(5.0),
            scaler: Some(0.5),
        }];
        v1::Configuration { pools: vec![web, pool("dns", &["eu"])], ..Default::default() }
    }

    #[test]
    fn a_region_is_drained_in_every_pool_and_only_there() {
        let mut configuration = scene();
        let eu = Groups { pool: None, region: Some("eu"), dry_run: false };
        assert_eq!(scale(&mut configuration, &eu, DRAINED), 2);
        assert_eq!(scalers(&configuration), [("web", "eu", Some(0.0)), ("dns", "eu", Some(0.0))]);
        assert_eq!(configuration.pools[0].groups[0].capacity_per_second, Some(5.0));
    }

    #[test]
    fn a_pool_is_drained_in_all_its_regions_or_in_one() {
        let mut configuration = scene();
        let web = Groups { pool: Some("web"), region: None, dry_run: false };
        assert_eq!(scale(&mut configuration, &web, DRAINED), 2);
        assert_eq!(scalers(&configuration), [("web", "eu", Some(0.0)), ("web", "us", Some(0.0))]);
        let us = Groups { pool: Some("web"), region: Some("us"), dry_run: false };
        assert_eq!(scale(&mut configuration, &us, WHOLE), 1);
        assert_eq!(scalers(&configuration), [("web", "eu", Some(0.0)), ("web", "us", Some(1.0))]);
        let none = Groups { pool: Some("dns"), region: Some("us"), dry_run: false };
        assert_eq!(scale(&mut configuration, &none, DRAINED), 0);
    }
}
