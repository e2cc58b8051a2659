//! What to do about an object that is not there, or that names one which is not there.

use clap::{Args as _, Command};
use lb_daemon::nearest::nearest;
use spillway_proto::v1;
use tonic::Code;

use super::{
    calls::{Calls, Id},
    kind::Kind,
    ways,
};
use crate::{daemon::Daemon, failure::Failure};

/// How the daemon says that a name of one kind is none.
const NOT_AMONG: &str = " is not among the ";

/// How the daemon says that a port of GUE goes with GUE alone.
const NOT_IN_GUE: &str = "packets do not go in GUE";

/// An answer; of a refusal, with names that are nearly the one that is missing.
pub(super) async fn advise<K: Kind, T>(
    daemon: &mut Daemon,
    id: &Id,
    answer: Result<T, Failure>,
) -> Result<T, Failure> {
    let failure = match answer {
        Ok(answer) => return Ok(answer),
        Err(failure) => failure,
    };
    let hint = match failure.code {
        Some(Code::NotFound) => missing::<K>(daemon, id, &failure.message).await,
        Some(Code::InvalidArgument) => match unknown(daemon, &failure.message).await {
            Some(hint) => Some(hint),
            None if failure.message.contains(NOT_IN_GUE) => Some(
                "nothing was changed; leave --gue-port out, or take back the one that is set with \
                 --unset gue-port"
                    .into(),
            ),
            None => Some(wrong::<K>(failure.field.as_deref())),
        },
        Some(Code::AlreadyExists) => {
            let (get, update) = (command::<K>("get", id), command::<K>("update", id));
            Some(format!("`{get}` shows it, `{update}` changes it"))
        }
        Some(Code::FailedPrecondition) => Some(in_use::<K>(daemon, id).await),
        Some(Code::Aborted) => {
            let get = command::<K>("get", id);
            Some(format!("nothing was changed; see `{get}`, then try again with its etag"))
        }
        _ => None,
    };
    Err(match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

/// What to do where others need the object.
async fn in_use<K: Kind>(daemon: &mut Daemon, id: &Id) -> String {
    let configuration = daemon.export().await.ok().and_then(|exported| exported.configuration);
    configuration
        .and_then(|configuration| ways::first(K::VERB, id, &configuration))
        .unwrap_or_else(|| "nothing was changed; first change or delete what needs it".into())
}

/// A command about one object.
fn command<K: Kind>(verb: &str, id: &Id) -> String {
    let pool = match &*id.pool {
        "" => String::new(),
        pool => format!(" --pool {pool}"),
    };
    format!("spillway {} {verb} {}{pool}", K::VERB, id.name)
}

/// What to do about a field's value: its flag, if it has one of its own.
fn wrong<K: Kind>(field: Option<&str>) -> String {
    let flags = K::Fields::augment_args(Command::new("fields"));
    let flag = field
        .and_then(|field| field.strip_prefix(K::KEYS.0)?.strip_prefix('.'))
        // An entry of a list is said by the list's flag.
        .map(|path| path.split_once('[').map_or(path, |(list, _)| list))
        .map(|path| path.trim_end_matches("_per_second").replace(['_', '.'], "-"))
        .filter(|flag| flags.get_arguments().any(|known| known.get_long() == Some(flag)));
    match (flag, field) {
        (Some(flag), _) => format!("nothing was changed; correct --{flag}, then try again"),
        (None, Some("health_check.probe")) => {
            "nothing was changed; give --tcp, --http, --grpc, --udp or --agent, or an option of \
             one of them, as --http-path"
                .into()
        }
        (None, Some("update_mask")) => {
            format!("nothing was changed; `spillway {} update --help` lists the fields", K::VERB)
        }
        _ => "nothing was changed; correct it, then try again".into(),
    }
}

/// What to do where the object itself, or its pool, is not there.
async fn missing<K: Kind>(daemon: &mut Daemon, id: &Id, message: &str) -> Option<String> {
    if id.pool.is_empty() {
        let names = names::<K>(daemon).await?;
        return Some(meant(&id.name, &names, K::WORDS, K::VERB));
    }
    if !message.contains(": backend ") {
        let names = names::<v1::Pool>(daemon).await?;
        return Some(meant(&id.pool, &names, v1::Pool::WORDS, v1::Pool::VERB));
    }
    let pool = &id.pool;
    Some(format!("`spillway backend list --pool {pool}` shows those there are"))
}

/// What to do where a field names something that is not there.
async fn unknown(daemon: &mut Daemon, message: &str) -> Option<String> {
    let (before, kind) = message.split_once(NOT_AMONG)?;
    let wrong = before.strip_suffix('"')?.rsplit('"').next()?;
    let kind = kind.split([';', ',']).next()?;
    let names = match kind {
        v1::Region::WORDS => names::<v1::Region>(daemon).await?,
        v1::Pool::WORDS => names::<v1::Pool>(daemon).await?,
        v1::HealthCheck::WORDS => names::<v1::HealthCheck>(daemon).await?,
        _ => return None,
    };
    let verb = kind.split(' ').next()?.trim_end_matches('s');
    Some(format!("nothing was changed; {}", meant(wrong, &names, kind, verb)))
}

async fn names<K: Kind>(daemon: &mut Daemon) -> Option<Vec<String>> {
    let all = async |client: &mut _| <K as Calls>::list(client, String::new()).await;
    let (_, objects) = daemon.objects(all).await.ok()?;
    Some(objects.into_iter().map(|answer| answer.object.name().to_owned()).collect())
}

/// The name that was meant, or how to see them all.
fn meant(wrong: &str, names: &[String], words: &str, verb: &str) -> String {
    match nearest(wrong, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean {name}? `spillway {verb} list` shows all {words}"),
        None if names.is_empty() => {
            format!("there are no {words}; `spillway {verb} create` adds one")
        }
        None => format!("`spillway {verb} list` shows those there are"),
    }
}
