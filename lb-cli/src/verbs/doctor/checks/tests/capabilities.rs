use super::{
    RESTART, Row,
    scene::{balancer, holder},
};
use crate::verbs::doctor::finding::Level::Problem;

pub(super) const ROWS: &[Row] = &[
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
        |f| holder(f).capabilities = Some(1 << 39 | 1 << 38),
        "capabilities",
        Problem,
        "spillwayd balancer (process 7)",
        RESTART,
    ),
];
