use super::{
    RESTART, Row,
    fixture::{balancer, owner, set},
};
use crate::finding::Level::{Ok, Problem, Warning};

pub(super) const KERNEL: &[Row] = &[
    (
        balancer,
        |f| f.host.release = "5.10.0".into(),
        "kernel",
        Problem,
        "5.10.0",
        "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot",
    ),
    (
        balancer,
        |f| f.host.release = "6.0.19".into(),
        "kernel",
        Problem,
        "6.0.19",
        "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot",
    ),
    (balancer, |f| f.host.release = "custom".into(), "kernel", Warning, "custom", ""),
    (
        balancer,
        |f| f.host.btf = false,
        "btf",
        Problem,
        "/sys/kernel/btf/vmlinux",
        "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot",
    ),
    (
        balancer,
        |f| f.host.bpffs = false,
        "bpffs",
        Problem,
        "/sys/fs/bpf",
        "mount -t bpf bpf /sys/fs/bpf",
    ),
    (
        balancer,
        |f| f.host.jit = Some(0),
        "jit",
        Problem,
        "net.core.bpf_jit_enable",
        "sysctl -w net.core.bpf_jit_enable=1",
    ),
];

pub(super) const CAPABILITIES: &[Row] = &[
    (
        balancer,
        |f| f.host.capabilities = 1 << 12 | 1 << 38,
        "capabilities",
        Problem,
        "spillway doctor",
        "sudo spillway doctor",
    ),
    (
        balancer,
        |f| owner(f).capabilities = Some(1 << 39 | 1 << 38),
        "capabilities",
        Problem,
        "spillwayd balancer (process 7)",
        RESTART,
    ),
];

pub(super) const FORWARDING: &[Row] = &[
    (
        balancer,
        |f| set(f, "net.ipv4.ip_forward", 1),
        "forwarding",
        Warning,
        "net.ipv4.ip_forward",
        "sysctl -w net.ipv4.ip_forward=0",
    ),
    (balancer, |f| set(f, "net.ipv6.conf.all.forwarding", 1), "nothing", Ok, "", ""),
    (
        balancer,
        |f| {
            set(f, "net.ipv4.ip_forward", 1);
            f.balancer.as_mut().unwrap().passing_vips.clear();
        },
        "nothing",
        Ok,
        "",
        "",
    ),
];
