//! The command line.

use std::path::{Path, PathBuf};

use clap::{
    Args, Parser, Subcommand,
    error::{ContextKind, ContextValue},
};

use lb_daemon::{api::DEFAULT_SOCKET, directory::DEFAULT_STATE_DIRECTORY};
use spillway_proto::v1;

use crate::{
    output::Form,
    verbs::objects::{self, BackendVerb, PoolVerb, RegionVerb},
};

/// Control and look into the Spillway load balancer.
#[derive(Debug, Parser)]
#[command(name = "spillway", version, max_term_width = 80, after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) options: Options,
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

impl Arguments {
    /// Reads the command line; where it is wrong or asks for help, the program ends here.
    pub(crate) fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| opposite(error).exit())
    }
}

/// Of a word that takes something back, clap suggests what it takes back, which is spelt alike.
fn opposite(mut error: clap::Error) -> clap::Error {
    let words = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    };
    let wrong = words(ContextKind::InvalidSubcommand);
    let suggested = words(ContextKind::SuggestedSubcommand);
    if wrong == ["undrain"] && suggested.iter().any(|word| word == "drain") {
        let enable = ContextValue::Strings(vec!["enable".into()]);
        error.insert(ContextKind::SuggestedSubcommand, enable);
    }
    error
}

const EXIT_STATUS: &str = "\
Exit status:
  0  done
  1  failed for a reason none of the others names
  2  the command line is wrong
  3  the daemon does not answer, or no program is pinned
  4  not permitted
  5  a file, object or pin that was named does not exist
  6  the configuration is wrong, or at a reload the settings; what was in force
     stays
  7  the state does not allow it now: another generation or etag, an object that
     is there already or in use, another capture, or the daemon runs
  8  `diff`: they differ
  9  `doctor` found problems";

/// Options of every command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Options {
    /// How to print the answer: `table`, `wide` (more columns), `json` or `yaml` (when
    /// watching, one value a line or document)
    #[arg(long, short, global = true, value_enum, default_value_t, value_name = "FORM")]
    #[arg(env = "SPILLWAY_OUTPUT", hide_possible_values = true)]
    pub(crate) output: Form,
    /// Unix socket of the daemon [default: /run/spillway/spillwayd.sock; of a receiver, and for
    /// `reload`: the one in the daemon's settings, or of a receiver
    /// /run/spillway-receiver/receiver.sock]
    #[arg(long, global = true, value_name = "PATH", env = "SPILLWAY_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// Daemon to ask over TLS instead, https://HOST:PORT
    #[arg(long, global = true, value_name = "URL", env = "SPILLWAY_SERVER")]
    pub(crate) server: Option<String>,
    /// Certificate to show there, PEM; its names decide what you may do
    #[arg(long, global = true, value_name = "FILE", env = "SPILLWAY_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, global = true, value_name = "FILE", env = "SPILLWAY_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Authorities that the daemon's certificate is from, PEM
    #[arg(long, global = true, value_name = "FILE", env = "SPILLWAY_TLS_CA")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Where the BPF file system is mounted
    #[arg(long, global = true, value_name = "DIR", env = "SPILLWAY_BPFFS")]
    #[arg(default_value = "/sys/fs/bpf")]
    pub(crate) bpffs: PathBuf,
    /// Where the daemon keeps its store, /var/lib/spillway unless given
    #[arg(long, global = true, value_name = "DIR", env = "SPILLWAY_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

impl Options {
    /// The balancer's socket.
    pub(crate) fn socket(&self) -> &Path {
        self.socket.as_deref().unwrap_or(Path::new(DEFAULT_SOCKET))
    }

    /// The daemon's state directory.
    pub(crate) fn state_dir(&self) -> &Path {
        self.state_dir.as_deref().unwrap_or(Path::new(DEFAULT_STATE_DIRECTORY))
    }

    /// Where the balancer is asked, for messages.
    pub(crate) fn place(&self) -> String {
        self.server.clone().unwrap_or_else(|| self.socket().display().to_string())
    }
}

/// What to do with objects of a kind.
#[derive(Args, Debug)]
pub(crate) struct Objects<V: Subcommand> {
    /// What to do with them.
    #[command(subcommand)]
    pub(crate) verb: V,
}

/// What to do; each verb is documented by its own module.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Put a configuration in force, whole, as one generation
    Apply(crate::verbs::apply::Arguments),
    /// Print what a configuration file would change; exit status 8 where anything
    Diff(crate::verbs::diff::Arguments),
    /// Print the configuration in force
    Export,
    /// Edit the configuration in force with $VISUAL or $EDITOR, then apply it
    Edit(crate::verbs::edit::Arguments),
    /// Regions, one by one
    Region(Objects<RegionVerb>),
    /// Pools, one by one
    Pool(Objects<PoolVerb>),
    /// Backends, one by one
    Backend(Objects<BackendVerb>),
    /// Health checks, one by one
    Health(Objects<objects::Verb<v1::HealthCheck>>),
    /// Services, one by one
    Service(Objects<objects::Verb<v1::Service>>),
    /// Print what the daemon is, its services and its backends
    Status,
    /// Have the daemon read its settings, and its configuration file, again; fails if they are refused
    Reload(crate::verbs::reload::Arguments),
    /// Print each change of generation, health or next hop as it comes
    Watch,
    /// Print demand against capacity, region by region (no daemon needed, but for capacities)
    Regions(crate::verbs::regions::Arguments),
    /// Show regions, services, backends and drops, live
    Top(crate::verbs::top::Arguments),
    /// Print the packet counters (no daemon needed)
    Stats(crate::verbs::stats::Arguments),
    /// Print who owns the slots of a pool's tables (no daemon needed)
    Table(crate::verbs::table::Arguments),
    /// Explain which backend a packet goes to and why (no daemon needed)
    Explain(crate::verbs::explain::Arguments),
    /// Write packets as they come and as they leave to a pcap-ng file, with what was decided
    Capture(crate::verbs::capture::Arguments),
    /// Print packets that are dropped as they come, with the reason
    Drops(crate::verbs::capture::drops::Arguments),
    /// Look at this host, and print what is wrong with the command that mends it
    Doctor(crate::verbs::doctor::Arguments),
    /// Take programs and pins away; packets are then no longer balanced
    Detach(crate::verbs::detach::Arguments),
    /// Print every verdict a packet can get, with its meaning
    Verdicts,
    /// Print a shell's completions of this command line
    Completions(crate::verbs::manual::Completions),
    /// Write the manual, a page for each command
    #[command(hide = true)]
    Man(crate::verbs::manual::Man),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{Arguments, EXIT_STATUS};
    use crate::exit::Exit;

    /// Flags that stand twice, groups that are not there: the parser itself finds them.
    #[test]
    fn every_command_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_exit_status_is_documented() {
        for exit in [
            Exit::Success,
            Exit::Failure,
            Exit::Usage,
            Exit::Unavailable,
            Exit::Permission,
            Exit::NotFound,
            Exit::Invalid,
            Exit::Conflict,
            Exit::Different,
            Exit::Unwell,
        ] {
            let line = format!("\n  {}  ", exit as u8);
            assert!(EXIT_STATUS.contains(&line), "{exit:?}");
        }
    }
}
