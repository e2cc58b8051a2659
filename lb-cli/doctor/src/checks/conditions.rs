//! The conditions that daemons report, by what they cost.

use lb_base::{
    conditions::{FLEET_CERTIFICATE, HTTP_CERTIFICATE},
    receiver_socket,
};
use lb_maps::{Component, Occupant};
use spillway_proto::v1::ConditionReason;

use crate::{
    facts::{Condition, DaemonState, Facts, INTERFACE, PinOwner, unattached},
    finding::Finding,
};

pub(super) fn of_balancer(facts: &Facts, daemon: &DaemonState) -> Vec<Finding> {
    let DaemonState::Answers { conditions, configuration, .. } = daemon else { return Vec::new() };
    let region = configuration.unknown_region.as_deref().map(region_subject);
    let owner = facts.component(Component::Balancer).and_then(|installed| installed.owner.as_ref());
    let reload = reload_command(owner);
    let is_reported = |it: &&Condition| {
        Some(&it.subject) == region.as_ref()
            || it.reason == ConditionReason::PacketPath
            || is_of_linked_interface(facts, Component::Balancer, &it.subject)
    };
    let others = conditions.iter().filter(|it| !is_reported(it));
    others.map(|condition| of_reason(facts, condition, &reload)).collect()
}

pub(super) fn of_receiver(
    facts: &Facts,
    owner: &PinOwner,
    conditions: &[receiver_socket::Condition],
) -> Vec<Finding> {
    let reload = reload_command(Some(owner));
    let of_subject =
        |receiver_socket::Condition { subject, cause }: &receiver_socket::Condition| {
            if subject == HTTP_CERTIFICATE.text() {
                return expires(subject, cause);
            }
            match subject.starts_with(INTERFACE) {
                true => not_attached(facts, Component::Receiver, subject, cause),
                false => refused(subject, cause, &reload),
            }
        };
    let is_reported = |it: &&receiver_socket::Condition| {
        is_of_linked_interface(facts, Component::Receiver, &it.subject)
    };
    conditions.iter().filter(|it| !is_reported(it)).map(of_subject).collect()
}

/// Why the daemon cannot attach its program to an interface, if it says so.
pub(super) fn why_not_attached<'a>(
    facts: &'a Facts,
    component: Component,
    interface: &str,
) -> Option<&'a str> {
    let unattached = unattached(facts.daemon.as_ref(), facts.receiver_state.as_ref(), component);
    unattached.into_iter().find(|(name, _)| *name == interface).map(|(_, cause)| cause)
}

/// Whether the daemon says that an interface lacks its program, which it attaches as soon as it can.
pub(super) fn has_unattached(facts: &Facts, component: Component) -> bool {
    !unattached(facts.daemon.as_ref(), facts.receiver_state.as_ref(), component).is_empty()
}

/// Whether the check `mode` looks at what a condition is about.
fn is_of_linked_interface(facts: &Facts, component: Component, subject: &str) -> bool {
    let Some(interface) = subject.strip_prefix(INTERFACE) else { return false };
    let links = facts.component(component).into_iter().flat_map(|installed| &installed.links);
    links.into_iter().any(|link| link.name == interface)
}

