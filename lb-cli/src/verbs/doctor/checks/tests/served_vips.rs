use super::{
    Row,
    scene::{ETH0, address, backend},
};
use crate::verbs::doctor::finding::Level::Problem;

pub(super) const ROWS: &[Row] = &[
    (
        backend,
        |f| {
            f.network.survey.addresses.pop();
        },
        "served_vips",
        Problem,
        "203.0.113.1",
        "ip address add 203.0.113.1/32 dev lo",
    ),
    (
        backend,
        |f| f.network.survey.addresses.push(address(ETH0, "203.0.113.1", 24)),
        "served_vips",
        Problem,
        "203.0.113.1",
        "ip address delete 203.0.113.1/24 dev eth0; ip address add 203.0.113.1/32 dev lo",
    ),
];
