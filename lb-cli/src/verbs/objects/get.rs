//! `spillway KIND get`.

use super::{advice::advise, answer::Got, kind::Kind, sent::find};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    failure::Failure,
    output::print,
};

/// Options of `get`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments<K: Kind> {
    #[command(flatten)]
    which: K::One,
}

/// Asks the daemon and prints.
///
/// # Errors
/// There is none of the name, or the daemon does not answer.
pub(super) fn run<K: Kind>(options: Options, arguments: &Arguments<K>) -> Result<(), Failure> {
    let got = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let id = find(&mut daemon, &arguments.which).await?;
        let got = daemon.objects(async |client| K::get(client, id.clone()).await).await;
        Got::new(advise::<K, _>(&mut daemon, &id, got).await?)
    })?;
    print(&got, options.output)
}
