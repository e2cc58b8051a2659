//! What is no object's.

use super::Row;

pub(super) const WHOLE: &[Row] = &[
    (|m| m.balancers = 1001, "balancers: 1001 is not within 1 to 1000", "balancers"),
    (
        |m| m.hash_key = "0123".into(),
        "hash_key: give 32 hexadecimal digits; these are 4 bytes",
        "hash_key",
    ),
    (
        |m| m.hash_key = "+123456789abcdef+123456789abcdef".into(),
        "hash_key: give 32 hexadecimal digits; these are 32 bytes",
        "hash_key",
    ),
];
