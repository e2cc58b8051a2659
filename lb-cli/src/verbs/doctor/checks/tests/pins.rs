use super::{RESTART, Row, scene::balancer};
use crate::verbs::doctor::finding::Level::{Problem, Warning};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| f.roles[0].broken = Some("/p: no such pin: …".into()),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v1",
        RESTART,
    ),
    (
        balancer,
        |f| f.roles[0].broken = Some("/p: has 3 entries, expected 4".into()),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v1",
        "spillway detach --role balancer  # once the daemon is stopped; then start it anew",
    ),
    (
        balancer,
        |f| f.other_pins = vec!["/sys/fs/bpf/spillway/balancer-v0".into()],
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v0",
        "rm -r /sys/fs/bpf/spillway/balancer-v0",
    ),
];
