//! The pins: there, whole, and of this version.

use lb_daemon::dataplane::Role;

use super::{Facts, Finding, commands};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for installed in &facts.roles {
        let subject = facts.pins(installed.role).display().to_string();
        let start = || commands::start(facts, installed.role, None);
        findings.push(match &installed.broken {
            None if installed.links.is_empty() => {
                Finding::problem("pins", subject, "have no interface")
                    .why("the program sees no packet")
                    .mend(start())
            }
            None => Finding::ok("pins", subject, "are there and of this version"),
            Some(why) if why.contains("permission denied") => {
                Finding::problem("pins", subject, "cannot be read")
                    .why(why.clone())
                    .mend("sudo spillway doctor")
            }
            Some(why) if why.contains("no such pin") => {
                Finding::problem("pins", subject, "are not complete").why(why.clone()).mend(start())
            }
            Some(why) => {
                let detach = format!("spillway{} detach --role {}", at(facts), installed.role);
                Finding::problem("pins", subject, "cannot be read")
                    .why(why.clone())
                    .mend(format!("{detach}  # once the daemon is stopped; then start it anew"))
            }
        });
    }
    for other in &facts.other_pins {
        let path = other.display().to_string();
        findings.push(
            Finding::warning("pins", path.clone(), "are of another version")
                .why("an interface has one role and one version: its program keeps ours away")
                .mend(format!("rm -r {path}")),
        );
    }
    if facts.roles.is_empty() {
        let role = facts.places.bpffs.join("spillway").display().to_string();
        findings.push(
            Finding::problem("pins", role, "no program is pinned here")
                .why("packets are neither balanced nor taken out of tunnels")
                .mend(commands::start(facts, Role::Balancer, None))
                .mend(commands::start(facts, Role::Receiver, None)),
        );
    }
    findings
}

/// The option that says where the pins are, where they are not where they mostly are.
fn at(facts: &Facts) -> String {
    let bpffs = facts.places.bpffs.display().to_string();
    if bpffs == lb_daemon::dataplane::DEFAULT_BPFFS {
        return String::new();
    }
    format!(" --bpffs {bpffs}")
}
