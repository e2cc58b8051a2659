//! The rights of this program, and of the daemons that run.

use super::{Facts, Finding, commands};
use crate::rights::{self, BPF, Capability, NET_ADMIN, PERFMON};

const NEEDED: [Capability; 3] = [NET_ADMIN, PERFMON, BPF];

const WHY: &str = "packet programs, their maps and the network's tables are open to nobody else";

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![match missing(facts.host.capabilities) {
        None => Finding::ok("capabilities", "spillway doctor", "has all it needs"),
        Some(missing) => Finding::problem("capabilities", "spillway doctor", missing)
            .why("without them neither pins nor offloads can be read, so nothing else is judged")
            .mend("sudo spillway doctor"),
    }];
    for installed in &facts.roles {
        let holder = installed.holder.as_ref();
        let Some((holder, capabilities)) = holder.and_then(|h| Some((h, h.capabilities?))) else {
            continue;
        };
        let subject = format!("spillwayd {} (process {})", installed.role, holder.pid);
        findings.push(match missing(capabilities) {
            None => Finding::ok("capabilities", subject, "has all it needs"),
            Some(missing) => Finding::problem("capabilities", subject, missing)
                .why(WHY)
                .mend(commands::start(facts, installed.role, None)),
        });
    }
    findings
}

/// Whether this program can read what the other checks judge.
pub(super) fn suffice(facts: &Facts) -> bool {
    missing(facts.host.capabilities).is_none()
}

fn missing(effective: u64) -> Option<String> {
    rights::missing(effective, &NEEDED).map(|names| format!("lacks {names}"))
}
