use super::{Row, scene::balancer};
use crate::verbs::doctor::finding::Level::{Problem, Warning};

pub(super) const ROWS: &[Row] = &[
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
