//! What the programs need from the host: the kernel, capabilities, forwarding.

use lb_base::kernel::{self, BTF, OLDEST};

use crate::{
    facts::Facts,
    finding::Finding,
    process::{self, BPF, Capability, NET_ADMIN, PERFMON},
    start_command::start_command,
};

pub(super) fn kernel(facts: &Facts) -> Vec<Finding> {
    let host = &facts.host;
    let mut findings = vec![kernel_version(&host.release)];
    findings.push(match host.btf {
        true => Finding::ok("btf", BTF, "the kernel has BTF"),
        false => Finding::problem("btf", BTF, "does not exist")
            .why("the maps of the packet programs need BTF, and this kernel was built without it")
            .mend(NEWER_KERNEL),
    });
    let path = facts.environment.bpffs.display().to_string();
    findings.push(match host.bpffs {
        true => Finding::ok("bpffs", path, "is a BPF file system"),
        false => Finding::problem("bpffs", path.clone(), "is not a BPF file system")
            .why("programs and maps are pinned there so that they outlive the daemon")
            .mend(format!("mount -t bpf bpf {path}")),
    });
    findings.extend(match host.jit {
        Some(0) => Some(
            Finding::problem("jit", "net.core.bpf_jit_enable", "is 0")
                .why("the packet programs are interpreted, which is slow")
                .mend("sysctl -w net.core.bpf_jit_enable=1"),
        ),
        Some(value) => Some(Finding::ok("jit", "net.core.bpf_jit_enable", format!("is {value}"))),
        None => None,
    });
    findings
}

const NEWER_KERNEL: &str = "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot";

fn kernel_version(release: &str) -> Finding {
    match kernel::version(release) {
        Some(version) if version >= OLDEST => Finding::ok("kernel", release, "is new enough"),
        Some(_) => {
            Finding::problem("kernel", release, format!("is older than {}.{}", OLDEST.0, OLDEST.1))
                .why("the verifier of older kernels refuses the packet programs")
                .mend(NEWER_KERNEL)
        }
        None => Finding::warning("kernel", release, "is a release without a version number")
            .why(format!("the programs need {}.{} or later", OLDEST.0, OLDEST.1)),
    }
}

const NEEDED: [Capability; 3] = [NET_ADMIN, PERFMON, BPF];

const WHY: &str = "the daemon needs them for packet programs, maps and network tables";

pub(super) fn capabilities(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![match missing(facts.host.capabilities) {
        None => Finding::ok("capabilities", "spillway doctor", "has all that it needs"),
        Some(missing) => Finding::problem("capabilities", "spillway doctor", missing)
            .why("without them pins and offloads cannot be read, so nothing else is checked")
            .mend("sudo spillway doctor"),
    }];
    for installed in &facts.components {
        let owner = installed.owner.as_ref();
        let Some((owner, capabilities)) = owner.and_then(|h| Some((h, h.capabilities?))) else {
            continue;
        };
        let subject = format!("spillwayd {} (process {})", installed.component, owner.pid);
        findings.push(match missing(capabilities) {
            None => Finding::ok("capabilities", subject, "has all that it needs"),
            Some(missing) => Finding::problem("capabilities", subject, missing)
                .why(WHY)
                .mend(start_command(facts, installed.component, None)),
        });
    }
    findings
}

/// Whether this program can read the facts of the other checks.
pub(super) fn has_capabilities(facts: &Facts) -> bool {
    missing(facts.host.capabilities).is_none()
}

fn missing(effective: u64) -> Option<String> {
    process::missing_capabilities(effective, &NEEDED).map(|names| format!("lacks {names}"))
}

pub(super) fn forwarding(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    let families = [(true, "net.ipv4.ip_forward"), (false, "net.ipv6.conf.all.forwarding")];
    let judge = |(v4, name): (bool, &'static str)| {
        let mut vips = balancer.passing_vips.iter().filter(|vip| vip.is_ipv4() == v4);
        // A VIP on this host is never forwarded.
        let looping = vips.find(|vip| facts.network.own(**vip).is_empty());
        match (facts.sysctls.get(name)?, looping) {
            (0, _) => Some(Finding::ok("forwarding", name, "is 0; not needed")),
            (value, None) => {
                Some(Finding::ok("forwarding", name, format!("is {value}; not needed")))
            }
            (value, Some(vip)) => Some(
                Finding::warning("forwarding", name, format!("is {value}; not needed"))
                    .why(format!(
                        "packets to {vip} that no service takes go back to the router, and loop \
                         until their hop limit ends; if the host is a router, set unserved = \
                         \"drop\" of the VIP"
                    ))
                    .mend(format!("sysctl -w {name}=0")),
            ),
        }
    };
    families.into_iter().filter_map(judge).collect()
}
