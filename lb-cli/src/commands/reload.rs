//! `spillway reload`: makes a daemon reload its settings, and fails if the daemon refuses them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use lb_base::{
    lock_owner,
    receiver_socket::{Answer, Condition, Request},
};
use lb_doctor::process;
use lb_maps::Pins;
use serde::Serialize;
use spillway_proto::v1;
use tokio::time::timeout;
use tonic::Code;

use crate::{
    arguments::{Component, Options, duration_within},
    client::{DaemonClient, ReceiverClient, block_on},
    commands::fleet::spell_wait,
    failure::{Exit, Failure, Mistake},
    origin,
    output::{Report, print},
    pinned,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Component to reload; a receiver only on its own host, as root
    #[arg(long, value_enum, default_value_t)]
    component: Component,
    /// How long to wait for the result
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = parse_timeout())]
    timeout: Duration,
    /// Put the configuration file in force however much it removes, and whatever addresses its services have
    #[arg(long)]
    force: bool,
}

fn parse_timeout() -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    duration_within(Duration::from_secs(1)..=Duration::from_secs(3600))
}

#[derive(Debug, Serialize)]
struct Reloaded {
    /// Generation in force; `null`: the settings name no configuration file.
    generation: Option<u64>,
    /// Changed settings that need a restart.
    waiting_settings: Vec<String>,
    #[serde(skip)]
    warnings: Vec<String>,
}

/// # Errors
/// The daemon refuses something, or does not answer.
pub(crate) fn run(mut options: Options, arguments: &Arguments) -> Result<(), Failure> {
    if options.server.is_none() {
        // `systemctl reload` cannot pass the socket.
        options.socket = options.socket.take().or_else(|| match arguments.component {
            Component::Balancer => configured_socket(&options.bpffs),
            // `ReceiverClient::find` reads that of a receiver.
            Component::Receiver => None,
        });
    }
    let options = &options;
    let timeout = arguments.timeout;
    let reloaded = block_on(async {
        match arguments.component {
            Component::Balancer => reload_balancer(options, arguments.force, timeout).await,
            Component::Receiver => reload_receiver(options, timeout).await,
        }
    })?;
    print(&reloaded, options.output)
}

/// The socket in the settings of the balancer with these pins; `None`: the default one.
fn configured_socket(bpffs: &Path) -> Option<PathBuf> {
    let process = lock_owner::holder(Pins::new(bpffs, lb_maps::Component::Balancer).root())?;
    process::setting(&process::command_line(process), "socket").map(PathBuf::from)
}

async fn reload_balancer(
    options: &Options,
    force: bool,
    limit: Duration,
) -> Result<Reloaded, Failure> {
    let asked =
        timeout(limit, async { DaemonClient::connect(options).await?.reload(force).await }).await;
    let Ok(answer) = asked else {
        let address = options.address();
        let message =
            format!("spillwayd at {address}: does not answer within {}", spell_wait(limit));
        return Err(Failure::new(Exit::Unavailable, message)
            .hint("it is unknown whether the reload succeeded; see the daemon's log"));
    };
    let v1::ReloadResponse { generation, waiting_settings } = answer.map_err(|failure| {
        reload_failure(failure, pinned::other_host(options, Component::Balancer.into()))
    })?;
    Ok(Reloaded::new(generation, waiting_settings))
}

async fn reload_receiver(options: &Options, limit: Duration) -> Result<Reloaded, Failure> {
    origin::refuse_server(options, "reload --component receiver")?;
    let answer = ReceiverClient::find(options).ask(Request::Reload, limit).await?;
    let Answer { conditions, mistakes, waiting_settings, .. } = answer;
    // The condition of the settings names the first of several mistakes.
    let is_listed = |it: &Condition| mistakes.iter().any(|text| text.starts_with(&it.subject));
    let conditions = conditions.iter().filter(|it| !is_listed(it));
    let conditions = conditions.map(|it| format!("{}: {}", it.subject, it.cause));
    let mut all = mistakes.iter().cloned().chain(conditions);
    if let Some(first) = all.next() {
        let others = all.map(|message| Mistake { field: String::new(), message }).collect();
        return Err(invalid(first, others));
    }
    Ok(Reloaded::new(None, waiting_settings))
}

/// What a balancer refuses is an error in its files. On a backend without a balancer, the user meant its receiver.
fn reload_failure(failure: Failure, other_host: Option<String>) -> Failure {
    match failure.code {
        None if failure.exit == Exit::Unavailable && other_host.is_some() => {
            failure.hint("this host is a backend: `spillway reload --component receiver`")
        }
        Some(Code::FailedPrecondition) => invalid(failure.message, failure.others),
        Some(Code::Unimplemented) => Failure {
            hint: Some(
                "the daemon is older than this command: restart it (`systemctl restart spillway-balancer`)".into(),
            ),
            ..failure
        },
        _ => failure,
    }
}

fn invalid(message: String, others: Vec<Mistake>) -> Failure {
    Failure { others, ..Failure::new(Exit::Invalid, message) }
        .hint("what was in force stays in force; correct the error and reload again")
}

impl Reloaded {
    fn new(generation: Option<u64>, waiting_settings: Vec<String>) -> Self {
        let warnings = match waiting_settings.split_last() {
            None => Vec::new(),
            Some((only, [])) => vec![format!("{only} takes effect when the daemon restarts")],
            Some((last, before)) => {
                vec![format!(
                    "{} and {last} take effect when the daemon restarts",
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

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_need_a_restart_are_warned_about() {
        let warned = |names: &[&str]| {
            Reloaded::new(None, names.iter().map(ToString::to_string).collect()).warnings
        };
        assert_eq!(warned(&[]), [""; 0]);
        assert_eq!(warned(&["region"]), ["region takes effect when the daemon restarts"]);
        let three = "a, b and c take effect when the daemon restarts";
        assert_eq!(warned(&["a", "b", "c"]), [three]);
    }

    #[test]
    fn a_refusal_is_an_invalid_file_and_an_older_daemon_is_named() {
        let coded =
            |code| Failure { code: Some(code), ..Failure::new(Exit::Conflict, "f: line 1") };
        let on_balancer = |code| reload_failure(coded(code), None);
        let failure = on_balancer(Code::FailedPrecondition);
        assert_eq!((failure.exit, &*failure.message), (Exit::Invalid, "f: line 1"));
        assert!(on_balancer(Code::Unimplemented).hint.unwrap().contains("restart it"));
        assert_eq!(on_balancer(Code::Unavailable), coded(Code::Unavailable));
        let silent = || Failure::new(Exit::Unavailable, "no such socket");
        assert_eq!(reload_failure(silent(), None), silent());
        let hint = reload_failure(silent(), Some("x".into())).hint.unwrap();
        assert!(hint.contains("--component receiver"), "{hint}");
    }
}
