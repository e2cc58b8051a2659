//! Interfaces.

use futures::TryStreamExt;
use netlink_packet_route::{
    AddressFamily,
    link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage},
};
use nix::errno::Errno;
use rtnetlink::{Error, Handle};

use super::{Mac, NetError, lookup};

/// An interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// MAC; `None` if its frames are not Ethernet.
    pub mac: Option<Mac>,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Whether it is set up.
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Whether it asks for no neighbours.
    pub noarp: bool,
}

impl Interface {
    /// The interface that a message tells of; `None` for one of a bridge about its ports.
    pub(super) fn parse(message: LinkMessage) -> Option<Self> {
        if message.header.interface_family != AddressFamily::Unspec {
            return None;
        }
        let flags = message.header.flags;
        let ethernet = message.header.link_layer_type == LinkLayerType::Ether;
        let mut interface = Self {
            index: message.header.index,
            name: String::new(),
            mac: None,
            mtu: 0,
            up: flags.contains(LinkFlags::Up),
            carrier: flags.contains(LinkFlags::LowerUp),
            noarp: flags.contains(LinkFlags::Noarp),
        };
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name = name,
                LinkAttribute::Mtu(mtu) => interface.mtu = mtu,
                LinkAttribute::Address(mac) if ethernet => interface.mac = mac.try_into().ok(),
                _ => {}
            }
        }
        Some(interface)
    }

    /// Whether frames can leave.
    pub(super) fn is_usable(&self) -> bool {
        self.up && self.carrier
    }
}

/// All interfaces.
pub(super) async fn interfaces(handle: &Handle) -> Result<Vec<Interface>, NetError> {
    let messages = handle.link().get().execute().try_collect::<Vec<_>>().await;
    let messages = messages.map_err(NetError::request("list interfaces"))?;
    Ok(messages.into_iter().filter_map(Interface::parse).collect())
}

/// The interface of that name.
///
/// # Errors
/// [`NetError::NoInterface`], or netlink fails.
pub async fn interface_by_name(name: &str) -> Result<Interface, NetError> {
    let (handle, _) = lookup::connect()?;
    let mut found = Box::pin(handle.link().get().match_name(name.to_owned()).execute());
    let missing = || NetError::NoInterface(name.to_owned());
    match found.try_next().await {
        Ok(Some(message)) => Interface::parse(message).ok_or_else(missing),
        Ok(None) => Err(missing()),
        // A name that cannot be one, as too long a one, is out of range.
        Err(Error::NetlinkError(error))
            if [Errno::ENODEV, Errno::ERANGE, Errno::EINVAL]
                .contains(&Errno::from_raw(-error.raw_code())) =>
        {
            Err(missing())
        }
        Err(error) => Err(NetError::request("look for an interface")(error)),
    }
}
