//! `spillway doctor`: looks at this host, a balancer or a backend, and says what is wrong with what
//! command to mend it. It works with the daemon dead.
//!
//! Facts are read first, all of them ([`facts`]); a check is a pure judgement over them ([`checks`]).

mod checks;
mod commands;
mod facts;
mod finding;
mod render;

use self::{facts::Facts, render::Diagnosis};
use crate::{arguments::Options, exit::Exit, failure::Failure, origin, output::print};

/// Options of `doctor`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Largest IP packet that clients send, bytes: it has to fit the tunnels
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    #[arg(value_parser = clap::value_parser!(u32).range(1280..=9000))]
    client_mtu: u32,
    /// Send nothing: else the balancer's daemon asks each backend for its VIPs through the tunnels
    #[arg(long)]
    no_probes: bool,
}

/// Looks at everything, and prints what it comes to.
///
/// # Errors
/// [`Exit::Unwell`] where something is wrong, after it was printed; netlink fails, or a server is given.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    origin::this_host(options, "doctor", "looks at this host")?;
    let facts = Facts::gather(options, arguments.client_mtu, !arguments.no_probes)?;
    let diagnosis = Diagnosis::new(
        facts.roles.iter().map(|installed| installed.role.name()).collect(),
        checks::judge(&facts),
    );
    print(&diagnosis, options.output)?;
    match diagnosis.problems {
        0 => Ok(()),
        problems => Err(Failure::new(
            Exit::Unwell,
            format!("this host: {}", crate::output::count(problems as u64, "problem")),
        )
        .hint("paste the `mend` commands above, then ask `spillway doctor` again")),
    }
}
