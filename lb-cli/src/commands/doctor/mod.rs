//! `spillway doctor`: checks this host, a balancer or a backend, and prints each problem with the commands that fix
//! it. It works without the daemon.
//!
//! What it reads of this host, and how it judges that, is in lb-doctor. The daemons are asked here ([`answers`]).

mod answers;

use std::fmt::Write as _;

use lb_base::error_chain;
use lb_doctor::{Environment, Facts, Finding, Level, run_all, spillwayd};
use serde::Serialize;

use crate::{
    arguments::Options,
    client::block_on,
    failure::{Exit, Failure},
    origin,
    output::{Report, WIDTH, count, print},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Largest IP packet that clients send, bytes; it has to fit the tunnels
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    #[arg(value_parser = clap::value_parser!(u32).range(1280..=9000))]
    client_mtu: u32,
    /// Send no probes; by default the balancer's daemon probes each backend for its VIPs through the tunnels
    #[arg(long)]
    no_probes: bool,
}

/// # Errors
/// [`Exit::Problems`] after problems were printed; netlink fails, or a server is given.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    origin::refuse_server(options, "doctor")?;
    let facts = gather(options, arguments.client_mtu, !arguments.no_probes)?;
    let diagnosis = Diagnosis::new(
        facts.components.iter().map(|installed| installed.component.name()).collect(),
        run_all(&facts),
    );
    print(&diagnosis, options.output)?;
    match diagnosis.problems {
        0 => Ok(()),
        problems => Err(Failure::new(
            Exit::Problems,
            format!("this host: {}", count(problems as u64, "problem")),
        )
        .hint("run the `mend` commands above, then run `spillway doctor` again")),
    }
}

fn gather(options: &Options, client_mtu: u32, is_probing: bool) -> Result<Facts, Failure> {
    let environment = Environment {
        bpffs: options.bpffs.clone(),
        state_directory: options.state_dir().to_owned(),
        socket: options.socket().to_owned(),
        spillwayd: spillwayd(),
        client_mtu,
    };
    let components = environment.components();
    block_on(async {
        let answers = answers::ask(options, &components, is_probing.then_some(client_mtu)).await;
        Facts::gather(environment, components, answers, is_probing)
            .await
            .map_err(|error| Failure::new(Exit::Failure, error_chain::message(&error)))
    })
}

#[derive(Serialize)]
struct Diagnosis {
    /// Components with programs on this host.
    components: Vec<&'static str>,
    problems: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

impl Diagnosis {
    fn new(components: Vec<&'static str>, findings: Vec<Finding>) -> Self {
        let number = |level| findings.iter().filter(|finding| finding.level == level).count();
        let (problems, warnings) = (number(Level::Problem), number(Level::Warning));
        Self { components, problems, warnings, findings }
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
                // Not wrapped, so that it can be pasted.
                let _ = writeln!(text, "{:<9}{command}", "  mend");
            }
            if let Some(command) = &finding.or {
                let _ = writeln!(text, "{:<9}{command}", "  or");
            }
        }
        let (problems, warnings) = (self.problems, self.warnings);
        let in_order = self.findings.len() - problems - warnings;
        let _ = writeln!(
            text,
            "\n{}, {}, {in_order} in order",
            count(problems as u64, "problem"),
            count(warnings as u64, "warning")
        );
        text
    }
}

/// Appends text after a label of nine columns, wrapped at 80.
fn paragraph(text: &mut String, label: &str, words: &str) {
    const INDENT: usize = 9;
    let mut line = format!("{label:<INDENT$}");
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
    fn each_finding_has_its_state_reason_and_commands() {
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
