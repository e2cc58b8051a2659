//! `spillway KIND list`.

use super::{
    advice::advise,
    answer::Listed,
    calls::Id,
    kind::{InPool, Kind, Which as _},
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    failure::Failure,
    output::print,
};

/// Options of `list`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments<K: Kind> {
    #[command(flatten)]
    which: K::Filter,
}

/// Asks the daemon and prints.
///
/// # Errors
/// There is no such pool, or the daemon does not answer.
pub(super) fn run<K: Kind>(options: Options, arguments: &Arguments<K>) -> Result<(), Failure> {
    let pool = match arguments.which.pool() {
        InPool::Named(pool) => pool.to_owned(),
        InPool::Unsaid | InPool::Never => String::new(),
    };
    let listed = converse(async {
        let mut daemon = Daemon::open(&options).await?;
        let id = Id { pool: pool.clone(), name: String::new() };
        let listed = daemon.objects(async |client| K::list(client, pool).await).await;
        let (generation, answers) = advise::<K, _>(&mut daemon, &id, listed).await?;
        Listed::new(generation, answers)
    })?;
    print(&listed, options.output)
}
