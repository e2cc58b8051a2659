//! What the kernel says is attached to an interface.

use std::{fmt, io};

use aya::util::KernelVersion;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{LinkAttribute, LinkMessage, LinkXdp, XdpAttached},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// How a program is attached, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachedMode {
    /// In the driver.
    Native,
    /// In the stack, for drivers that cannot: slower, and after an skb was made.
    Generic,
    /// In the stack, at tc's hook.
    Tc,
    /// On the card, or several at once: not by us.
    Other,
}

impl fmt::Display for AttachedMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
            Self::Tc => "tc",
            Self::Other => "other",
        })
    }
}

/// An XDP program on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) mode: AttachedMode,
    /// Id of the program.
    pub(super) program: u32,
}

/// The XDP program on an interface, or `None`.
///
/// # Errors
/// What netlink answers, `ENODEV` where there is no such interface.
pub(super) fn attachment(interface: u32) -> io::Result<Option<Attachment>> {
    let link = link_message(interface)?;
    let xdp = link.attributes.into_iter().find_map(|attribute| match attribute {
        LinkAttribute::Xdp(xdp) => Some(xdp),
        _ => None,
    });
    let (mut mode, mut program) = (None, 0);
    for part in xdp.unwrap_or_default() {
        match part {
            LinkXdp::Attached(XdpAttached::Driver) => mode = Some(AttachedMode::Native),
            LinkXdp::Attached(XdpAttached::SocketBuffer) => mode = Some(AttachedMode::Generic),
            LinkXdp::Attached(XdpAttached::None) => mode = None,
            LinkXdp::Attached(_) => mode = Some(AttachedMode::Other),
            LinkXdp::ProgId(id) => program = id,
            _ => {}
        }
    }
    Ok(mode.map(|mode| Attachment { mode, program }))
}

/// What netlink says of an interface.
///
/// # Errors
/// What netlink answers, `ENODEV` where there is no such interface.
pub(crate) fn link_message(interface: u32) -> io::Result<LinkMessage> {
    let mut wanted = LinkMessage::default();
    wanted.header.index = interface;
    match ask(RouteNetlinkMessage::GetLink(wanted))? {
        RouteNetlinkMessage::NewLink(link) => Ok(link),
        other => Err(io::Error::other(format!("unexpected answer to a link request: {other:?}"))),
    }
}

/// Asks netlink for one thing.
///
/// # Errors
/// What it answers.
pub(super) fn ask(question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut request = NetlinkMessage::new(header, question.into());
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);

    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bytes, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
    match answer.map_err(io::Error::other)?.payload {
        NetlinkPayload::InnerMessage(answer) => Ok(answer),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        other => Err(io::Error::other(format!("unexpected answer: {other:?}"))),
    }
}

/// Where a program is to be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// At the driver's, before the stack has a packet.
    Xdp(XdpMode),
    /// At tc's, where the stack has it: the receiver's program only.
    Tc,
}

impl From<XdpMode> for Hook {
    fn from(mode: XdpMode) -> Self {
        Self::Xdp(mode)
    }
}

impl Hook {
    /// Whether what is attached so was asked for.
    pub(super) fn allows(self, mode: AttachedMode) -> bool {
        match self {
            Self::Xdp(xdp) => xdp.allows(mode),
            Self::Tc => mode == AttachedMode::Tc,
        }
    }

    /// Whether programs are there by filters: the kernel has no links for it.
    pub(super) fn is_by_filters(self) -> bool {
        let since = KernelVersion::new(6, 6, 0);
        self == Self::Tc && KernelVersion::current().is_ok_and(|running| running < since)
    }
}

/// How an XDP program is to be attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, or in the stack where the driver cannot, with a warning.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the stack.
    Generic,
}

impl XdpMode {
    const fn allows(self, mode: AttachedMode) -> bool {
        match self {
            Self::Auto => matches!(mode, AttachedMode::Native | AttachedMode::Generic),
            Self::Native => matches!(mode, AttachedMode::Native),
            Self::Generic => matches!(mode, AttachedMode::Generic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_attached_to_loopback_and_nothing_is_known_of_an_interface_that_is_not() {
        let loopback = nix::net::if_::if_nametoindex("lo").unwrap();
        assert_eq!(attachment(loopback).unwrap(), None);
        let error = attachment(0x7fff_fff0).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
