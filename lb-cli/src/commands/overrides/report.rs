//! Overrides as they are printed.

use serde::Serialize;
use spillway_proto::v1;

use crate::{
    commands::changes::Warning,
    output::{Grid, Report, whole_seconds},
};

/// An override.
#[derive(Serialize)]
pub(crate) struct OverrideRow {
    pub(crate) name: String,
    target: Target,
    /// `drain`, `disable`, `weight` or `scale`; `null`: this version does not know it.
    kind: Option<&'static str>,
    percent: Option<u32>,
    pub(crate) who: String,
    /// Empty: no reason was given.
    reason: String,
    set_at: Option<String>,
    /// When it ends by itself; `null`: it does not.
    pub(crate) until: Option<String>,
    /// Since when there is no such object; `null`: there is.
    absent_since: Option<String>,
    /// Whether it is of this balancer alone, and not of its fleet.
    pub(crate) local: bool,
}

/// What it is about; what is not given is `null`.
#[derive(Serialize)]
struct Target {
    backend: Option<String>,
    pool: Option<String>,
    region: Option<String>,
}

impl OverrideRow {
    pub(crate) fn new(it: v1::Override) -> Self {
        let kind = match it.kind() {
            v1::OverrideKind::Unspecified => None,
            v1::OverrideKind::Drain => Some("drain"),
            v1::OverrideKind::Disable => Some("disable"),
            v1::OverrideKind::Weight => Some("weight"),
            v1::OverrideKind::Scale => Some("scale"),
        };
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let v1::OverrideTarget { backend, pool, region } = it.target.unwrap_or_default();
        let time = |at: Option<prost_types::Timestamp>| at.map(|at| at.to_string());
        Self {
            name: it.name,
            target: Target { backend: given(backend), pool: given(pool), region: given(region) },
            kind,
            percent: it.percent,
            who: it.who,
            reason: it.reason,
            set_at: time(it.set_at),
            until: time(it.until),
            absent_since: time(it.absent_since),
            local: it.local,
        }
    }

    /// `backends/10.0.0.1/weight (30 %)`
    pub(crate) fn named(&self) -> String {
        let percent = self.percent.map_or_else(String::new, |it| format!(" ({it} %)"));
        format!("{}{percent}", self.name)
    }

    /// What is special about it, then why it was set.
    pub(crate) fn remarks(&self) -> String {
        let gone = self
            .absent_since
            .as_deref()
            .map(|since| format!("(there is no such object since {})", whole_seconds(since)));
        let reason = Some(self.reason.clone()).filter(|reason| !reason.is_empty());
        let remarks: Vec<_> = reason.into_iter().chain(gone).collect();
        if remarks.is_empty() { "-".into() } else { remarks.join(" ") }
    }
}

/// A line for `status`, `top` and other heads: `2 in force; see `spillway override list``; `None`: there is none.
pub(crate) fn head_line(overrides: &[OverrideRow]) -> Option<String> {
    (!overrides.is_empty()).then(|| {
        let number = overrides.len();
        let local = match overrides.iter().filter(|it| it.local).count() {
            0 => String::new(),
            local => format!(", {local} of them at this balancer alone"),
        };
        format!("{number} in force{local}: `spillway override list` shows who set them, and why")
    })
}

#[derive(Serialize)]
pub(super) struct List {
    revision: u64,
    /// Whether what changed last is in memory only.
    unstored: bool,
    overrides: Vec<OverrideRow>,
    #[serde(skip)]
    warnings: Vec<String>,
}

impl List {
    pub(super) fn new(answer: v1::ListOverridesResponse) -> Self {
        let v1::ListOverridesResponse { overrides, revision, unstored, .. } = answer;
        let warning = "what changed last is in memory only, and a restart loses it: see the condition \
                       `overrides` of `spillway status`";
        let warnings = if unstored { vec![warning.to_owned()] } else { Vec::new() };
        let overrides = overrides.into_iter().map(OverrideRow::new).collect();
        Self { revision, unstored, overrides, warnings }
    }
}

