//! The pins: there, whole, and of this version.

use lb_maps::{Component, Pins};

use super::conditions;
use crate::{
    facts::{Facts, InstalledComponent, MapsProblem, MapsProblemKind},
    finding::Finding,
    start_command::{enable_command, start_command},
};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for installed in &facts.components {
        let subject = facts.pin_directory(installed.component).display().to_string();
        let start = || start_command(facts, installed.component, None);
        findings.push(match &installed.maps_problem {
            None if is_left_behind(facts, installed) => {
                without_interface(facts, installed, subject)
            }
            None => Finding::ok("pins", subject, "are complete and of this version"),
            Some(MapsProblem { kind, why }) => match kind {
                MapsProblemKind::Denied => Finding::problem("pins", subject, "cannot be read")
                    .why(why)
                    .mend("sudo spillway doctor"),
                MapsProblemKind::Incomplete => {
                    Finding::problem("pins", subject, "are incomplete").why(why).mend(start())
                }
                MapsProblemKind::Changing => {
                    Finding::warning("pins", subject, "changed during each reading")
                        .why(format!("{why}; their content was not checked"))
                        .mend("spillway doctor  # again")
                }
                MapsProblemKind::Unreadable => {
                    Finding::problem("pins", subject, "cannot be read").why(why).mend(format!(
                        "{}  # after stopping the daemon; then start it again",
                        detach_command(facts, installed.component)
                    ))
                }
            },
        });
    }
    for other in &facts.other_pins {
        let path = other.display().to_string();
        findings.push(
            Finding::warning("pins", path.clone(), "are of another version")
                .why("an interface can run one version only: detach the old program first")
                .mend(match Pins::parse_directory(other) {
                    Some((component, layout)) => {
                        format!("{} --layout {layout}", detach_command(facts, component))
                    }
                    None => format!("rm -r {path}"),
                }),
        );
    }
    // A failed unit explains it.
    if facts.components.is_empty() && facts.units.iter().all(|unit| unit.failed.is_none()) {
        let component = facts.environment.bpffs.join("spillway").display().to_string();
        findings.push(
            Finding::problem("pins", component, "no program is pinned here")
                .why("packets are neither balanced nor decapsulated")
                .mend(enable_command(facts, Component::Balancer))
                .or(enable_command(facts, Component::Receiver)),
        );
    }
    findings
}

/// Whether maps have no link, and no daemon says that it will attach its program.
fn is_left_behind(facts: &Facts, installed: &InstalledComponent) -> bool {
    installed.links.is_empty() && !conditions::has_unattached(facts, installed.component)
}

/// Maps without a link are left by a daemon that lost its interfaces, or never had any.
fn without_interface(facts: &Facts, installed: &InstalledComponent, subject: String) -> Finding {
    let finding =
        Finding::problem("pins", subject, "have no interface").why("the program sees no packet");
    let other = facts.components.iter().any(|other| !other.links.is_empty());
    let (start, detach) = (
        start_command(facts, installed.component, None),
        detach_command(facts, installed.component),
    );
    // If the other component runs on this host, these pins are probably leftovers.
    match other && installed.owner.is_none() {
        true => finding.mend(detach).or(start),
        false => finding.mend(start).or(detach),
    }
}

fn detach_command(facts: &Facts, component: Component) -> String {
    format!("spillway{} detach --component {component}", bpffs_option(facts))
}

/// The `--bpffs` option, unless the path is the default.
fn bpffs_option(facts: &Facts) -> String {
    let bpffs = facts.environment.bpffs.display().to_string();
    if bpffs == lb_maps::DEFAULT_BPFFS {
        return String::new();
    }
    format!(" --bpffs {bpffs}")
}
