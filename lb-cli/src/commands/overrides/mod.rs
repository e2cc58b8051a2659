//! Overrides: `drain`, `undrain`, `disable`, `enable`, `weight` and `scale` of backends, pools and regions, and
//! `spillway override`, which lists and removes them.

mod change;
mod report;
mod wait;

use clap::Subcommand;

pub(crate) use change::{
    BackendTarget, DisableOptions, DrainOptions, Ending, PercentOptions, PoolTarget, RegionTarget,
    disable, end, set, set_percent,
};
pub(crate) use report::{OverrideRow, head_line};

use crate::{
    arguments::{Options, ReasonArgument},
    client::{DaemonClient, block_on},
    failure::{Exit, Failure},
    output::print,
};
use report::{List, Removed};

/// `spillway override`
#[derive(Debug, Subcommand)]
pub(crate) enum OverrideCommand {
    /// List the overrides in force
    List,
    /// Remove overrides by their names
    Remove(RemoveArguments),
}

#[derive(clap::Args, Debug)]
pub(crate) struct RemoveArguments {
    /// Names as `spillway override list` prints them, such as backends/10.0.0.1/drain
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    reason: ReasonArgument,
}

impl OverrideCommand {
    /// # Errors
    /// A name is wrong, or the daemon refuses or does not answer.
    pub(crate) fn run(self, options: Options) -> Result<(), Failure> {
        match self {
            Self::List => {
                let list = async { DaemonClient::connect(&options).await?.overrides().await };
                print(&List::new(block_on(list)?), options.output)
            }
            Self::Remove(RemoveArguments { names, dry_run, reason }) => {
                let removed = block_on(async {
                    let mut daemon = DaemonClient::connect(&options).await?;
                    let removed = change::remove(&mut daemon, names, dry_run, &reason).await;
                    removed.map_err(|failure| match failure.exit {
                        Exit::Invalid => failure.hint("`spillway override list` prints the names"),
                        _ => failure,
                    })
                })?;
                print(&Removed::new(removed, dry_run), options.output)
            }
        }
    }
}
