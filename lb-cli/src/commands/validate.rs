//! `spillway validate` checks a configuration file without a daemon.

use std::path::PathBuf;

use lb_config::{Invalid, SlotsByPool, validate};
use lb_model::Configuration;
use serde::Serialize;

use super::apply::{ConfigurationFile, with_location};
use crate::{
    arguments::Options,
    failure::{Exit, Failure, Mistake},
    output::{Report, count, print},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Configuration file (TOML); `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
}

/// How many objects a valid file has.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Validated {
    file: String,
    regions: usize,
    health_checks: usize,
    pools: usize,
    backends: usize,
    services: usize,
}

/// # Errors
/// The file cannot be read, or its configuration is invalid.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let file = ConfigurationFile::read(&arguments.file).map_err(|failure| match failure.exit {
        Exit::Invalid => failure.hint(HINT),
        _ => failure,
    })?;
    let configuration = check(&file)?;
    let pools = configuration.pools.values();
    let validated = Validated {
        file: file.name,
        regions: configuration.regions.len(),
        health_checks: configuration.health_checks.len(),
        pools: configuration.pools.len(),
        backends: pools.map(|pool| pool.backends.len()).sum(),
        services: configuration.services.len(),
    };
    print(&validated, options.output)
}

const HINT: &str = "/usr/share/doc/spillway/docs/configuration.md lists the fields";

/// All that a daemon would refuse whatever is in force there.
fn check(file: &ConfigurationFile) -> Result<Configuration, Failure> {
    let refused =
        |invalid: Invalid| with_location(failure(&invalid), &file.name, &file.text).hint(HINT);
    let requested = validate(&file.configuration).map_err(refused)?;
    let no_slots = SlotsByPool::new();
    if let Err(open) = requested.require_slots(&no_slots) {
        let hint = "`spillway diff`, or `apply`, shows the numbers that a daemon would take";
        return Err(refused(open.invalid).hint(hint));
    }
    let configuration = requested.resolve(&no_slots).map_err(refused)?;
    if configuration.balancers.get() > 1 && configuration.hash_key.is_none() {
        let balancers = configuration.balancers;
        let message = format!(
            "{}: hash_key: {balancers} balancers need one key to choose the same backends, and none is set",
            file.name
        );
        let hint = "set hash_key to 32 hexadecimal digits, such as `openssl rand -hex 16` prints";
        return Err(Failure::new(Exit::Invalid, message).hint(hint));
    }
    Ok(configuration)
}

/// All mistakes.
fn failure(invalid: &Invalid) -> Failure {
    let mistakes = invalid.mistakes().iter();
    let mut mistakes = mistakes.map(|it| Mistake { field: it.path(), message: it.to_string() });
    let first = mistakes.next();
    let message = first.map(|first| first.message).unwrap_or_default();
    let mut others: Vec<_> = mistakes.collect();
    let left_out = invalid.count() - invalid.mistakes().len();
    if left_out > 0 {
        let message = count(left_out as u64, "more mistake");
        others.push(Mistake { field: String::new(), message });
    }
    Failure { others, ..Failure::new(Exit::Invalid, message) }.about(Some(&invalid.path()))
}

impl Report for Validated {
    fn table(&self) -> String {
        let Self { file, regions, health_checks, pools, backends, services } = self;
        let objects = [
            (regions, "region"),
            (health_checks, "health check"),
            (pools, "pool"),
            (backends, "backend"),
            (services, "service"),
        ];
        let objects = objects.map(|(number, noun)| count(*number as u64, noun));
        format!("{file} is valid: {}\n", objects.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = r#"
[[region]]
name = "eu"

[[pool]]
name = "web"
slots = 251
backend = [{ address = "10.0.0.1", region = "eu" }, { address = "10.0.0.2", region = "eu" }]

[[service]]
name = "web"
address = "192.0.2.1"
port = 80
protocol = "tcp"
pool = "web"
"#;

    fn checked(text: &str) -> Result<Configuration, String> {
        let file = ConfigurationFile::new("web.toml".into(), text.into()).unwrap();
        check(&file).map_err(|failure| failure.to_string())
    }

    fn replaced(pairs: &[(&str, &str)]) -> String {
        pairs.iter().fold(VALID.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        })
    }

    #[test]
    fn a_valid_file_is_counted() {
        assert_eq!(checked(VALID).unwrap().pools.len(), 1);
        let validated = Validated {
            file: "web.toml".into(),
            regions: 1,
            health_checks: 0,
            pools: 1,
            backends: 2,
            services: 1,
        };
        assert_eq!(
            validated.table(),
            "web.toml is valid: 1 region, 0 health checks, 1 pool, 2 backends, 1 service\n"
        );
    }

    #[test]
    fn each_mistake_has_its_line() {
        let wrong = [
            ("251", "250"),
            ("10.0.0.2\", region = \"eu", "10.0.0.2\", region = \"us"),
            ("port = 80", "ports = [\"90-80\"]"),
        ];
        assert_eq!(
            checked(&replaced(&wrong)).unwrap_err(),
            "error: web.toml: line 7, column 1: pools[0] \"web\": slots: 250 is not a prime: 2 divides it\n\
             error: web.toml: line 8, column 77: pools[0] \"web\": backends[1] \"10.0.0.2\": region: \"us\" is not among the regions\n\
             error: web.toml: line 13, column 10: services[0] \"web\": ports[0] \"90-80\": last: 80 is below the first, 90\n\
             hint: /usr/share/doc/spillway/docs/configuration.md lists the fields"
        );
    }

    /// What a single balancer does without.
    #[test]
    fn several_balancers_need_slots_and_a_key() {
        let several = format!("balancers = 2\n{}", VALID.replace("slots = 251\n", ""));
        let error = checked(&several).unwrap_err();
        assert!(error.contains("slots: must be a number, the same on all 2 balancers"), "{error}");
        let error = checked(&format!("balancers = 2\n{VALID}")).unwrap_err();
        assert!(
            error.starts_with("error: web.toml: hash_key: 2 balancers need one key"),
            "{error}"
        );
        let keyed = format!("balancers = 2\nhash_key = \"{}\"\n{VALID}", "0f".repeat(16));
        checked(&keyed).unwrap();
    }

    /// Mistakes that only a file can have, with those of its values.
    #[test]
    fn mistakes_of_form_are_reported_with_the_others() {
        let wrong = [("251", "250"), ("port = 80", "prot = 80"), ("\"tcp\"", "\"http\"")];
        let file = ConfigurationFile::new("web.toml".into(), replaced(&wrong));
        let failure = file.err().unwrap().to_string();
        let starts = [
            "error: web.toml: line 7, column 1: pools[0] \"web\": slots: 250 is not a prime",
            "error: web.toml: line 13, column 1: services[0] \"web\": unknown field `prot`: did you mean `port`?",
            "error: web.toml: line 14, column 12: services[0] \"web\": protocol: unknown variant `http`",
            "hint: nothing was sent; ",
        ];
        let lines: Vec<_> = failure.lines().collect();
        let alike = lines.iter().zip(starts).all(|(line, start)| line.starts_with(start));
        assert!(alike && lines.len() == starts.len(), "{failure}");
    }

    #[test]
    fn more_mistakes_than_anyone_reads_are_counted() {
        let wrong: String = (0..150).map(|n| format!("[[region]]\nname = \"-{n}\"\n")).collect();
        let error = checked(&wrong).unwrap_err();
        assert_eq!(
            error.lines().filter(|line| line.starts_with("error: web.toml: line ")).count(),
            100
        );
        assert!(error.contains("\nerror: 50 more mistakes\nhint: "), "{error}");
    }
}
