//! `spillway backend drain`, `enable`, `disable`: one word of what is wanted of a backend.

use spillway_proto::v1;

use super::{
    advice::advise,
    answer::Done,
    calls::{Calls as _, Update},
    fields::Address,
    sent::find,
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    failure::Failure,
    output::print,
};

/// Which backend.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Address,
    /// Change it only while it has this etag
    #[arg(long)]
    etag: Option<String>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

/// Asks the daemon and prints.
///
/// # Errors
/// There is no such backend, or the daemon refuses or does not answer.
pub(super) fn run(
    options: Options,
    arguments: &Arguments,
    wanted: v1::WantedState,
) -> Result<(), Failure> {
    let Arguments { which, etag, dry_run } = arguments;
    let done = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let id = find(&mut daemon, which).await?;
        let backend = v1::Backend {
            address: id.name.clone(),
            wanted: wanted.into(),
            ..v1::Backend::default()
        };
        let how = Update {
            paths: vec!["wanted".into()],
            etag: etag.clone().unwrap_or_default(),
            allow_missing: false,
            dry_run: *dry_run,
        };
        let pool = id.pool.clone();
        let update = async |client: &mut _| v1::Backend::update(client, pool, backend, how).await;
        let updated = daemon.objects(update).await;
        Done::new(advise::<v1::Backend, _>(&mut daemon, &id, updated).await?, *dry_run)
    })?;
    print(&done, options.output)
}
