//! What this host has to do with VIPs. Its addresses, and whether it forwards packets, say what becomes of packets for a VIP that
//! no service takes, where the configuration does not.
//!
//! And the addresses of this balancer that services do not get unless that is forced: those that its settings name, and those by
//! which others reach the host.
//!
//! A VIP may be an address of the host too, so that neighbours find it by ARP. Addresses of `lo` and of dummy interfaces are
//! taken for VIPs, and so are single addresses (`/32`, `/128`) beside a subnet's on the same interface.

use std::net::IpAddr;

use crate::app::{Failure, arguments::BalancerArguments};
use lb_base::error_chain;
use lb_control::BalancerAddresses;
use lb_model::{
    own_addresses::{OwnAddress, OwnAddresses},
    unserved::LocalHost,
};
use lb_net::{
    HostChanges, NetError,
    survey::{self, Address, Device},
};
use lb_publish::publisher::FollowedHost;

/// Those that the settings name; `fleet`: where other balancers reach this one.
pub(super) fn of_settings(
    arguments: &BalancerArguments,
    fleet: Option<IpAddr>,
) -> Result<OwnAddresses, Failure> {
    let sources = arguments.sources()?;
    let listen = arguments.remote()?.map(|(address, _)| address.ip());
    let named = [
        ("`source`", sources.own(true)),
        ("`source`", sources.own(false)),
        ("`http`", arguments.path.http.map(|address| address.ip())),
        ("`listen`", listen),
        ("`address` of [fleet]", fleet),
    ];
    let named = named.into_iter().filter_map(|(setting, address)| Some((address?, setting)));
    let named = named.filter(|(address, _)| !address.is_unspecified());
    Ok(named.map(|(address, setting)| (address, OwnAddress::Setting(setting))).collect())
}

/// Follows the host, and adds its addresses to those that the settings `named`, for as long as the daemon runs. Returns after the first reading.
pub(super) async fn follow(
    named: OwnAddresses,
    into: (BalancerAddresses, FollowedHost),
) -> Result<(), Failure> {
    let failed = |error: NetError| Failure::from_chain(&error);
    // Subscribed before the first reading, so that no change is missed.
    let mut changes = HostChanges::follow().map_err(failed)?;
    read(&mut changes, &named, &into).await.map_err(failed)?;
    tokio::spawn(async move {
        loop {
            if let Err(error) = read(&mut changes, &named, &into).await {
                let error = error_chain::message(&error);
                tracing::warn!(error, "addresses of this balancer are not followed: {error}");
                // What follows from an earlier reading may be wrong by now.
                into.1.set(LocalHost::default());
                return;
            }
        }
    });
    Ok(())
}

async fn read(
    changes: &mut HostChanges,
    named: &OwnAddresses,
    (into, host): &(BalancerAddresses, FollowedHost),
) -> Result<(), NetError> {
    host.set(changes.next().await?);
    let (devices, addresses) = survey::own_addresses().await?;
    let mut own = of_host(&devices, &addresses);
    own.extend(named.clone());
    into.set(own);
    Ok(())
}

fn of_host(devices: &[Device], addresses: &[Address]) -> OwnAddresses {
    let has_subnet = |it: &Address| {
        let is_same = |other: &&Address| {
            (other.interface, other.address.is_ipv4()) == (it.interface, it.address.is_ipv4())
        };
        addresses.iter().filter(is_same).any(|other| other.reachable && !is_single(other))
    };
    let own = addresses.iter().filter_map(|it| {
        let device = devices.iter().find(|device| device.interface.index == it.interface)?;
        let is_vip = holds_vips(device) || (is_single(it) && has_subnet(it));
        let interface = || OwnAddress::Interface(device.interface.name.clone());
        (it.reachable && !is_vip).then(|| (it.address, interface()))
    });
    own.collect()
}

/// Whether an interface has addresses that are reached by others.
fn holds_vips(device: &Device) -> bool {
    device.interface.name == "lo" || device.kind.as_deref() == Some("dummy")
}

fn is_single(address: &Address) -> bool {
    address.prefix == if address.address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use lb_net::Interface;

    use super::*;

    fn device(index: u32, name: &str, kind: Option<&str>) -> Device {
        let interface = Interface {
            index,
            name: name.into(),
            alternative_names: Vec::new(),
            mac: None,
            mtu: 1500,
            up: true,
            carrier: true,
            noarp: false,
            vlan: None,
            unsupported_vlan: None,
            bond: None,
        };
        Device { interface, kind: kind.map(Into::into), lower: None }
    }

    /// `192.0.2.1/24`
    fn address(interface: u32, text: &str) -> Address {
        let (address, prefix) = text.split_once('/').unwrap();
        let address: IpAddr = address.parse().unwrap();
        // As netlink says it of loopback and link-local addresses.
        let reachable = !address.is_loopback() && !text.starts_with("fe80:");
        Address {
            interface,
            address,
            prefix: prefix.parse().unwrap(),
            deprecated: false,
            reachable,
        }
    }

    /// The addresses that are the balancer's own.
    fn own(devices: &[Device], addresses: &[Address]) -> Vec<String> {
        let own = of_host(devices, addresses);
        own.into_iter().map(|(address, is)| format!("{address}: {is}")).collect()
    }

    #[test]
    fn addresses_by_which_the_host_is_reached_are_its_own() {
        let devices = [
            device(1, "lo", None),
            device(2, "eth0", None),
            device(3, "eth1", Some("vlan")),
            device(4, "vips", Some("dummy")),
        ];
        let addresses = [
            address(1, "127.0.0.1/8"),
            address(1, "203.0.113.1/32"),
            address(1, "203.0.113.2/24"),
            address(2, "10.0.0.2/24"),
            address(2, "203.0.113.3/32"),
            address(2, "fe80::2/64"),
            address(2, "2001:db8::2/64"),
            address(2, "2001:db8:f::1/128"),
            address(3, "10.1.0.2/16"),
            address(3, "10.1.0.3/16"),
            address(4, "203.0.113.4/32"),
        ];
        let expected = [
            "10.0.0.2: an address of eth0 of this balancer",
            "10.1.0.2: an address of eth1 of this balancer",
            "10.1.0.3: an address of eth1 of this balancer",
            "2001:db8::2: an address of eth0 of this balancer",
        ];
        assert_eq!(own(&devices, &addresses), expected);
    }

    /// As clouds give them by DHCP.
    #[test]
    fn an_interface_without_a_subnet_is_reached_by_its_single_addresses() {
        let devices = [device(2, "eth0", None), device(3, "eth1", None)];
        let addresses = [
            address(2, "10.128.0.2/32"),
            address(2, "fe80::2/64"),
            address(2, "2001:db8::2/128"),
            address(3, "10.0.0.2/24"),
        ];
        let expected = [
            "10.0.0.2: an address of eth1 of this balancer",
            "10.128.0.2: an address of eth0 of this balancer",
            "2001:db8::2: an address of eth0 of this balancer",
        ];
        assert_eq!(own(&devices, &addresses), expected);
    }
}
