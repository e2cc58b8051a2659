//! Hints for refusals: the name that was probably meant, the flag to correct, the commands that remove
//! what still needs an object.

use std::collections::BTreeSet;

use clap::{Args as _, Command};
use lb_base::nearest;
use lb_model::overrides::Target;
use spillway_proto::v1::{self, Configuration, Group, Pool};
use tonic::Code;

use super::{
    calls::{ListFilter, ObjectCalls, ObjectId},
    kind::Kind,
};
use crate::{client::DaemonClient, failure::Failure};

/// In the daemon's refusal of an unknown name.
const NOT_AMONG: &str = " is not among the ";

/// In the daemon's refusal of a GUE port without GUE.
const NOT_IN_GUE: &str = "the encapsulation is not gue";

/// Adds a hint to a refusal; other answers stay as they are.
pub(super) async fn add_hint<K: Kind, T>(
    daemon: &mut DaemonClient,
    id: &ObjectId,
    answer: Result<T, Failure>,
) -> Result<T, Failure> {
    let failure = match answer {
        Ok(answer) => return Ok(answer),
        // Not about the object.
        Err(failure) if failure.is_of_fleet => return Err(failure),
        Err(failure) => failure,
    };
    let hint = match failure.code {
        Some(Code::NotFound) => hint_for_missing::<K>(daemon, id, &failure.message).await,
        Some(Code::InvalidArgument) => match hint_for_unknown_name(daemon, &failure.message).await {
            Some(hint) => Some(hint),
            None if failure.message.contains(NOT_IN_GUE) => Some(
                "nothing was changed; leave --gue-port out, or remove the current one with --unset \
                 gue-port"
                    .into(),
            ),
            None => Some(hint_for_fields::<K>(&failure)),
        },
        Some(Code::AlreadyExists) => {
            let (get, update) = (command::<K>("get", id), command::<K>("update", id));
            Some(format!("`{get}` shows it, `{update}` changes it"))
        }
        // What is refused for another reason has a hint of the daemon.
        Some(Code::FailedPrecondition) if failure.hint.is_none() => {
            Some(hint_for_in_use::<K>(daemon, id).await)
        }
        Some(Code::Aborted) => {
            let get = command::<K>("get", id);
            Some(format!("nothing was changed; see `{get}`, then try again with the new etag"))
        }
        _ => None,
    };
    Err(match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

async fn hint_for_in_use<K: Kind>(daemon: &mut DaemonClient, id: &ObjectId) -> String {
    let configuration = daemon.export().await.ok().and_then(|exported| exported.configuration);
    configuration
        .and_then(|configuration| hint_before_delete(K::COMMAND, id, &configuration))
        .unwrap_or_else(|| {
            "nothing was changed; first change or delete the objects that use it".into()
        })
}

fn command<K: Kind>(verb: &str, id: &ObjectId) -> String {
    let pool = match &*id.pool {
        "" => String::new(),
        pool => format!(" --pool {pool}"),
    };
    format!("spillway {} {verb} {}{pool}", K::COMMAND, id.name)
}

/// Names the flags of the fields, if all of them have one.
fn hint_for_fields<K: Kind>(failure: &Failure) -> String {
    let known = K::Fields::augment_args(Command::new("fields"));
    let flag = |field: &str| {
        let path = field.strip_prefix(K::KEYS.0)?.strip_prefix('.')?;
        // The flag of a list sets its entries.
        let path = path.split_once('[').map_or(path, |(list, _)| list);
        let flag = path.trim_end_matches("_per_second").replace(['_', '.'], "-");
        known.get_arguments().any(|known| known.get_long() == Some(&flag)).then_some(flag)
    };
    let field = failure.field.as_deref();
    let others = failure.others.iter().map(|other| &*other.field);
    let fields = [field.unwrap_or_default()].into_iter().chain(others);
    let flags: Option<BTreeSet<_>> =
        fields.map(|field| Some(format!("--{}", flag(field)?))).collect();
    match (flags, field) {
        (Some(flags), _) => {
            let flags = flags.into_iter().collect::<Vec<_>>().join(", ");
            format!("nothing was changed; correct {flags}, then try again")
        }
        _ if !failure.others.is_empty() => "nothing was changed; correct them, then try again".into(),
        (None, Some("health_check.kind")) => {
            "nothing was changed; give --tcp, --http, --grpc, --udp or --agent, or an option of one of them such as \
             --http-path"
                .into()
        }
        (None, Some("update_mask")) => {
            format!("nothing was changed; `spillway {} update --help` lists the fields", K::COMMAND)
        }
        _ => "nothing was changed; correct it, then try again".into(),
    }
}

/// For an object, or the pool of a backend, that does not exist.
async fn hint_for_missing<K: Kind>(
    daemon: &mut DaemonClient,
    id: &ObjectId,
    message: &str,
) -> Option<String> {
    // The region that a list is of.
    if let Some(region) = message.strip_prefix("region ").filter(|_| K::COMMAND != "region") {
        let names = names::<v1::Region>(daemon).await?;
        let region = region.split('"').nth(1)?;
        return Some(nearest_name(region, &names, v1::Region::PLURAL, v1::Region::COMMAND));
    }
    if id.pool.is_empty() {
        let names = names::<K>(daemon).await?;
        return Some(nearest_name(&id.name, &names, K::PLURAL, K::COMMAND));
    }
    if !message.contains(": backend ") {
        let names = names::<Pool>(daemon).await?;
        return Some(nearest_name(&id.pool, &names, Pool::PLURAL, Pool::COMMAND));
    }
    let pool = &id.pool;
    Some(format!("`spillway backend list --pool {pool}` lists the backends"))
}

/// For a target of an override that does not exist.
pub(crate) async fn hint_for_missing_target(
    daemon: &mut DaemonClient,
    target: &Target,
) -> Option<String> {
    let pools = names::<Pool>(daemon).await?;
    if let Some(pool) = target.pool().filter(|pool| !pools.iter().any(|it| it == pool.as_str())) {
        return Some(nearest_name(pool.as_str(), &pools, Pool::PLURAL, Pool::COMMAND));
    }
    Some(match target {
        // No address is suggested: a similar one is another machine.
        Target::Backend { pool: None, .. } => "`spillway backend list` lists the backends".into(),
        Target::Backend { pool: Some(pool), .. } | Target::Group { pool, .. } => {
            format!("`spillway backend list --pool {pool}` lists its backends, with their regions")
        }
        Target::Pool(pool) => nearest_name(pool.as_str(), &pools, Pool::PLURAL, Pool::COMMAND),
        Target::Region(region) => {
            let regions = names::<v1::Region>(daemon).await?;
            nearest_name(region.as_str(), &regions, v1::Region::PLURAL, v1::Region::COMMAND)
        }
    })
}

/// For a field that names an object that does not exist.
async fn hint_for_unknown_name(daemon: &mut DaemonClient, message: &str) -> Option<String> {
    let (before, kind) = message.split_once(NOT_AMONG)?;
    let wrong = before.strip_suffix('"')?.rsplit('"').next()?;
    let kind = kind.split([';', ',']).next()?;
    let names = match kind {
        v1::Region::PLURAL => names::<v1::Region>(daemon).await?,
        Pool::PLURAL => names::<Pool>(daemon).await?,
        v1::HealthCheck::PLURAL => names::<v1::HealthCheck>(daemon).await?,
        _ => return None,
    };
    let verb = kind.split(' ').next()?.trim_end_matches('s');
    Some(format!("nothing was changed; {}", nearest_name(wrong, &names, kind, verb)))
}

async fn names<K: Kind>(daemon: &mut DaemonClient) -> Option<Vec<String>> {
    let all = async |client: &mut _| <K as ObjectCalls>::list(client, &ListFilter::default()).await;
    let (_, objects) = daemon.objects(all).await.ok()?;
    Some(objects.into_iter().map(|answer| answer.object.name().to_owned()).collect())
}

/// The name that was meant, or how to see them all.
fn nearest_name(wrong: &str, names: &[String], words: &str, verb: &str) -> String {
    match nearest(wrong, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean {name}? `spillway {verb} list` lists all {words}"),
        None if names.is_empty() => {
            format!("there are no {words}; `spillway {verb} create` adds one")
        }
        None => format!("`spillway {verb} list` lists all {words}"),
    }
}

/// Most commands that a hint names.
const MAX_COMMANDS: usize = 3;

/// The commands to run before an object can be deleted; `None`: unknown.
fn hint_before_delete(
    command: &str,
    id: &ObjectId,
    configuration: &Configuration,
) -> Option<String> {
    let commands = match command {
        "region" => commands_for_region(&id.name, configuration),
        "health" => commands_for_health_check(&id.name, configuration),
        "pool" => commands_for_pool(&id.name, configuration),
        "backend" => commands_for_backend(id, configuration),
        _ => Vec::new(),
    };
    let (named, others) = commands.split_at(commands.len().min(MAX_COMMANDS));
    let named: Vec<_> = named.iter().map(|command| format!("`spillway {command}`")).collect();
    let more = match others.len() {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    let (last, before) = named.split_last()?;
    let and = if more.is_empty() { " and " } else { ", " };
    let before = before.join(", ");
    let and = if before.is_empty() { "" } else { and };
    Some(format!("nothing was changed; first {before}{and}{last}{more}"))
}

fn commands_for_region(name: &str, configuration: &Configuration) -> Vec<String> {
    let mut commands = Vec::new();
    for pool in &configuration.pools {
        // Settings first: the daemon refuses to delete the last backend of a region that has settings.
        commands.extend(
            pool.groups.iter().filter(|g| g.region == name).filter_map(|g| unset_group(pool, g)),
        );
        if pool.preferred_regions.iter().any(|region| region == name) {
            let others = without(&pool.preferred_regions, name);
            commands.push(format!("pool update {} --preferred-regions {others}", pool.name));
        }
        let backends = pool.backends.iter().filter(|backend| backend.region == name);
        commands
            .extend(backends.map(|b| format!("backend delete {} --pool {}", b.address, pool.name)));
    }
    let regions = configuration.regions.iter();
    let regions = regions.filter(|region| region.overflow_to.iter().any(|to| to == name));
    commands.extend(regions.map(|region| {
        let others = without(&region.overflow_to, name);
        format!("region update {} --overflow-to {others}", region.name)
    }));
    commands
}

fn commands_for_health_check(name: &str, configuration: &Configuration) -> Vec<String> {
    let pools = configuration.pools.iter();
    let pools = pools.filter(|pool| pool.health_checks.iter().any(|check| check == name));
    pools
        .map(|pool| {
            let others = without(&pool.health_checks, name);
            format!("pool update {} --health-checks {others}", pool.name)
        })
        .collect()
}

fn commands_for_pool(name: &str, configuration: &Configuration) -> Vec<String> {
    let services = configuration.services.iter().filter(|service| service.pool == name);
    services.map(|service| format!("service delete {}", service.name)).collect()
}

fn commands_for_backend(id: &ObjectId, configuration: &Configuration) -> Vec<String> {
    let Some(pool) = configuration.pools.iter().find(|pool| pool.name == id.pool) else {
        return Vec::new();
    };
    let region = pool.backends.iter().find(|b| b.address == id.name).map(|b| &b.region);
    let groups = pool.groups.iter().filter(|group| Some(&group.region) == region);
    groups.filter_map(|group| unset_group(pool, group)).collect()
}

/// Removes a pool's settings for a region. `drained` needs no removal.
fn unset_group(pool: &Pool, group: &Group) -> Option<String> {
    let region = &group.region;
    let capacity = group.capacity_per_second.map(|_| format!(" --capacity {region}="));
    let scaled = group.scaler.filter(|scaler| *scaler != 1.0);
    let scaler = scaled.map(|_| format!(" --scaler {region}="));
    let flags = capacity.into_iter().chain(scaler).collect::<String>();
    (!flags.is_empty()).then(|| format!("pool update {}{flags}", pool.name))
}

/// The value of a list flag, without one of the names.
fn without(names: &[String], name: &str) -> String {
    let others: Vec<_> = names.iter().filter(|other| *other != name).cloned().collect();
    if others.is_empty() { "\"\"".into() } else { others.join(",") }
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1::{Backend, Region, Service};

    use super::*;

    fn fixture() -> Configuration {
        let region = |name: &str, to: &[&str]| Region {
            name: name.into(),
            overflow_to: to.iter().map(ToString::to_string).collect(),
            ..Region::default()
        };
        let backend = |address: &str, region: &str| Backend {
            address: address.into(),
            region: region.into(),
            ..Backend::default()
        };
        let group = |region: &str, capacity, scaler| Group {
            region: region.into(),
            capacity_per_second: capacity,
            scaler,
            drained: true,
        };
        let service =
            |name: &str| Service { name: name.into(), pool: "web".into(), ..Service::default() };
        let web = Pool {
            name: "web".into(),
            health_checks: vec!["page".into(), "tls".into()],
            preferred_regions: vec!["us".into(), "eu".into()],
            groups: vec![group("us", Some(5.0), Some(0.5)), group("eu", None, Some(1.0))],
            backends: vec![backend("10.1.0.11", "eu"), backend("10.2.0.11", "us")],
            ..Pool::default()
        };
        Configuration {
            regions: vec![region("eu", &["us"]), region("us", &[])],
            pools: vec![web],
            services: ["a", "b", "c", "d", "e"].map(service).to_vec(),
            ..Configuration::default()
        }
    }

    fn hint(command: &str, pool: &str, name: &str) -> Option<String> {
        hint_before_delete(command, &ObjectId { pool: pool.into(), name: name.into() }, &fixture())
    }

    #[test]
    fn each_use_has_its_command() {
        assert_eq!(
            hint("region", "", "us").unwrap(),
            "nothing was changed; first `spillway pool update web --capacity us= --scaler us=`, \
             `spillway pool update web --preferred-regions eu`, \
             `spillway backend delete 10.2.0.11 --pool web`, and 1 more"
        );
        assert_eq!(
            hint("health", "", "tls").unwrap(),
            "nothing was changed; first `spillway pool update web --health-checks page`"
        );
        assert_eq!(
            hint("pool", "", "web").unwrap(),
            "nothing was changed; first `spillway service delete a`, `spillway service delete b`, \
             `spillway service delete c`, and 2 more"
        );
        assert_eq!(
            hint("backend", "web", "10.2.0.11").unwrap(),
            "nothing was changed; first `spillway pool update web --capacity us= --scaler us=`"
        );
        // `drained` does not have to be removed first.
        assert_eq!(hint("backend", "web", "10.1.0.11"), None);
        assert_eq!(without(&["us".into()], "us"), "\"\"");
    }
}
