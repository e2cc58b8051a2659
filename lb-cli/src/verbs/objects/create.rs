//! `spillway KIND create`.

use super::{
    advice::advise,
    answer::Done,
    kind::Kind,
    sent::{Source, pool_of_new},
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    failure::Failure,
    output::print,
};

/// Options of `create`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments<K: Kind> {
    #[command(flatten)]
    source: Source<K>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

/// Asks the daemon and prints.
///
/// # Errors
/// The flags or the file say no object, or the daemon refuses or does not answer.
pub(super) fn run<K: Kind>(options: Options, arguments: &Arguments<K>) -> Result<(), Failure> {
    let (source, dry_run) = (&arguments.source, arguments.dry_run);
    let pool = pool_of_new(source)?;
    let sent = source.read(None)?;
    let done = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let id = sent.id(pool);
        let object = sent.edit.object.clone();
        let create =
            async |client: &mut _| K::create(client, id.pool.clone(), object, dry_run).await;
        let created = daemon.objects(create).await.map_err(|failure| sent.located(failure));
        Done::new(advise::<K, _>(&mut daemon, &id, created).await?, dry_run)
    })?;
    print(&done, options.output)
}
