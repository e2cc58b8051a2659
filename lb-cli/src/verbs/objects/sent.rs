//! Where an object comes from: its flags, or a file that says it whole.

use std::path::PathBuf;

use clap::Args;
use lb_daemon::document;
use spillway_proto::v1;

use super::{
    calls::{Calls as _, Id},
    edit::Edit,
    kind::{Fields as _, InPool, Kind, Which},
};
use crate::{daemon::Daemon, exit::Exit, failure::Failure, source};

/// Letters of a wrong name that are repeated.
const NAME_SHOWN: usize = 70;

/// Options of `create` and `update`.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Source<K: Kind> {
    #[command(flatten)]
    pub(super) which: K::Named,
    #[command(flatten)]
    pub(super) fields: K::Fields,
    /// A file that says the object whole, as `get` prints it, instead of flags; `-` reads
    /// standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "fields")]
    file: Option<PathBuf>,
}

/// An object that is to be sent.
#[derive(Debug)]
pub(super) struct Sent<K> {
    pub(super) edit: Edit<K>,
    /// Name and text of the file it comes from.
    file: Option<(String, String)>,
}

impl<K: Kind> Source<K> {
    /// Whether the command line itself names it.
    pub(super) fn has_name(&self) -> bool {
        self.which.name().is_some()
    }

    /// The object, and the paths of the fields that are given: all, where a file gives them.
    ///
    /// # Errors
    /// The file cannot be read or is no such object, or flags do not go together.
    pub(super) fn read(&self, current: Option<&K>) -> Result<Sent<K>, Failure> {
        let Some(path) = &self.file else {
            let mut edit = Edit::default();
            self.fields.write(&mut edit, current)?;
            edit.object.rename(self.which.name().unwrap_or_default());
            return Ok(Sent { edit, file: None });
        };
        let (file, text) = (source::name_of(path), source::read(path)?);
        let object: K::File = document::parse_object(&text).map_err(|error| {
            Failure::new(Exit::Invalid, format!("{file}: {error}"))
                .hint(format!("nothing was sent; `spillway {} get NAME` prints the form", K::VERB))
        })?;
        let object: K = object.into();
        if let Some(name) = self.which.name().filter(|name| *name != object.name()) {
            let cause = format!("{file}: is about {}, not {name}", object.name());
            return Err(Failure::new(Exit::Usage, cause).hint("leave the name to the file"));
        }
        let edit = Edit { object, paths: vec!["*".into()] };
        Ok(Sent { edit, file: Some((file, text)) })
    }
}

impl<K: Kind> Sent<K> {
    /// Which object it is.
    pub(super) fn id(&self, pool: String) -> Id {
        Id { pool, name: self.edit.object.name().into() }
    }

    /// Adds to what the daemon found fault with where it stands in the file.
    pub(super) fn located(&self, failure: Failure) -> Failure {
        let Some((file, text)) = &self.file else { return failure };
        let field = failure.field.as_deref().and_then(|field| field.split_once('.'));
        let place = field.and_then(|(_, field)| document::place(text, field));
        let Some((line, column)) = place else { return failure };
        let message = format!("{file}: line {line}, column {column}: {}", failure.message);
        // It is no flag that is to be corrected.
        Failure { message, field: None, ..failure }
    }
}

/// The pool that a new object goes to; empty where its kind has none.
///
/// # Errors
/// A backend without a pool.
pub(super) fn pool_of_new<K: Kind>(source: &Source<K>) -> Result<String, Failure> {
    match source.which.pool() {
        InPool::Named(pool) => Ok(pool.into()),
        InPool::Unsaid => Err(Failure::new(Exit::Usage, format!("{}: no pool is said", K::WORD))
            .hint("give --pool; `spillway pool list` shows them")),
        InPool::Never => Ok(String::new()),
    }
}

/// Which object a command line means: a backend may be named by its address alone where only one pool
/// has that.
///
/// # Errors
/// No pool has the backend, or several have.
pub(super) async fn find(daemon: &mut Daemon, which: &impl Which) -> Result<Id, Failure> {
    let name = which.name().unwrap_or_default().to_owned();
    let pool = match which.pool() {
        InPool::Named(pool) => pool.into(),
        InPool::Unsaid => only_pool(daemon, &name).await?,
        InPool::Never => String::new(),
    };
    Ok(Id { pool, name })
}

async fn only_pool(daemon: &mut Daemon, name: &str) -> Result<String, Failure> {
    let all = async |client: &mut _| v1::Backend::list(client, String::new()).await;
    let (_, backends) = daemon.objects(all).await?;
    let mut pools = pools_with(name, &backends);
    match pools.len() {
        0 if name.parse::<std::net::IpAddr>().is_err() => {
            let short: String = name.chars().take(NAME_SHOWN).collect();
            Err(Failure::new(
                Exit::Usage,
                format!("backend {short}: is not an IPv4 or IPv6 address"),
            )
            .hint("`spillway backend list` shows those there are"))
        }
        0 => Err(Failure::new(Exit::NotFound, format!("backend {name}: no pool has it"))
            .hint("`spillway backend list` shows those there are")),
        1 => Ok(pools.remove(0)),
        _ => {
            let several = format!("backend {name}: is in several pools: {}", pools.join(", "));
            Err(Failure::new(Exit::Usage, several).hint("say which with --pool"))
        }
    }
}

/// Pools that have a backend of this address, however it is spelt.
fn pools_with(name: &str, backends: &[super::calls::Answer<v1::Backend>]) -> Vec<String> {
    let parse = |text: &str| text.parse::<std::net::IpAddr>().ok();
    let same = |address: &str| match (parse(address), parse(name)) {
        (Some(one), Some(other)) => one == other,
        _ => address == name,
    };
    let with = backends.iter().filter(|backend| same(&backend.object.address));
    with.map(|backend| backend.pool.clone()).collect()
}
