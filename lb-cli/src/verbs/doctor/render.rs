use std::fmt::Write as _;

use serde::Serialize;

use super::finding::{Finding, Level};
use crate::output::{Report, WIDTH, count};

/// The answer.
#[derive(Serialize)]
pub(super) struct Diagnosis {
    /// Roles that have programs here.
    pub(super) roles: Vec<&'static str>,
    pub(super) problems: usize,
    pub(super) warnings: usize,
    pub(super) findings: Vec<Finding>,
}

impl Diagnosis {
    pub(super) fn new(roles: Vec<&'static str>, findings: Vec<Finding>) -> Self {
        let number = |level| findings.iter().filter(|finding| finding.level == level).count();
        let (problems, warnings) = (number(Level::Problem), number(Level::Warning));
        Self { roles, problems, warnings, findings }
    }
}

impl Report for Diagnosis {
    fn table(&self) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let head = format!("{}: {}", finding.check, finding.subject);
            paragraph(&mut text, finding.level.word(), &format!("{head}: {}", finding.found));
            if !finding.why.is_empty() {
                paragraph(&mut text, "  why", &finding.why);
            }
            for command in &finding.mend {
                // Never broken: it is there to be pasted.
                let _ = writeln!(text, "{:<9}{command}", "  mend");
            }
            if let Some(command) = &finding.or {
                let _ = writeln!(text, "{:<9}{command}", "  or");
            }
        }
        let (problems, warnings) = (self.problems, self.warnings);
        let well = self.findings.len() - problems - warnings;
        let _ = writeln!(
            text,
            "\n{}, {}, {well} in order",
            count(problems as u64, "problem"),
            count(warnings as u64, "warning")
        );
        text
    }
}

/// Words behind a mark of nine columns, broken at 80.
fn paragraph(text: &mut String, mark: &str, words: &str) {
    const INDENT: usize = 9;
    let mut line = format!("{mark:<INDENT$}");
    let mut used = INDENT;
    for word in words.split(' ') {
        let length = word.chars().count();
        if used > INDENT && used + 1 + length > WIDTH.into() {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(INDENT);
            used = INDENT;
        } else if used > INDENT {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_says_what_why_and_how_to_mend_it() {
        let long =
            "a client's packet of 1500 bytes becomes one of 1520 in the tunnel, and is dropped";
        let findings = vec![
            Finding::ok("kernel", "6.1.0", "is new enough"),
            Finding::problem("mtu", "10.1.0.11 on eth0", "takes 1500 bytes, 1520 are needed")
                .why(long)
                .mend("ip link set dev eth0 mtu 1540")
                .or("spillway backend update 10.1.0.11 --mtu 1500"),
            Finding::warning("arp", "eth0", "arp_announce is 0"),
        ];
        let diagnosis = Diagnosis::new(vec!["balancer"], findings);
        assert_eq!(
            diagnosis.table(),
            "\
ok       kernel: 6.1.0: is new enough
problem  mtu: 10.1.0.11 on eth0: takes 1500 bytes, 1520 are needed
  why    a client's packet of 1500 bytes becomes one of 1520 in the tunnel, and
         is dropped
  mend   ip link set dev eth0 mtu 1540
  or     spillway backend update 10.1.0.11 --mtu 1500
warning  arp: eth0: arp_announce is 0

1 problem, 1 warning, 1 in order
"
        );
        let json = serde_json::to_value(&diagnosis).unwrap();
        assert_eq!(json["findings"][1]["level"], "problem");
        assert_eq!(json["findings"][1]["mend"][0], "ip link set dev eth0 mtu 1540");
        assert_eq!((&json["problems"], &json["warnings"]), (&1.into(), &1.into()));
    }
}
