//! Names of all kinds.

use super::Row;

pub(super) const NAMES: &[Row] = &[
    (|m| m.regions[1].name.clear(), r#"regions[1] "": name: must be set"#, "regions[1].name"),
    (
        |m| m.regions[1].name = "US".into(),
        r#"regions[1] "US": name: may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit"#,
        "regions[1].name",
    ),
    (
        |m| m.regions[1].name = "x".repeat(1000),
        r#"regions[1] "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"…: name: has 1000 bytes; at most 63 are allowed"#,
        "regions[1].name",
    ),
    (
        |m| m.regions[1].name = "eu".into(),
        r#"regions[1] "eu": name: is already the name of regions[0]"#,
        "regions[1].name",
    ),
    (
        |m| m.health_checks[1].name = "http".into(),
        r#"health_checks[1] "http": name: is already the name of health_checks[0]"#,
        "health_checks[1].name",
    ),
    (
        |m| m.pools[1].name = "web".into(),
        r#"pools[1] "web": name: is already the name of pools[0]"#,
        "pools[1].name",
    ),
    (
        |m| m.services[1].name = "web".into(),
        r#"services[1] "web": name: is already the name of services[0]"#,
        "services[1].name",
    ),
];
