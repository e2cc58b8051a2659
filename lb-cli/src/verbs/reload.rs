//! `spillway reload`: has a daemon read its settings again, and fails where they are refused.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use lb_daemon::{control::Question, dataplane::Pins, holder};
use serde::Serialize;
use spillway_proto::v1;
use tokio::time::timeout;
use tonic::Code;

use crate::{
    arguments::Options,
    command_line,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    origin,
    output::{Report, print},
    pinned,
    receiver::Receiver,
    role::Role,
};

/// Options of `reload`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Whose settings; a receiver is asked on its own host, by root
    #[arg(long, value_enum, default_value_t)]
    role: Role,
    /// Seconds to wait for the outcome
    #[arg(long, value_name = "SECONDS", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Reloaded {
    /// Generation in force; `None`: the settings name no configuration.
    generation: Option<u64>,
    /// Settings that wait for the next start.
    waiting_settings: Vec<String>,
    #[serde(skip)]
    warnings: Vec<String>,
}

/// Asks, waits for the outcome and prints it.
///
/// # Errors
/// Something was refused, or the daemon does not answer.
pub(crate) fn run(mut options: Options, arguments: &Arguments) -> Result<(), Failure> {
    if options.server.is_none() {
        // `systemctl reload` has no option that names it.
        options.socket = options.socket.take().or_else(|| match arguments.role {
            Role::Balancer => own_socket(&options.bpffs),
            // Of a receiver it is read with its process.
            Role::Receiver => None,
        });
    }
    let options = &options;
    let patience = Duration::from_secs(arguments.timeout);
    let reloaded = converse(async {
        match arguments.role {
            Role::Balancer => balancer(options, patience).await,
            Role::Receiver => receiver(options, patience).await,
        }
    })?;
    print(&reloaded, options.output)
}

/// The socket that the settings of the balancer with these pins name; `None`: the default one.
fn own_socket(bpffs: &Path) -> Option<PathBuf> {
    let process = holder::holder(Pins::new(bpffs, lb_daemon::dataplane::Role::Balancer).root())?;
    command_line::setting(&command_line::of_process(process), "socket").map(PathBuf::from)
}

async fn balancer(options: &Options, patience: Duration) -> Result<Reloaded, Failure> {
    let asked = timeout(patience, async { Daemon::open(options).await?.reload().await }).await;
    let Ok(answer) = asked else {
        let place = options.place();
        let message =
            format!("spillwayd at {place}: does not answer within {} s", patience.as_secs());
        return Err(Failure::new(Exit::Unavailable, message)
            .hint("what becomes of the reload is not known; the daemon's log says more"));
    };
    let v1::ReloadResponse { generation, waiting_settings } = answer
        .map_err(|failure| refused(failure, pinned::other_host(options, Role::Balancer.into())))?;
    Ok(Reloaded::new(generation, waiting_settings))
}

async fn receiver(options: &Options, patience: Duration) -> Result<Reloaded, Failure> {
    origin::this_host(options, "reload --role receiver", "a receiver answers on its own host")?;
    let answer = Receiver::find(options).ask(Question::Reload, patience).await?;
    if !answer.troubles.is_empty() {
        let troubles = answer.troubles.iter().map(|it| format!("{}: {}", it.subject, it.cause));
        return Err(wrong(troubles.collect::<Vec<_>>().join("; ")));
    }
    Ok(Reloaded::new(None, answer.waiting_settings))
}

/// What a balancer refuses is wrong in its files. Where there is none on a backend, its receiver is meant.
fn refused(failure: Failure, other_host: Option<String>) -> Failure {
    match failure.code {
        None if failure.exit == Exit::Unavailable && other_host.is_some() => {
            failure.hint("this host is a backend: `spillway reload --role receiver`")
        }
        Some(Code::FailedPrecondition) => wrong(failure.message),
        Some(Code::Unimplemented) => Failure {
            hint: Some(
                "it is an older one: restart it (`systemctl restart spillway-balancer`)".into(),
            ),
            ..failure
        },
        _ => failure,
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(Exit::Invalid, message)
        .hint("what was in force stays; correct it, then reload again")
}

impl Reloaded {
    fn new(generation: Option<u64>, waiting_settings: Vec<String>) -> Self {
        let warnings = match waiting_settings.split_last() {
            None => Vec::new(),
            Some((only, [])) => vec![format!("{only} waits for the next start of the daemon")],
            Some((last, before)) => {
                vec![format!(
                    "{} and {last} wait for the next start of the daemon",
                    before.join(", ")
                )]
            }
        };
        Self { generation, waiting_settings, warnings }
    }
}

impl Report for Reloaded {
    fn table(&self) -> String {
        match self.generation {
            Some(generation) => format!("reloaded: generation {generation} is in force\n"),
            None => "reloaded\n".into(),
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_wait_are_warned_of() {
        let warned = |names: &[&str]| {
            Reloaded::new(None, names.iter().map(ToString::to_string).collect()).warnings
        };
        assert_eq!(warned(&[]), [""; 0]);
        assert_eq!(warned(&["region"]), ["region waits for the next start of the daemon"]);
        let three = "a, b and c wait for the next start of the daemon";
        assert_eq!(warned(&["a", "b", "c"]), [three]);
    }

    #[test]
    fn a_refusal_is_told_as_a_wrong_file_and_an_older_daemon_as_such() {
        let coded =
            |code| Failure { code: Some(code), ..Failure::new(Exit::Conflict, "f: line 1") };
        let on_balancer = |code| refused(coded(code), None);
        let failure = on_balancer(Code::FailedPrecondition);
        assert_eq!((failure.exit, &*failure.message), (Exit::Invalid, "f: line 1"));
        assert!(on_balancer(Code::Unimplemented).hint.unwrap().contains("restart it"));
        assert_eq!(on_balancer(Code::Unavailable), coded(Code::Unavailable));
        let silent = || Failure::new(Exit::Unavailable, "no such socket");
        assert_eq!(refused(silent(), None), silent());
        let hint = refused(silent(), Some("x".into())).hint.unwrap();
        assert!(hint.contains("--role receiver"), "{hint}");
    }
}
