use super::{Row, scene::backend};
use crate::verbs::doctor::finding::Level::Warning;

pub(super) const ROWS: &[Row] = &[(
    backend,
    |f| f.receiver.as_mut().unwrap().sources.push("0.0.0.0/0".into()),
    "allow_lists",
    Warning,
    "0.0.0.0/0",
    "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver \
         --allow-source BALANCER_ADDRESS",
)];
