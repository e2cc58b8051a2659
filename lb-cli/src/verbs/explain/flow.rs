//! The packet that a command line describes.

use lb_daemon::{explain::Flow, model};

use crate::{endpoint, exit::Exit, failure::Failure};

/// A transport protocol of the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// The packet of a command line.
///
/// # Errors
/// An endpoint is no address with a port, the two are not of one family, or UDP is said to be of an
/// open connection.
pub(super) fn parse(
    client: &str,
    vip: &str,
    protocol: Protocol,
    open: bool,
) -> Result<Flow, Failure> {
    let client = endpoint::parse("client", client)?;
    let vip = endpoint::parse("vip", vip)?;
    let protocol = match protocol {
        Protocol::Tcp => model::Protocol::Tcp,
        Protocol::Udp => model::Protocol::Udp,
    };
    Flow::new(client, vip, protocol, open)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(error.hint()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_families_and_open_datagrams_are_refused() {
        let mixed = parse("[2001:db8::7]:1", "192.0.2.1:80", Protocol::Tcp, false);
        assert_eq!(
            mixed.unwrap_err().to_string(),
            "error: client [2001:db8::7]:1 and vip 192.0.2.1:80: they are of two IP versions\n\
             hint: give both as IPv4 or both as IPv6 addresses"
        );
        let open = parse("198.51.100.7:1", "192.0.2.1:53", Protocol::Udp, true);
        assert_eq!(open.unwrap_err().exit, Exit::Usage);
    }
}
