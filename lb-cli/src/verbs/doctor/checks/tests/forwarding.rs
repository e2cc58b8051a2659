use super::{
    Row,
    scene::{balancer, set},
};
use crate::verbs::doctor::finding::Level::{Ok, Warning};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| set(f, "net.ipv4.ip_forward", 1),
        "forwarding",
        Warning,
        "net.ipv4.ip_forward",
        "sysctl -w net.ipv4.ip_forward=0",
    ),
    (balancer, |f| set(f, "net.ipv6.conf.all.forwarding", 1), "nothing", Ok, "", ""),
];
