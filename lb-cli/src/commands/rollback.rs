//! `spillway rollback`: makes a new generation with the configuration of an earlier one.

use spillway_proto::v1;

use super::{
    changes::Changes,
    confirm::{ForceArgument, confirm, require_force, require_terminal},
    fleet::WaitArgument,
};
use crate::{
    arguments::{Options, ReasonArgument, parse_generation},
    client::{DaemonClient, block_on},
    failure::Failure,
    output::{Report as _, print, print_stderr},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Generation whose configuration is to be in force again
    #[arg(value_name = "N", value_parser = parse_generation)]
    generation: u64,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; needed if standard input is not a terminal
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Roll back only while this generation is in force
    #[arg(long, value_name = "N", value_parser = parse_generation)]
    expect_generation: Option<u64>,
    /// Replace a configuration in force that is newer than the daemon's schema
    #[arg(long)]
    any_schema: bool,
    #[command(flatten)]
    force: ForceArgument,
    #[command(flatten)]
    wait: WaitArgument,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// # Errors
/// The generation is not in the history or cannot be used, the user does not agree, the daemon refuses or does not
/// answer, or balancers of the fleet lag.
pub(crate) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { generation, dry_run, yes, .. } = arguments;
    if !yes && !dry_run {
        require_terminal("rollback", &format!("rollback {generation}"))?;
    }
    let (changes, waited) = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let mut changes = roll_back(&mut daemon, arguments).await?;
        let waited = arguments.wait.wait(&mut daemon, &mut changes).await;
        Ok((changes, waited))
    })?;
    print(&changes, options.output)?;
    waited
}

/// Unless `--yes` is given, prints what would change, and asks.
async fn roll_back(daemon: &mut DaemonClient, arguments: &Arguments) -> Result<Changes, Failure> {
    let Arguments {
        generation, dry_run, yes, expect_generation, any_schema, force, reason, ..
    } = arguments;
    let request = |dry_run, expected_generation| v1::RollbackRequest {
        generation: *generation,
        expected_generation,
        validate_only: dry_run,
        reason: reason.text(),
        any_schema: *any_schema,
        force: force.force,
    };
    if *yes || *dry_run {
        let answer = daemon.rollback(request(*dry_run, *expect_generation)).await?;
        return Ok(Changes::new(answer, *dry_run));
    }
    let seen = daemon.rollback(request(true, *expect_generation)).await?;
    let in_force = seen.generation;
    // There is nothing to ask before.
    require_force(&seen.warnings)?;
    let seen = Changes::new(seen, true);
    if seen.changes.is_empty() {
        return Ok(seen);
    }
    print_stderr(seen.table().trim_end());
    seen.warnings().iter().for_each(|warning| print_stderr(&format!("warning: {warning}")));
    confirm(&format!("Roll back to the configuration of generation {generation}?")).await?;
    // Only what was shown.
    let answer = daemon.rollback(request(false, Some(in_force))).await?;
    Ok(Changes::new(answer, false))
}
