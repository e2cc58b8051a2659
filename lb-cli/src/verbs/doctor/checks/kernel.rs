//! What the packet programs need of the kernel.

use super::{Facts, Finding};

/// The oldest kernel that the programs are tried on.
const OLDEST: (u32, u32) = (6, 1);

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let host = &facts.host;
    let mut findings = vec![version(&host.release)];
    findings.push(match host.btf {
        true => Finding::ok("btf", "/sys/kernel/btf/vmlinux", "the kernel tells its types"),
        false => Finding::problem("btf", "/sys/kernel/btf/vmlinux", "is not there")
            .why("the packet programs' maps carry types, which this kernel was built without")
            .mend(NEWER_KERNEL),
    });
    let path = facts.places.bpffs.display().to_string();
    findings.push(match host.bpffs {
        true => Finding::ok("bpffs", path, "is a BPF file system"),
        false => Finding::problem("bpffs", path.clone(), "is no BPF file system")
            .why("programs and maps are pinned there, to outlive the daemon")
            .mend(format!("mount -t bpf bpf {path}")),
    });
    findings.extend(match host.jit {
        Some(0) => Some(
            Finding::problem("jit", "net.core.bpf_jit_enable", "is 0")
                .why("each packet is then interpreted, instruction by instruction")
                .mend("sysctl -w net.core.bpf_jit_enable=1"),
        ),
        Some(value) => Some(Finding::ok("jit", "net.core.bpf_jit_enable", format!("is {value}"))),
        None => None,
    });
    findings
}

const NEWER_KERNEL: &str = "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot";

fn version(release: &str) -> Finding {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= OLDEST => {
            Finding::ok("kernel", release, "is new enough")
        }
        (Some(Ok(_)), Some(Ok(_))) => {
            Finding::problem("kernel", release, format!("is older than {}.{}", OLDEST.0, OLDEST.1))
                .why("the verifier of older ones refuses the packet programs")
                .mend(NEWER_KERNEL)
        }
        _ => Finding::warning("kernel", release, "is a release without a number")
            .why(format!("the programs need {}.{} or later", OLDEST.0, OLDEST.1)),
    }
}
