//! `spillway KIND list|get|create|update|delete`, written once for all kinds.

use spillway_proto::v1;

use super::{
    calls::{Changed, CreateOptions, DeleteOptions, ObjectAnswer, ObjectId, UpdateOptions},
    hints::add_hint,
    input::{Input, ObjectSource, pool_for_create, resolve_id},
    kind::{Fields as _, Kind, Selector as _},
    report::{ChangeReport, ListReport, ObjectReport},
};
use crate::{
    arguments::{Options, ReasonArgument},
    client::{DaemonClient, block_on},
    commands::{
        changes::Changes,
        confirm::{Confirmation, Force as _, Request, StopsPackets},
        fleet::WaitArgument,
    },
    failure::{Exit, Failure},
    output::{Format, print},
};

#[derive(clap::Args, Debug)]
pub(crate) struct ListArguments<K: Kind> {
    #[command(flatten)]
    which: K::Filter,
}

/// # Errors
/// There is no such pool, or the daemon does not answer.
pub(super) fn list<K: Kind>(options: Options, arguments: &ListArguments<K>) -> Result<(), Failure> {
    let filter = arguments.which.filter();
    let listed = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let id = ObjectId { pool: filter.pool.clone(), name: String::new() };
        let listed = daemon.objects(async |client| K::list(client, &filter).await).await;
        let (generation, answers) = add_hint::<K, _>(&mut daemon, &id, listed).await?;
        let mut listed = ListReport::<K>::new(generation, answers)?;
        if matches!(options.output, Format::Table | Format::Wide) {
            listed.complete(&mut daemon).await;
        }
        Ok(listed)
    })?;
    print(&listed, options.output)
}

#[derive(clap::Args, Debug)]
pub(crate) struct GetArguments<K: Kind> {
    #[command(flatten)]
    which: K::Target,
}

/// # Errors
/// There is no such object, or the daemon does not answer.
pub(super) fn get<K: Kind>(options: Options, arguments: &GetArguments<K>) -> Result<(), Failure> {
    let got = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let id = resolve_id(&mut daemon, &arguments.which).await?;
        let got = daemon.objects(async |client| K::get(client, id.clone()).await).await;
        ObjectReport::new(add_hint::<K, _>(&mut daemon, &id, got).await?)
    })?;
    print(&got, options.output)
}

#[derive(clap::Args, Debug)]
pub(crate) struct CreateArguments<K: Kind> {
    #[command(flatten)]
    source: ObjectSource<K>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    force: K::CreateForce,
    #[command(flatten)]
    wait: WaitArgument,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// # Errors
/// The flags or the file are not an object, the daemon refuses or does not answer, or balancers of the fleet lag.
pub(super) fn create<K: Kind>(
    options: Options,
    arguments: &CreateArguments<K>,
) -> Result<(), Failure> {
    let (source, dry_run) = (&arguments.source, arguments.dry_run);
    let pool = pool_for_create(source)?;
    let input = source.read(None)?;
    let (done, waited) = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let id = input.id(pool);
        let object = input.patch.object.clone();
        let force = arguments.force.force();
        let how = CreateOptions { dry_run, force, reason: arguments.reason.text() };
        let create = async |client: &mut _| K::create(client, id.pool.clone(), object, how).await;
        let created = daemon.objects(create).await.map_err(|failure| input.with_location(failure));
        let created = add_hint::<K, _>(&mut daemon, &id, created).await?;
        let mut done = ChangeReport::new(created, dry_run)?;
        let waited = arguments.wait.wait(&mut daemon, &mut done.changes).await;
        Ok((done, waited))
    })?;
    print(&done, options.output)?;
    waited
}

/// How often an update is tried when another change comes first.
const MAX_TRIES: usize = 10;

#[derive(clap::Args, Debug)]
pub(crate) struct UpdateArguments<K: Kind> {
    #[command(flatten)]
    source: ObjectSource<K>,
    /// Fields to reset to their defaults, by the names of their flags
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', conflicts_with = "file")]
    unset: Vec<String>,
    /// Only change the object if it has this etag
    #[arg(long)]
    etag: Option<String>,
    /// Create the object if it does not exist
    #[arg(long)]
    allow_missing: bool,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    force: K::UpdateForce,
    #[command(flatten)]
    wait: WaitArgument,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// # Errors
/// No field is given, the daemon refuses or does not answer, or balancers of the fleet lag.
pub(super) fn update<K: Kind>(
    options: Options,
    arguments: &UpdateArguments<K>,
) -> Result<(), Failure> {
    // Flags that need the current object are evaluated once it is read.
    let early = match arguments.source.fields.needs_current() {
        true => None,
        false => Some(read_input(arguments, None)?),
    };
    let (done, waited) = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let again = early.is_none() && arguments.etag.is_none();
        let mut tries = 1;
        let mut done = loop {
            match try_update(&mut daemon, arguments, early.as_ref()).await {
                Err(failure) if failure.is_overtaken() && again && tries < MAX_TRIES => tries += 1,
                other => break other?,
            }
        };
        let waited = arguments.wait.wait(&mut daemon, &mut done.changes).await;
        Ok((done, waited))
    })?;
    print(&done, options.output)?;
    waited
}

