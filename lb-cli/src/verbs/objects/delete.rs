//! `spillway KIND delete`.

use super::{advice::advise, calls::Delete, kind::Kind, sent::find};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    failure::Failure,
    output::print,
    verbs::change::Changes,
};

/// Options of `delete`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments<K: Kind> {
    #[command(flatten)]
    which: K::One,
    /// Take it away only while it has this etag
    #[arg(long)]
    etag: Option<String>,
    /// Be content where there is none
    #[arg(long)]
    allow_missing: bool,
    /// Only print what would go
    #[arg(long)]
    dry_run: bool,
}

/// Asks the daemon and prints what went.
///
/// # Errors
/// There is none of the name, something needs it, or the daemon does not answer.
pub(super) fn run<K: Kind>(options: Options, arguments: &Arguments<K>) -> Result<(), Failure> {
    let Arguments { which, etag, allow_missing, dry_run } = arguments;
    let how = Delete {
        etag: etag.clone().unwrap_or_default(),
        allow_missing: *allow_missing,
        dry_run: *dry_run,
    };
    let changes = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let id = find(&mut daemon, which).await?;
        let deleted = daemon.objects(async |client| K::delete(client, id.clone(), how).await).await;
        Ok(Changes::new(advise::<K, _>(&mut daemon, &id, deleted).await?, *dry_run))
    })?;
    print(&changes, options.output)
}
