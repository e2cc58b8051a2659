//! Where the programs run: in the driver, in the stack, or not at all.

use lb_daemon::dataplane::{AttachedMode, Linked, Role};

use super::{Facts, Finding, commands};
use crate::verbs::doctor::facts::Installed;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let all = facts.roles.iter();
    all.flat_map(|installed| installed.links.iter().map(|link| mode(facts, installed, link)))
        .collect()
}

fn mode(facts: &Facts, installed: &Installed, link: &Linked) -> Finding {
    let card = link.index.and_then(|index| facts.network.cards.get(&index));
    let driver = match card.and_then(|card| card.driver.as_ref()) {
        Some(driver) => format!("driver {driver}"),
        None => "its driver".into(),
    };
    let native = card.and_then(|card| card.xdp).map(|xdp| xdp.native);
    let (role, name) = (installed.role, link.name.clone());
    let start = |change| commands::start(facts, role, change);
    match (link.index, link.mode) {
        (None, _) => Finding::problem("mode", name, "there is no such interface any more")
            .why(format!("the {role}'s program was on it"))
            .mend("ip -brief link  # then start the daemon with the interfaces that there are"),
        // At tc's hook there is room for others.
        (Some(_), None) if !link.at_tc && card.is_some_and(|card| card.occupant.is_some()) => {
            let occupant = card.and_then(|card| card.occupant.as_ref());
            let (by, removal) = occupant
                .map(|by| (by.to_string(), by.removal(&name).replace('`', "")))
                .unwrap_or_default();
            let (command, note) = removal.split_once(", ").unwrap_or((&removal, ""));
            let note = if note.is_empty() { String::new() } else { format!("  # {note}") };
            Finding::problem("mode", name, format!("the {role} is not attached, XDP program {by} of somebody else is"))
                .why("one interface takes one program, and packets pass ours by")
                .mend(format!("{command}{note}"))
                .mend(start(None))
        }
        (Some(_), None) => Finding::problem("mode", name, format!("the {role} is not attached"))
            .why("packets pass it by; somebody took the program off")
            .mend(start(None)),
        (Some(index), Some(AttachedMode::Native)) if let Some((mtu, most)) = outgrown(facts, index) => {
            Finding::problem("mode", name.clone(), format!("native, with an MTU of {mtu}; {driver} has room for {most}"))
                .why("the MTU was raised under the program, which takes a packet in one piece: larger ones are lost before it sees them")
                .mend(format!("ip link set dev {name} mtu {most}"))
                .or(start(Some(("xdp-mode", "generic"))))
        }
        (Some(_), Some(AttachedMode::Native)) => {
            let veth = card.and_then(|card| card.driver.as_deref()) == Some("veth");
            // Whether it has one is not to be seen from this end.
            let note = match veth && role == Role::Balancer {
                true => "; the other end of the pair needs a packet program too, or nothing that is sent back arrives",
                false => "",
            };
            Finding::ok("mode", name, format!("native, in {driver}{note}"))
        }
        (Some(_), Some(AttachedMode::Generic)) => match native {
            Some(false) => Finding::warning("mode", name, format!("generic; {driver} cannot do better"))
                .why("each packet is made an skb first, at several times the cost; another card would do"),
            able => {
                let can = if able.is_some() { "can" } else { "may be able to" };
                Finding::warning("mode", name, format!("generic, though {driver} {can} do native"))
                    .why("each packet is made an skb first, at several times the cost")
                    .mend(start(Some(("xdp-mode", "native"))))
            }
        },
        (Some(_), Some(AttachedMode::Tc)) => {
            let note = match native {
                Some(true) => format!("; {driver} can do native XDP, which costs less"),
                _ => String::new(),
            };
            Finding::ok("mode", name, format!("tc, in the stack{note}"))
        }
        (Some(_), Some(AttachedMode::Other)) => {
            Finding::warning("mode", name, "on the card, or several programs at once")
                .why("that is not how spillwayd attaches")
                .mend(start(None))
        }
    }
}

/// What a page holds beside a packet on its way through a program in virtio_net: headroom, what the kernel notes of
/// further buffers, and the Ethernet header, bytes.
const BESIDE: u32 = 256 + 320 + 14;

/// The MTU of an interface that is too large for a program in its driver, and the largest that is not. Most drivers
/// refuse that; virtio_net looks at the MTU when a program comes, and not at the program when the MTU grows.
fn outgrown(facts: &Facts, index: u32) -> Option<(u32, u32)> {
    let driver = facts.network.cards.get(&index)?.driver.as_deref();
    let most = facts.host.page.checked_sub(BESIDE).filter(|_| driver == Some("virtio_net"))?;
    let mtu = facts.network.device(index)?.interface.mtu;
    (mtu > most).then_some((mtu, most))
}
