//! `spillway KIND update`.

use super::{
    advice::advise,
    answer::Done,
    calls::{Answer, Id, Update},
    kind::{Fields as _, Kind},
    sent::{Sent, Source, find, pool_of_new},
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::print,
};

/// How often an object is read again because somebody else changed it meanwhile.
const TRIES: usize = 10;

/// Options of `update`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments<K: Kind> {
    #[command(flatten)]
    source: Source<K>,
    /// Fields that are to be as if they were left out, by their flags' names
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', conflicts_with = "file")]
    unset: Vec<String>,
    /// Change it only while it has this etag
    #[arg(long)]
    etag: Option<String>,
    /// Add it where it is missing
    #[arg(long)]
    allow_missing: bool,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

/// Asks the daemon and prints.
///
/// # Errors
/// Nothing is given to change, or the daemon refuses or does not answer.
pub(super) fn run<K: Kind>(options: Options, arguments: &Arguments<K>) -> Result<(), Failure> {
    // What needs the object as it is can only be read then.
    let early = match arguments.source.fields.wants_current() {
        true => None,
        false => Some(given(arguments, None)?),
    };
    let done = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let again = early.is_none() && arguments.etag.is_none();
        let mut tries = 1;
        loop {
            match once(&mut daemon, arguments, early.as_ref()).await {
                Err(failure) if failure.is_overtaken() && again && tries < TRIES => tries += 1,
                other => break other,
            }
        }
    })?;
    print(&done, options.output)
}

/// What the command line gives of an object.
fn given<K: Kind>(
    arguments: &Arguments<K>,
    current: Option<&K>,
) -> Result<(Sent<K>, Vec<String>), Failure> {
    let mut sent = arguments.source.read(current)?;
    sent.edit.unset(&arguments.unset)?;
    let paths = sent.edit.paths.clone();
    if paths.is_empty() {
        let name = sent.edit.object.name();
        let nothing = format!("{} {name}: no field was given, so nothing was changed", K::WORD);
        return Err(Failure::new(Exit::Usage, nothing)
            .hint(format!("`spillway {} update --help` lists the fields", K::VERB)));
    }
    Ok((sent, paths))
}

/// Changes the object, having read it where that is needed.
async fn once<K: Kind>(
    daemon: &mut Daemon,
    arguments: &Arguments<K>,
    early: Option<&(Sent<K>, Vec<String>)>,
) -> Result<Done<K>, Failure> {
    let Arguments { source, allow_missing, dry_run, .. } = arguments;
    let id = match early {
        // It may be there or not, or only its file names it.
        Some((sent, _)) if *allow_missing || !source.has_name() => sent.id(pool_of_new(source)?),
        _ => find(daemon, &source.which).await?,
    };
    let mut etag = arguments.etag.clone();
    let late;
    let (sent, paths) = match early {
        Some(early) => early,
        None => {
            let current = current::<K>(daemon, &id, *allow_missing).await?;
            etag = etag.or_else(|| current.as_ref().map(|current| current.etag.clone()));
            late = given(arguments, current.as_ref().map(|current| &current.object))?;
            &late
        }
    };
    let (paths, object) = (paths.clone(), sent.edit.object.clone());
    let etag = etag.unwrap_or_default();
    let how = Update { paths, etag, allow_missing: *allow_missing, dry_run: *dry_run };
    let update = async |client: &mut _| K::update(client, id.pool.clone(), object, how).await;
    let updated = daemon.objects(update).await;
    let updated = updated.map_err(|failure| of_unset(sent.located(failure), &arguments.unset));
    Done::new(advise::<K, _>(daemon, &id, updated).await?, *dry_run)
}

/// Says of a path that the daemon does not know that it came by `--unset`, where it did.
fn of_unset(failure: Failure, unset: &[String]) -> Failure {
    let paths = unset.iter().map(|field| field.replace('-', "_"));
    let cause = |path: String| {
        let before = format!("update_mask: {path:?}: ");
        failure.message.strip_prefix(&before).map(|cause| format!("--unset: {cause}"))
    };
    match paths.filter_map(cause).next() {
        Some(message) => Failure { message, ..failure },
        None => failure,
    }
}

/// The object as it is; `None`: there is none, and that is allowed.
async fn current<K: Kind>(
    daemon: &mut Daemon,
    id: &Id,
    allow_missing: bool,
) -> Result<Option<Answer<K>>, Failure> {
    let got = daemon.objects(async |client| K::get(client, id.clone()).await).await;
    match got {
        Err(failure) if allow_missing && failure.exit == Exit::NotFound => Ok(None),
        got => advise::<K, _>(daemon, id, got).await.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_none_is_told_of_unset() {
        let failure = |message: &str| Failure::new(Exit::Invalid, message);
        let unset = ["weight".into(), "no-such".into()];
        let cause = "\"no_such\" is no field of Pool; it has name, slots";
        assert_eq!(
            of_unset(failure(&format!("update_mask: \"no_such\": {cause}")), &unset).message,
            format!("--unset: {cause}")
        );
        let other = failure("update_mask: \"other\": \"other\" is no field of Pool");
        assert_eq!(
            of_unset(other, &unset).message,
            "update_mask: \"other\": \"other\" is no field of Pool"
        );
    }
}
