//! What the packet programs need of the kernel.

use lb_daemon::kernel::{self, BTF, OLDEST};

use super::{Facts, Finding};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let host = &facts.host;
    let mut findings = vec![version(&host.release)];
    findings.push(match host.btf {
        true => Finding::ok("btf", BTF, "the kernel tells its types"),
        false => Finding::problem("btf", BTF, "is not there")
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
    match kernel::version(release) {
        Some(version) if version >= OLDEST => Finding::ok("kernel", release, "is new enough"),
        Some(_) => {
            Finding::problem("kernel", release, format!("is older than {}.{}", OLDEST.0, OLDEST.1))
                .why("the verifier of older ones refuses the packet programs")
                .mend(NEWER_KERNEL)
        }
        None => Finding::warning("kernel", release, "is a release without a number")
            .why(format!("the programs need {}.{} or later", OLDEST.0, OLDEST.1)),
    }
}
