//! `spillway backend drain`, `enable`, `disable`: one word of what is wanted of backends.

use spillway_proto::v1;

use super::{
    advice::advise,
    answer::Done,
    calls::{Calls as _, Update},
    fields::{Address, Addresses},
    sent::find,
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::print,
};

/// Which backends.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Addresses,
    /// Change it only while it has this etag; of one backend
    #[arg(long)]
    etag: Option<String>,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

/// Asks the daemon and prints. Each of several is done or refused by itself, in the order given.
///
/// # Errors
/// There is no such backend, or the daemon refuses or does not answer: of several the first failure,
/// where each has been told already.
pub(super) fn run(
    options: Options,
    arguments: &Arguments,
    wanted: v1::WantedState,
) -> Result<(), Failure> {
    let each = arguments.which.each();
    if each.len() > 1 && arguments.etag.is_some() {
        let message = "--etag: is of one backend, and several were named";
        return Err(Failure::new(Exit::Usage, message).hint("name one of them with it"));
    }
    converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let mut first = None;
        for which in &each {
            let done = one(&mut daemon, which, arguments, wanted).await;
            match done.and_then(|done| print(&done, options.output)) {
                Err(failure) if each.len() > 1 => {
                    let failure = failure.told();
                    first.get_or_insert(failure);
                }
                other => other?,
            }
        }
        first.map_or(Ok(()), Err)
    })
}

async fn one(
    daemon: &mut Daemon,
    which: &Address,
    arguments: &Arguments,
    wanted: v1::WantedState,
) -> Result<Done<v1::Backend>, Failure> {
    let Arguments { etag, dry_run, .. } = arguments;
    let id = find(daemon, which).await?;
    let backend =
        v1::Backend { address: id.name.clone(), wanted: wanted.into(), ..v1::Backend::default() };
    let how = Update {
        paths: vec!["wanted".into()],
        etag: etag.clone().unwrap_or_default(),
        allow_missing: false,
        dry_run: *dry_run,
    };
    let pool = id.pool.clone();
    let update = async |client: &mut _| v1::Backend::update(client, pool, backend, how).await;
    let updated = daemon.objects(update).await;
    Done::new(advise::<v1::Backend, _>(daemon, &id, updated).await?, *dry_run)
}
