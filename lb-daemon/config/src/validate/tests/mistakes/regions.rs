//! Regions.

use spillway_proto::v1;

use super::Row;

pub(super) const REGIONS: &[Row] = &[
    (
        |m| m.regions[0].overflow_to = vec!["asia".into()],
        r#"regions[0] "eu": overflow_to: "asia" is not among the regions"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[0].overflow_to = vec!["eu".into()],
        r#"regions[0] "eu": overflow_to: names the region itself"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[0].overflow_to = vec!["us".into(), "us".into()],
        r#"regions[0] "eu": overflow_to: "us" is named twice"#,
        "regions[0].overflow_to",
    ),
    (
        |m| {
            for n in 0..8 {
                let name = format!("r{n}");
                m.regions[0].overflow_to.push(name.clone());
                m.regions.push(v1::Region { name, overflow_to: vec![] });
            }
        },
        r#"regions[0] "eu": overflow_to: names 9 regions; at most 7 are allowed"#,
        "regions[0].overflow_to",
    ),
    (
        |m| m.regions[1].overflow_to = vec!["eu".into()],
        r#"regions[0] "eu": overflow_to: leads in a circle: eu -> us -> eu"#,
        "regions[0].overflow_to",
    ),
];
