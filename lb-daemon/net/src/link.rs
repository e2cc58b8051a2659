//! Interfaces.

use futures::TryStreamExt;
use netlink_packet_route::{
    AddressFamily,
    link::{
        InfoData, InfoPortKind, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType,
        LinkMessage, Prop, VlanProtocol,
    },
};
use rtnetlink::{Handle, MulticastGroup};

use super::{Mac, NetError, connect, events::Events};
use lb_model::next_hop::Vlan;

/// An interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Its other names (`altname` of iproute2), up to 127 bytes long.
    pub alternative_names: Vec<String>,
    /// MAC; `None` if its frames are not Ethernet.
    pub mac: Option<Mac>,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Whether it is set up.
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Whether ARP and neighbour discovery are off.
    pub noarp: bool,
    /// Parent and id of a VLAN; `None`: not a VLAN, or [an unsupported one](Self::unsupported_vlan).
    pub vlan: Option<Vlan>,
    /// Why the packet program cannot add the interface's tag; `None`: it can, or there is none.
    pub unsupported_vlan: Option<UnsupportedVlan>,
    /// Index of the bond that it is a port of.
    pub bond: Option<u32>,
}

/// Why the packet program cannot add a VLAN's tag. Frames that it sends bypass the kernel's VLAN device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedVlan {
    /// A provider bridge's VLAN.
    #[error("it is an 802.1ad VLAN")]
    Provider,
    /// Frames would need two tags.
    #[error("its parent {0} is a VLAN too")]
    Stacked(String),
    /// The parent interface is not visible.
    #[error("its parent is in another namespace")]
    OtherNamespace,
}

impl Interface {
    /// Reads an interface from a message; `None` for a bridge's message about its ports.
    pub(super) fn parse(message: LinkMessage) -> Option<Self> {
        if message.header.interface_family != AddressFamily::Unspec {
            return None;
        }
        let flags = message.header.flags;
        let ethernet = message.header.link_layer_type == LinkLayerType::Ether;
        let mut interface = Self {
            index: message.header.index,
            name: String::new(),
            alternative_names: Vec::new(),
            mac: None,
            mtu: 0,
            up: flags.contains(LinkFlags::Up),
            carrier: flags.contains(LinkFlags::LowerUp),
            noarp: flags.contains(LinkFlags::Noarp),
            vlan: None,
            unsupported_vlan: None,
            bond: None,
        };
        let (mut beneath, mut tag, mut elsewhere) = (None, None, false);
        let (mut master, mut is_bonds) = (None, false);
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name = name,
                LinkAttribute::PropList(properties) => {
                    interface.alternative_names.extend(properties.into_iter().filter_map(|it| {
                        match it {
                            Prop::AltIfName(name) => Some(name),
                            _ => None,
                        }
                    }));
                }
                LinkAttribute::Mtu(mtu) => interface.mtu = mtu,
                LinkAttribute::Address(mac) if ethernet => interface.mac = mac.try_into().ok(),
                LinkAttribute::Link(index) => beneath = Some(index),
                // The parent is in another namespace.
                LinkAttribute::LinkNetNsId(_) => elsewhere = true,
                LinkAttribute::Controller(index) => master = Some(index),
                LinkAttribute::LinkInfo(infos) => {
                    tag = infos.iter().find_map(vlan_tag);
                    is_bonds = infos.contains(&LinkInfo::PortKind(InfoPortKind::Bond));
                }
                _ => {}
            }
        }
        match (tag, beneath.filter(|_| !elsewhere)) {
            (None, _) => {}
            (Some(Err(unsupported_vlan)), _) => interface.unsupported_vlan = Some(unsupported_vlan),
            (Some(Ok(id)), Some(beneath)) => interface.vlan = Some(Vlan { beneath, id }),
            (Some(Ok(_)), None) => {
                interface.unsupported_vlan = Some(UnsupportedVlan::OtherNamespace)
            }
        }
        // Ports of bridges and teams do not run the program of their controller.
        interface.bond = master.filter(|_| is_bonds);
        Some(interface)
    }

    /// Whether this is its name, or one of its other names.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.alternative_names.iter().any(|it| it == name)
    }

    /// Whether frames can be sent.
    pub(super) fn is_usable(&self) -> bool {
        self.up && self.carrier
    }
}

/// The id of an 802.1Q VLAN; `None`: not a VLAN.
fn vlan_tag(info: &LinkInfo) -> Option<Result<u16, UnsupportedVlan>> {
    let LinkInfo::Data(InfoData::Vlan(attributes)) = info else { return None };
    let is_customers =
        |attribute: &InfoVlan| matches!(attribute, InfoVlan::Protocol(VlanProtocol::Ieee8021Q));
    let id = attributes.iter().find_map(|attribute| match attribute {
        InfoVlan::Id(id) => Some(*id),
        _ => None,
    });
    let id = id.filter(|_| attributes.iter().any(is_customers));
    Some(id.ok_or(UnsupportedVlan::Provider))
}

