//! The rights of this program, and of the daemons that run.

use super::{Facts, Finding, commands};

/// include/uapi/linux/capability.h
const NEEDED: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
const CAP_SYS_ADMIN: u32 = 21;

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

/// CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, capabilities(7).
fn missing(capabilities: u64) -> Option<String> {
    let has = |bit: u32| capabilities >> bit & 1 != 0;
    let may = |bit: u32| has(bit) || bit >= 38 && has(CAP_SYS_ADMIN);
    let lacks = NEEDED.iter().filter(|(bit, _)| !may(*bit));
    let names: Vec<_> = lacks.map(|(_, name)| *name).collect();
    (!names.is_empty()).then(|| format!("lacks {}", names.join(", ")))
}
