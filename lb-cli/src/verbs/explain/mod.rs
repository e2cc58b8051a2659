//! `spillway explain`: which backend a packet goes to, and why. It runs the packet program's own
//! decision over the pinned maps.

mod flow;
mod render;

use lb_daemon::explain;

use self::flow::Protocol;
use crate::{arguments::Options, failure::Failure, output::print, pinned};

/// Options of `explain`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Where the packet comes from, as in 198.51.100.7:40000 or [2001:db8::7]:40000
    client: String,
    /// The service's address and port, as in 192.0.2.1:80 or [2001:db8:1::1]:80
    vip: String,
    /// Transport protocol
    #[arg(long, value_enum, default_value_t)]
    protocol: Protocol,
    /// A packet of an open connection instead of a SYN
    #[arg(long)]
    open: bool,
}

/// Reads the maps, decides and prints.
///
/// # Errors
/// The command line names no packet, or the maps cannot be read.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { client, vip, protocol, open } = arguments;
    let flow = flow::parse(client, vip, *protocol, *open)?;
    let (maps, names) = pinned::open(options)?;
    let explanation = explain::of(&maps, &names, &flow).map_err(|error| pinned::failure(&error))?;
    print(&explanation, options.output)
}

#[cfg(test)]
mod tests;