impl Report for List {
    fn table(&self) -> String {
        if self.overrides.is_empty() {
            return "no override is in force\n".into();
        }
        let mut grid = Grid::new(["OVERRIDE", "UNTIL", "WHO", "WHY"]);
        let time = |at: &Option<String>| at.as_deref().map_or_else(|| "-".into(), whole_seconds);
        for it in &self.overrides {
            grid.row([it.named(), time(&it.until), it.who.clone(), it.remarks()]);
        }
        grid.lines()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Overrides that were set.
#[derive(Serialize)]
pub(super) struct Set {
    revision: u64,
    dry_run: bool,
    overrides: Vec<OverrideRow>,
    /// Why they are in memory only; `null`: they are stored, or it was a dry run.
    unstored: Option<String>,
    warnings: Vec<Warning>,
}

/// Overrides that were removed.
#[derive(Serialize)]
pub(super) struct Removed {
    revision: u64,
    dry_run: bool,
    removed: Vec<OverrideRow>,
    /// Why that is in memory only; `null`: it is stored, or it was a dry run.
    unstored: Option<String>,
    warnings: Vec<Warning>,
}

/// The warnings of an answer, after the one about overrides that are in memory only.
fn warnings(unstored: Option<&str>, warnings: &[Warning]) -> Vec<String> {
    let in_memory_only = unstored.map(|cause| {
        format!(
            "in force, but in memory only: {cause}; stored as soon as the disk takes it, and a restart before that loses it"
        )
    });
    in_memory_only.into_iter().chain(warnings.iter().map(|warning| warning.text.clone())).collect()
}

impl Set {
    pub(super) fn new(answer: v1::SetOverridesResponse, dry_run: bool) -> Self {
        Self {
            revision: answer.revision,
            dry_run,
            overrides: answer.overrides.into_iter().map(OverrideRow::new).collect(),
            warnings: answer.warnings.into_iter().map(Into::into).collect(),
            unstored: Some(answer.unstored).filter(|cause| !cause.is_empty()),
        }
    }
}

impl Report for Set {
    fn table(&self) -> String {
        let is = if self.dry_run { "would be" } else { "is" };
        let line = |it: &OverrideRow| {
            let until = it.until.as_deref().map(|at| format!(" until {}", whole_seconds(at)));
            format!("override {} {is} in force{}\n", it.named(), until.unwrap_or_default())
        };
        self.overrides.iter().map(line).collect()
    }

    fn warnings(&self) -> Vec<String> {
        warnings(self.unstored.as_deref(), &self.warnings)
    }
}

impl Removed {
    pub(super) fn new(answer: v1::RemoveOverridesResponse, dry_run: bool) -> Self {
        Self {
            revision: answer.revision,
            dry_run,
            removed: answer.removed.into_iter().map(OverrideRow::new).collect(),
            warnings: answer.warnings.into_iter().map(Into::into).collect(),
            unstored: Some(answer.unstored).filter(|cause| !cause.is_empty()),
        }
    }
}

impl Report for Removed {
    fn table(&self) -> String {
        let is = if self.dry_run { "would be" } else { "is" };
        let line = |it: &OverrideRow| format!("override {} {is} removed\n", it.named());
        self.removed.iter().map(line).collect()
    }

    fn warnings(&self) -> Vec<String> {
        warnings(self.unstored.as_deref(), &self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds, nanos: 0 })
    }

    fn drain() -> v1::Override {
        v1::Override {
            name: "backends/10.0.0.1/drain".into(),
            target: Some(v1::OverrideTarget { backend: "10.0.0.1".into(), ..Default::default() }),
            kind: v1::OverrideKind::Drain.into(),
            who: "uid 0".into(),
            reason: "new kernel".into(),
            set_at: at(1_000_000),
            until: at(1_007_200),
            ..v1::Override::default()
        }
    }

    #[test]
    fn the_head_says_how_many_are_local() {
        let local =
            v1::Override { name: "local/backends/10.0.0.1/drain".into(), local: true, ..drain() };
        let rows: Vec<_> = [drain(), local].into_iter().map(OverrideRow::new).collect();
        let rest = "`spillway override list` shows who set them, and why";
        assert_eq!(
            head_line(&rows),
            Some(format!("2 in force, 1 of them at this balancer alone: {rest}"))
        );
        assert_eq!(head_line(&rows[..1]), Some(format!("1 in force: {rest}")));
        let json = serde_json::to_value(&rows[1]).unwrap();
        assert_eq!(
            (&json["local"], &json["name"]),
            (&true.into(), &"local/backends/10.0.0.1/drain".into())
        );
    }

    fn weight() -> v1::Override {
        v1::Override {
            name: "pools/web/backends/10.0.0.2/weight".into(),
            target: Some(v1::OverrideTarget {
                backend: "10.0.0.2".into(),
                pool: "web".into(),
                ..Default::default()
            }),
            kind: v1::OverrideKind::Weight.into(),
            percent: Some(30),
            who: "certificate ops.example".into(),
            set_at: at(1_000_000),
            absent_since: at(1_000_060),
            ..v1::Override::default()
        }
    }

    #[test]
    fn a_list_says_who_and_why() {
        let answer = v1::ListOverridesResponse {
            overrides: vec![drain(), weight()],
            revision: 4,
            unstored: true,
            next_page_token: String::new(),
        };
        let list = List::new(answer);
        assert_eq!(
            list.table(),
            "\
OVERRIDE                                   UNTIL
    WHO                      WHY
backends/10.0.0.1/drain                    1970-01-12T15:46:40Z
    uid 0                    new kernel
pools/web/backends/10.0.0.2/weight (30 %)  -
    certificate ops.example  (there is no such object since
                             1970-01-12T13:47:40Z)
"
        );
        assert!(list.warnings()[0].contains("in memory only"));
        let json = serde_json::to_value(&list).unwrap();
        let expected = serde_json::json!({
            "name": "pools/web/backends/10.0.0.2/weight",
            "target": {"backend": "10.0.0.2", "pool": "web", "region": null},
            "kind": "weight", "percent": 30, "who": "certificate ops.example", "reason": "",
            "set_at": "1970-01-12T13:46:40Z", "until": null, "absent_since": "1970-01-12T13:47:40Z",
            "local": false,
        });
        assert_eq!(json["overrides"][1], expected);
        let none = List::new(v1::ListOverridesResponse::default());
        assert_eq!(
            (none.table().as_str(), none.warnings().len()),
            ("no override is in force\n", 0)
        );
    }

    #[test]
    fn a_change_is_a_line_for_each() {
        let answer = || v1::SetOverridesResponse {
            overrides: vec![drain(), weight()],
            revision: 4,
            unstored: "no space".into(),
            warnings: vec![v1::Warning {
                reason: v1::WarningReason::PoolUnserved.into(),
                object: None,
                text: "pool web has no backend left for new connections".into(),
            }],
        };
        let set = Set::new(answer(), false);
        assert_eq!(
            set.table(),
            "\
override backends/10.0.0.1/drain is in force until 1970-01-12T15:46:40Z
override pools/web/backends/10.0.0.2/weight (30 %) is in force
"
        );
        assert!(set.warnings()[0].starts_with("in force, but in memory only: no space; "));
        assert_eq!(set.warnings()[1], "pool web has no backend left for new connections");
        let dry = Set::new(answer(), true);
        assert!(
            dry.table().starts_with("override backends/10.0.0.1/drain would be in force until")
        );
        let removed = v1::RemoveOverridesResponse { removed: vec![weight()], ..Default::default() };
        let removed = Removed::new(removed, false);
        let line = "override pools/web/backends/10.0.0.2/weight (30 %) is removed\n";
        assert_eq!((removed.table().as_str(), removed.warnings().len()), (line, 0));
    }
}
