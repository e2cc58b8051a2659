//! Input of `create` and `update`: an object from flags or from a file, and which object is meant.

use std::path::PathBuf;

use clap::Args;
use lb_config::document;
use spillway_proto::v1;

use super::{
    calls::{ListFilter, ObjectAnswer, ObjectCalls as _, ObjectId},
    kind::{Fields as _, Kind, Patch, PoolArgument, Selector},
};
use crate::{
    arguments,
    client::DaemonClient,
    failure::{Exit, Failure},
};

/// Most characters of an invalid name to repeat in a message.
const MAX_NAME_SHOWN: usize = 70;

#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct ObjectSource<K: Kind> {
    #[command(flatten)]
    pub(super) which: K::TargetOrFile,
    #[command(flatten)]
    pub(super) fields: K::Fields,
    /// File with the whole object, as `get` prints it, instead of flags; `-` reads
    /// standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "fields")]
    file: Option<PathBuf>,
}

/// An object to send to the daemon.
#[derive(Debug)]
pub(super) struct Input<K> {
    pub(super) patch: Patch<K>,
    /// Name and text of the file it comes from.
    file: Option<(String, String)>,
}

impl<K: Kind> ObjectSource<K> {
    /// Whether the command line names the object.
    pub(super) fn has_name(&self) -> bool {
        self.which.name().is_some()
    }

    /// The object with the paths of its given fields; a file gives all fields.
    ///
    /// # Errors
    /// The file cannot be read or is not such an object, or flags conflict.
    pub(super) fn read(&self, current: Option<&K>) -> Result<Input<K>, Failure> {
        let Some(path) = &self.file else {
            let mut patch = Patch::default();
            self.fields.write(&mut patch, current)?;
            patch.object.rename(self.which.name().unwrap_or_default());
            return Ok(Input { patch, file: None });
        };
        let (file, text) = (arguments::input_name(path), arguments::read_input(path)?);
        let object: K::File = document::parse_object(&text).map_err(|error| {
            Failure::document(&file, &error).hint(format!(
                "nothing was sent; `spillway {} get NAME` prints an example",
                K::COMMAND
            ))
        })?;
        let object: K = object.into();
        if let Some(name) = self.which.name().filter(|name| *name != object.name()) {
            let cause = format!("{file}: defines {}, not {name}", object.name());
            return Err(
                Failure::new(Exit::Usage, cause).hint("leave out the name on the command line")
            );
        }
        let patch = Patch { object, paths: vec!["*".into()] };
        Ok(Input { patch, file: Some((file, text)) })
    }
}

impl<K: Kind> Input<K> {
    pub(super) fn id(&self, pool: String) -> ObjectId {
        ObjectId { pool, name: self.patch.object.name().into() }
    }

    /// Adds the line and column in the file of each field that the daemon refused.
    pub(super) fn with_location(&self, failure: Failure) -> Failure {
        let Some((file, text)) = &self.file else { return failure };
        let find = |field: &str| document::find_field(text, field.split_once('.')?.1);
        let is_there = failure.field.as_deref().and_then(find).is_some();
        let failure = failure.located(file, find);
        // The hint must not name a flag.
        let field = failure.field.clone().filter(|_| !is_there);
        Failure { field, ..failure }
    }
}

/// The pool for a new object; empty if its kind has none.
///
/// # Errors
/// A backend needs a pool.
pub(super) fn pool_for_create<K: Kind>(source: &ObjectSource<K>) -> Result<String, Failure> {
    match source.which.pool() {
        PoolArgument::Named(pool) => Ok(pool.into()),
        PoolArgument::Missing => {
            Err(Failure::new(Exit::Usage, format!("{}: no pool given", K::NAME))
                .hint("give --pool; `spillway pool list` lists the pools"))
        }
        PoolArgument::NotInPool => Ok(String::new()),
    }
}

/// Resolves the object that the command line means. A backend needs no pool if only one pool has its address.
///
/// # Errors
/// No pool has the backend, or several have it.
pub(super) async fn resolve_id(
    daemon: &mut DaemonClient,
    which: &impl Selector,
) -> Result<ObjectId, Failure> {
    let name = which.name().unwrap_or_default().to_owned();
    let pool = match which.pool() {
        PoolArgument::Named(pool) => pool.into(),
        PoolArgument::Missing => only_pool(daemon, &name).await?,
        PoolArgument::NotInPool => String::new(),
    };
    Ok(ObjectId { pool, name })
}

async fn only_pool(daemon: &mut DaemonClient, name: &str) -> Result<String, Failure> {
    let all = async |client: &mut _| v1::Backend::list(client, &ListFilter::default()).await;
    let (_, backends) = daemon.objects(all).await?;
    let mut pools = pools_with(name, &backends);
    match pools.len() {
        0 if name.parse::<std::net::IpAddr>().is_err() => {
            let short: String = name.chars().take(MAX_NAME_SHOWN).collect();
            Err(Failure::new(Exit::Usage, format!("backend {short}: not an IPv4 or IPv6 address"))
                .hint("`spillway backend list` lists the backends"))
        }
        0 => Err(Failure::new(Exit::NotFound, format!("backend {name}: not in any pool"))
            .hint("`spillway backend list` lists the backends")),
        1 => Ok(pools.remove(0)),
        _ => {
            let several = format!("backend {name}: in several pools: {}", pools.join(", "));
            Err(Failure::new(Exit::Usage, several).hint("choose one with --pool"))
        }
    }
}

/// Pools that have a backend with this address, in any notation.
fn pools_with(name: &str, backends: &[ObjectAnswer<v1::Backend>]) -> Vec<String> {
    let parse = |text: &str| text.parse::<std::net::IpAddr>().ok();
    let same = |address: &str| match (parse(address), parse(name)) {
        (Some(one), Some(other)) => one == other,
        _ => address == name,
    };
    let with = backends.iter().filter(|backend| same(&backend.object.address));
    with.map(|backend| backend.pool.clone()).collect()
}