/// The fields that the command line gives, with their paths.
fn read_input<K: Kind>(
    arguments: &UpdateArguments<K>,
    current: Option<&K>,
) -> Result<(Input<K>, Vec<String>), Failure> {
    let mut input = arguments.source.read(current)?;
    input.patch.unset(&arguments.unset)?;
    let paths = input.patch.paths.clone();
    if paths.is_empty() {
        let name = input.patch.object.name();
        let nothing = format!("{} {name}: no field given, nothing was changed", K::NAME);
        return Err(Failure::new(Exit::Usage, nothing)
            .hint(format!("`spillway {} update --help` lists the fields", K::COMMAND)));
    }
    Ok((input, paths))
}

/// Reads the object first if flags need it.
async fn try_update<K: Kind>(
    daemon: &mut DaemonClient,
    arguments: &UpdateArguments<K>,
    early: Option<&(Input<K>, Vec<String>)>,
) -> Result<ChangeReport<K>, Failure> {
    let UpdateArguments { source, allow_missing, dry_run, confirmation, .. } = arguments;
    let id = match early {
        // The object may not exist, or only the file names it.
        Some((input, _)) if *allow_missing || !source.has_name() => {
            input.id(pool_for_create(source)?)
        }
        _ => resolve_id(daemon, &source.which).await?,
    };
    let mut etag = arguments.etag.clone();
    let late;
    let (input, paths) = match early {
        Some(early) => early,
        None => {
            let current = current::<K>(daemon, &id, *allow_missing).await?;
            etag = etag.or_else(|| current.as_ref().map(|current| current.etag.clone()));
            late = read_input(arguments, current.as_ref().map(|current| &current.object))?;
            &late
        }
    };
    let etag = etag.unwrap_or_default();
    let update = async |Request { dry_run, .. }| {
        let (pool, object) = (id.pool.clone(), input.patch.object.clone());
        let how = UpdateOptions {
            paths: paths.clone(),
            etag: etag.clone(),
            allow_missing: *allow_missing,
            dry_run,
            force: arguments.force.force(),
            reason: arguments.reason.text(),
        };
        let updated = daemon.objects(async |client| K::update(client, pool, object, how).await);
        let unset = &arguments.unset;
        let name_flag = |failure| name_unset_flag(input.with_location(failure), unset);
        updated.await.map_err(name_flag)
    };
    let updated = confirmation.change(*dry_run, update).await;
    ChangeReport::new(add_hint::<K, _>(daemon, &id, updated).await?, *dry_run)
}

/// Names `--unset` in a refusal of a path that came from it.
fn name_unset_flag(failure: Failure, unset: &[String]) -> Failure {
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

/// The current object; `None`: it does not exist, which is allowed.
async fn current<K: Kind>(
    daemon: &mut DaemonClient,
    id: &ObjectId,
    allow_missing: bool,
) -> Result<Option<ObjectAnswer<K>>, Failure> {
    let got = daemon.objects(async |client| K::get(client, id.clone()).await).await;
    match got {
        Err(failure) if allow_missing && failure.exit == Exit::NotFound => Ok(None),
        got => add_hint::<K, _>(daemon, id, got).await.map(Some),
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct DeleteArguments<K: Kind> {
    #[command(flatten)]
    which: K::Target,
    /// Only delete the object if it has this etag
    #[arg(long)]
    etag: Option<String>,
    /// Succeed if the object does not exist
    #[arg(long)]
    allow_missing: bool,
    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    force: K::DeleteForce,
    #[command(flatten)]
    wait: WaitArgument,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// # Errors
/// There is no such object, it is in use, the daemon does not answer, or balancers of the fleet lag.
pub(super) fn delete<K: Kind>(
    options: Options,
    arguments: &DeleteArguments<K>,
) -> Result<(), Failure> {
    let DeleteArguments { which, etag, allow_missing, dry_run, force, wait, confirmation, reason } =
        arguments;
    let (changes, waited) = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let id = resolve_id(&mut daemon, which).await?;
        let delete = async |Request { dry_run, .. }| {
            let how = DeleteOptions {
                etag: etag.clone().unwrap_or_default(),
                allow_missing: *allow_missing,
                dry_run,
                force: force.force(),
                reason: reason.text(),
            };
            daemon.objects(async |client| K::delete(client, id.clone(), how).await).await
        };
        let deleted = confirmation.change(*dry_run, delete).await;
        let deleted = add_hint::<K, _>(&mut daemon, &id, deleted).await?;
        let mut changes = Changes::new(deleted, *dry_run);
        let waited = wait.wait(&mut daemon, &mut changes).await;
        Ok((changes, waited))
    })?;
    print(&changes, options.output)?;
    waited
}

impl<K> StopsPackets for Changed<K> {
    fn stops(&self) -> Vec<String> {
        self.1.stops()
    }

    fn warnings(&self) -> &[v1::Warning] {
        self.1.warnings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_field_is_blamed_on_unset() {
        let failure = |message: &str| Failure::new(Exit::Invalid, message);
        let unset = ["weight".into(), "no-such".into()];
        let cause = "\"no_such\" is no field of Pool; it has name, slots";
        assert_eq!(
            name_unset_flag(failure(&format!("update_mask: \"no_such\": {cause}")), &unset).message,
            format!("--unset: {cause}")
        );
        let other = failure("update_mask: \"other\": \"other\" is no field of Pool");
        assert_eq!(
            name_unset_flag(other, &unset).message,
            "update_mask: \"other\": \"other\" is no field of Pool"
        );
    }
}
