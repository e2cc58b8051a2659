//! What has to be known of the interfaces before a program goes on them, and what follows from them.

use std::net::IpAddr;

use super::Failure;
use crate::{
    causes,
    dataplane::{Hook, Options, XdpMode},
    net::{self, Interface},
    plan::Sources,
};

/// Refuses to run in the driver of what has none: a VLAN's interface.
///
/// # Errors
/// One of them is a VLAN of another interface, or netlink fails. What is not there is for others to refuse.
pub(super) async fn refuse_vlans(options: &Options) -> Result<(), Failure> {
    if options.hook != Hook::Xdp(XdpMode::Native) {
        return Ok(());
    }
    let all = all().await?;
    for name in &options.interfaces {
        let vlan = all.iter().find(|known| known.name == *name).and_then(|known| known.vlan);
        let beneath = vlan.and_then(|vlan| all.iter().find(|known| known.index == vlan.beneath));
        if let Some(Interface { name: beneath, .. }) = beneath {
            let sentence = format!(
                "{name}: a VLAN of {beneath} has no native XDP: give {beneath}, which sees its frames"
            );
            return Err(Failure::new(sentence)
                .hint(format!("--interface {beneath}; or --xdp-mode generic, slower")));
        }
    }
    Ok(())
}

/// The sources given, or else those of the interfaces, or else those of their VLANs.
pub(super) async fn sources(
    mut sources: Sources,
    interfaces: &[String],
) -> Result<Sources, Failure> {
    let all = all().await?;
    let is_named = |known: &&Interface| interfaces.contains(&known.name);
    let named: Vec<_> =
        interfaces.iter().filter_map(|name| all.iter().find(|i| i.name == *name)).collect();
    let is_above = |known: &&Interface| {
        known.vlan.is_some_and(|vlan| named.iter().any(|under| under.index == vlan.beneath))
    };
    for interface in &named {
        let found = of(interface).await?;
        sources.v4 = sources.v4.or(found.v4);
        sources.v6 = sources.v6.or(found.v6);
    }
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for interface in all.iter().filter(is_above).filter(|known| !is_named(known)) {
        let found = of(interface).await?;
        v4.extend(found.v4);
        v6.extend(found.v6);
    }
    sources.v4 = sources.v4.or_else(|| only(&v4));
    sources.v6 = sources.v6.or_else(|| only(&v6));
    let spell = |address: Option<IpAddr>| address.map_or("none".into(), |a| a.to_string());
    let (v4, v6) = (spell(sources.v4.map(IpAddr::V4)), spell(sources.v6.map(IpAddr::V6)));
    tracing::info!(v4, v6, "sources of tunnels");
    Ok(sources)
}

/// Of the addresses of several VLANs nobody knows which backends are told of.
fn only<T: Copy + std::fmt::Debug>(addresses: &[T]) -> Option<T> {
    match addresses {
        [] => None,
        [address] => Some(*address),
        several => {
            tracing::warn!(addresses = ?several, "no source of tunnels: VLANs have several, set `source`");
            None
        }
    }
}

async fn of(interface: &Interface) -> Result<Sources, Failure> {
    let found = net::source_addresses(interface.index).await;
    found.map_err(|error| Failure::new(causes::of(&error)))
}

async fn all() -> Result<Vec<Interface>, Failure> {
    net::all_interfaces().await.map_err(|error| Failure::new(causes::of(&error)))
}