/// Waits for changes of interfaces.
pub struct LinkChanges(Events);

impl LinkChanges {
    /// Subscribes in the network namespace of the calling thread.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn follow() -> Result<Self, NetError> {
        Events::open(&[MulticastGroup::Link]).map(Self)
    }

    /// Returns once some interface changed, or if it may have. Cancel-safe.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn next(&mut self) -> Result<(), NetError> {
        self.0.next().await.map(drop)
    }
}

/// Lists the interfaces.
pub(super) async fn interfaces(handle: &Handle) -> Result<Vec<Interface>, NetError> {
    let messages = handle.link().get().execute().try_collect::<Vec<_>>().await;
    let messages = messages.map_err(NetError::request("list interfaces"))?;
    Ok(messages.into_iter().filter_map(Interface::parse).collect())
}

/// Lists the interfaces of this host, by index.
///
/// # Errors
/// Netlink fails.
pub async fn all_interfaces() -> Result<Vec<Interface>, NetError> {
    let (handle, _) = connect()?;
    let mut all = interfaces(&handle).await?;
    all.sort_by_key(|interface| interface.index);
    Ok(all)
}

/// Finds an interface by one of its names.
///
/// # Errors
/// [`NetError::NoInterface`], or netlink fails.
pub async fn interface_by_name(name: &str) -> Result<Interface, NetError> {
    let mut all = all_interfaces().await?.into_iter();
    all.find(|it| it.is_called(name)).ok_or_else(|| NetError::NoInterface(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says of VLAN 20 of interface 2.
    fn vlan(protocol: VlanProtocol, more: &[LinkAttribute]) -> Interface {
        let data = InfoData::Vlan(vec![InfoVlan::Protocol(protocol), InfoVlan::Id(20)]);
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.header.link_layer_type = LinkLayerType::Ether;
        message.attributes =
            vec![LinkAttribute::Link(2), LinkAttribute::LinkInfo(vec![LinkInfo::Data(data)])];
        message.attributes.extend_from_slice(more);
        Interface::parse(message).unwrap()
    }

    #[test]
    fn a_vlan_says_whether_its_tag_can_be_put_on() {
        let customers = vlan(VlanProtocol::Ieee8021Q, &[]);
        let expected = Some(Vlan { beneath: 2, id: 20 });
        assert_eq!((customers.vlan, customers.unsupported_vlan), (expected, None));
        let providers = vlan(VlanProtocol::Ieee8021Ad, &[]);
        assert_eq!(
            (providers.vlan, providers.unsupported_vlan),
            (None, Some(UnsupportedVlan::Provider))
        );
        let elsewhere = vlan(VlanProtocol::Ieee8021Q, &[LinkAttribute::LinkNetNsId(0)]);
        assert_eq!(
            (elsewhere.vlan, elsewhere.unsupported_vlan),
            (None, Some(UnsupportedVlan::OtherNamespace))
        );
        let mut plain = LinkMessage::default();
        // The other end of a veth.
        plain.attributes = vec![LinkAttribute::Link(2), LinkAttribute::LinkNetNsId(0)];
        let plain = Interface::parse(plain).unwrap();
        assert_eq!((plain.vlan, plain.unsupported_vlan), (None, None));
    }

    #[test]
    fn an_interface_is_called_by_all_its_names() {
        let mut message = LinkMessage::default();
        let long = "enp129s0f0np0alternative";
        let names = vec![Prop::AltIfName(long.into()), Prop::AltIfName("wan".into())];
        message.attributes =
            vec![LinkAttribute::IfName("eth0".into()), LinkAttribute::PropList(names)];
        let interface = Interface::parse(message).unwrap();
        for name in ["eth0", long, "wan"] {
            assert!(interface.is_called(name), "{name}");
        }
        for name in ["", "eth", "eth00", "enp129s0f0np0"] {
            assert!(!interface.is_called(name), "{name}");
        }
    }

    #[test]
    fn only_a_bond_runs_its_program_for_its_ports() {
        let of = |kind| {
            let mut message = LinkMessage::default();
            let infos = vec![LinkInfo::PortKind(kind)];
            message.attributes = vec![LinkAttribute::Controller(5), LinkAttribute::LinkInfo(infos)];
            Interface::parse(message).unwrap().bond
        };
        assert_eq!(of(InfoPortKind::Bond), Some(5));
        assert_eq!(of(InfoPortKind::Bridge), None);
        assert_eq!(of(InfoPortKind::Other("team".into())), None);
    }
}
