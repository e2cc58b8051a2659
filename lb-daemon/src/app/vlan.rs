//! VLANs of interfaces, as settings say them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use lb_common::wire::vlan::MAX_ID;

use super::Failure;
use lb_base::error_chain;
use lb_net::{self};

/// An interface, and the VLAN whose tag goes on what leaves by it: `eth1=100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vlan {
    interface: String,
    id: u16,
}

impl Vlan {
    pub(super) fn interface(&self) -> &str {
        &self.interface
    }
}

impl fmt::Display for Vlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.interface, self.id)
    }
}

impl FromStr for Vlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "must be NAME=ID, an interface and the id of a VLAN";
        let (interface, id) = text.rsplit_once('=').ok_or(form)?;
        if interface.is_empty() {
            return Err(form.into());
        }
        let id = id.parse().ok().filter(|id| (1..=MAX_ID).contains(id));
        let id = id.ok_or_else(|| format!("the id of a VLAN is a number from 1 to {MAX_ID}"))?;
        Ok(Self { interface: interface.into(), id })
    }
}

/// Ids of VLANs by index of their interfaces.
///
/// # Errors
/// There is no such interface; or one has two VLANs.
pub(super) async fn by_interface(vlans: &[Vlan]) -> Result<BTreeMap<u32, u16>, Failure> {
    let mut ids = BTreeMap::new();
    for Vlan { interface, id } in vlans {
        let found = lb_net::interface_by_name(interface).await.map_err(|error| {
            Failure::new(format!("--vlan {interface}={id}: {}", error_chain::message(&error)))
                .hint("name an interface of this host, by which packets leave for backends")
        })?;
        if let Some(other) = ids.insert(found.index, *id).filter(|other| other != id) {
            let sentence = format!("--vlan: {interface} has two VLANs, {other} and {id}");
            return Err(Failure::new(sentence).hint("give each interface one"));
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_is_an_interface_and_an_id() {
        let vlan = |text: &str| text.parse::<Vlan>();
        assert_eq!(vlan("eth1=100"), Ok(Vlan { interface: "eth1".into(), id: 100 }));
        assert_eq!(vlan("eth1=4094").unwrap().id, 4094);
        for text in ["eth1", "=100"] {
            assert_eq!(
                vlan(text),
                Err("must be NAME=ID, an interface and the id of a VLAN".into())
            );
        }
        for text in ["eth1=0", "eth1=4095", "eth1=-1", "eth1=", "eth1=70000", "eth1=1.2"] {
            assert_eq!(vlan(text), Err("the id of a VLAN is a number from 1 to 4094".into()));
        }
    }
}
