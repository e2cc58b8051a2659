//! The pins: there, whole, and of this version.

use lb_daemon::dataplane::{Pins, Role};

use super::{Facts, Finding, commands};
use crate::verbs::doctor::facts::{Broken, Installed, Kind};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for installed in &facts.roles {
        let subject = facts.pins(installed.role).display().to_string();
        let start = || commands::start(facts, installed.role, None);
        findings.push(match &installed.broken {
            None if installed.links.is_empty() => without_interface(facts, installed, subject),
            None => Finding::ok("pins", subject, "are there and of this version"),
            Some(Broken { kind, why }) => match kind {
                Kind::Denied => Finding::problem("pins", subject, "cannot be read")
                    .why(why)
                    .mend("sudo spillway doctor"),
                Kind::Incomplete => {
                    Finding::problem("pins", subject, "are not complete").why(why).mend(start())
                }
                Kind::Changing => {
                    Finding::warning("pins", subject, "change each time they are read")
                        .why(format!("{why}; what they hold is not judged"))
                        .mend("spillway doctor  # once more")
                }
                Kind::Unreadable => {
                    Finding::problem("pins", subject, "cannot be read").why(why).mend(format!(
                        "{}  # once the daemon is stopped; then start it anew",
                        detach(facts, installed.role)
                    ))
                }
            },
        });
    }
    for other in &facts.other_pins {
        let path = other.display().to_string();
        findings.push(
            Finding::warning("pins", path.clone(), "are of another version")
                .why("an interface has one role and one version: its program keeps ours away")
                .mend(match Pins::parse_directory(other) {
                    Some((role, layout)) => format!("{} --layout {layout}", detach(facts, role)),
                    None => format!("rm -r {path}"),
                }),
        );
    }
    // A unit that was to pin them says why it has not.
    if facts.roles.is_empty() && facts.units.iter().all(|unit| unit.failed.is_none()) {
        let role = facts.places.bpffs.join("spillway").display().to_string();
        findings.push(
            Finding::problem("pins", role, "no program is pinned here")
                .why("packets are neither balanced nor taken out of tunnels")
                .mend(commands::begin(facts, Role::Balancer))
                .or(commands::begin(facts, Role::Receiver)),
        );
    }
    findings
}

/// Maps and no link: what is left of a daemon that had its interfaces taken, or never got any.
fn without_interface(facts: &Facts, installed: &Installed, subject: String) -> Finding {
    let finding =
        Finding::problem("pins", subject, "have no interface").why("the program sees no packet");
    let other = facts.roles.iter().any(|other| !other.links.is_empty());
    let (start, detach) =
        (commands::start(facts, installed.role, None), detach(facts, installed.role));
    // An interface has one role, and this host has the other one.
    match other && installed.holder.is_none() {
        true => finding.mend(detach).or(start),
        false => finding.mend(start).or(detach),
    }
}

fn detach(facts: &Facts, role: Role) -> String {
    format!("spillway{} detach --role {role}", at(facts))
}

/// The option that says where the pins are, where they are not where they mostly are.
fn at(facts: &Facts) -> String {
    let bpffs = facts.places.bpffs.display().to_string();
    if bpffs == lb_daemon::dataplane::DEFAULT_BPFFS {
        return String::new();
    }
    format!(" --bpffs {bpffs}")
}
