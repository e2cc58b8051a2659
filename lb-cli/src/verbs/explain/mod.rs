//! `spillway explain`: which backend a packet goes to, and why. The packet program's own decision is run
//! over the pinned maps, here or by the daemon.

mod flow;
mod render;

use lb_daemon::{api::convert, causes, explain};
use spillway_proto::v1;

use self::flow::Protocol;
use crate::{
    arguments::Options, daemon::Daemon, exit::Exit, failure::Failure, origin, output::print, pinned,
};

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

/// Asks the daemon, or reads the maps and decides, and prints.
///
/// # Errors
/// The command line names no packet, the daemon does not answer, or the maps cannot be read.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { client, vip, protocol, open } = arguments;
    let flow = flow::parse(client, vip, *protocol, *open)?;
    let ask = async |daemon: &mut Daemon| {
        let answer = daemon.explain(request(arguments)).await?;
        convert::explanation(&flow, answer).map_err(|unknown| {
            Failure::new(Exit::Failure, causes::of(&unknown))
                .hint("spillway and spillwayd should be of one version")
        })
    };
    let read = || {
        let (maps, names) = pinned::open(options)?;
        pinned::warn_of_namespace(&names);
        explain::of(&maps, &names, &flow).map_err(|error| pinned::failure(&error))
    };
    print(&origin::answer(options, ask, read)?, options.output)
}

fn request(arguments: &Arguments) -> v1::ExplainRequest {
    let Arguments { client, vip, protocol, open } = arguments;
    let protocol = match protocol {
        Protocol::Tcp => v1::Protocol::Tcp,
        Protocol::Udp => v1::Protocol::Udp,
    };
    v1::ExplainRequest {
        client: client.clone(),
        vip: vip.clone(),
        protocol: protocol.into(),
        open: *open,
    }
}

#[cfg(test)]
mod tests;