fn of_reason(facts: &Facts, condition: &Condition, reload: &str) -> Finding {
    use ConditionReason as Reason;
    let Condition { reason, subject, cause } = condition;
    match reason {
        Reason::StoredConfiguration => Finding::problem("daemon", subject, cause)
            .why("backends are not checked, and no change reaches the packet path")
            .mend("spillway export > stored.toml; $EDITOR stored.toml; spillway apply -f stored.toml"),
        Reason::Interface => not_attached(facts, Component::Balancer, subject, cause),
        Reason::SourceAddress => Finding::problem("daemon", subject, cause)
            .why("their clients are sent to other backends, or get no answer")
            .mend("ip address add ADDRESS/BITS dev INTERFACE"),
        Reason::NarrowPath => Finding::warning("daemon", subject, cause)
            .why("clients cannot make their packets small enough")
            .mend("spillway status --output json  # `mtu` of each backend: the smallest of configuration, route and interface"),
        Reason::CertificateExpires | Reason::AuthoritiesExpire => expires(subject, cause),
        Reason::File | Reason::Settings | Reason::TlsFiles | Reason::HttpFiles => {
            refused(subject, cause, reload)
        }
        Reason::FleetInsecure => Finding::warning("daemon", subject, cause)
            .why("only a network on which every host is trusted may have such a fleet")
            .mend("$PAGER /usr/share/doc/spillway/docs/fleet.md  # `With certificates`"),
        // The cause says what to do.
        _ => Finding::warning("daemon", subject, cause)
            .why("the daemon goes on without it; `spillway status` shows since when"),
    }
}

/// An interface of the settings that `mode` does not look at: it is without the program, or has another name now.
fn not_attached(facts: &Facts, component: Component, subject: &str, cause: &str) -> Finding {
    let links = facts.component(component).into_iter().flat_map(|installed| &installed.links);
    let mut attached = links.filter(|link| link.mode.is_some());
    if attached.any(|link| cause.contains(&format!("is called {} now", link.name))) {
        return Finding::warning("daemon", subject, cause)
            .why("a start does not find it by the name in the settings")
            .mend("ip link set INTERFACE name NAME  # or change `interface` in the settings");
    }
    let interface = subject.strip_prefix(INTERFACE).unwrap_or(subject);
    let occupant = facts.network.card(interface).and_then(|card| card.occupant.as_ref());
    let command = occupant.map_or_else(|| LOOK.into(), |it| removal_command(it, interface));
    Finding::problem("daemon", subject, cause)
        .why("packets bypass the packet program")
        .mend(command)
}

/// For an interface that a running daemon attaches its program to as soon as it can.
pub(super) const LOOK: &str =
    "ip -details link show  # what is there; the daemon attaches its program by itself";

/// Takes another's program off an interface.
pub(super) fn removal_command(occupant: &Occupant, interface: &str) -> String {
    let removal = occupant.removal(interface).replace('`', "");
    match removal.split_once(", ") {
        Some((command, note)) => format!("{command}  # {note}"),
        None => removal,
    }
}

/// Something that the daemon refused on a reload or at its start.
fn refused(subject: &str, cause: &str, reload: &str) -> Finding {
    let why = match subject {
        "settings" => "the daemon keeps what was in force before, but its next start would fail",
        _ => "the daemon keeps what was in force before",
    };
    let finding = Finding::warning("daemon", subject, cause).why(why);
    finding.mend(format!("{reload}  # after correcting it"))
}

/// A certificate that expires. Nothing was refused: the daemon goes on with it.
fn expires(subject: &str, cause: &str) -> Finding {
    let why = match subject {
        _ if subject == HTTP_CERTIFICATE.text() => "metrics and status page cannot be read then",
        _ if subject == FLEET_CERTIFICATE.text() => {
            "the fleet takes no changes here then, and capacities are shared without this balancer"
        }
        _ => "the API is then reached through the unix socket only",
    };
    Finding::warning("daemon", subject, cause).why(why).mend(
        "openssl x509 -enddate -subject -noout -in FILE  # after renewing it; the daemon reads it again by itself",
    )
}

/// The command that reloads the daemon that holds the pins.
fn reload_command(owner: Option<&PinOwner>) -> String {
    match owner {
        Some(PinOwner { unit: Some(unit), .. }) => format!("systemctl reload {unit}"),
        Some(owner) => format!("kill -HUP {}", owner.pid),
        None => "systemctl reload UNIT".into(),
    }
}

/// The subject that the daemon uses for a region.
pub(super) fn region_subject(region: &str) -> String {
    format!("region {region}")
}
