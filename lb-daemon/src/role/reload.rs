//! What the balancer reads again at SIGHUP: its settings, and the configuration of `--apply`.

use std::ffi::OsString;

use tokio::signal::unix::Signal;

use super::{
    arguments::Role,
    settings::{Settings, Told, Unusable},
};
use crate::{
    audit::Audit,
    command::{Commands, Refusal},
    file::{self, FileError, Followed},
    tls::Credentials,
    troubles::Troubles,
    watchdog::Manager,
};

/// Settings of the balancer that a reload brings into force; others wait for the next start.
const LIVE: [&str; 3] = ["apply", "config", "tls-client"];

/// What the settings are called among the troubles.
pub(super) const SETTINGS: &str = "settings";

/// Reads again what can be read again.
#[derive(Debug)]
pub(super) struct Reload {
    /// The command line that the daemon was started with.
    pub(super) line: Vec<OsString>,
    /// What is in force of the settings.
    pub(super) told: Told,
    /// The file of `--apply`.
    pub(super) followed: Followed,
    pub(super) commands: Commands,
    pub(super) troubles: Troubles,
    /// Certificates and clients of the door over TLS.
    pub(super) credentials: Option<Credentials>,
    pub(super) audit: Audit,
}

impl Reload {
    /// Applies the file of `--apply`, if there is one. Where that fails, what is in force stays, and
    /// the file is a trouble until it is read and accepted.
    pub(super) async fn apply(&self) {
        let Some(path) = self.followed.path() else { return };
        let subject = path.display().to_string();
        match file::apply(&path, &self.commands).await {
            // Then nobody is left to be told.
            Err(FileError::Stopping(_)) => {}
            // It is in force, and `status` says what is missing.
            Ok(_) | Err(FileError::Refused(Refusal::Behind { .. })) => self.troubles.end(&subject),
            Err(error) => self.troubles.begin(&subject, &error.to_string()),
        }
    }

    /// Reads everything again at each hangup.
    pub(super) async fn run(mut self, mut hangups: Signal, manager: Manager) {
        while hangups.recv().await.is_some() {
            tracing::info!("SIGHUP: reading settings and configuration again");
            manager.reloading();
            self.audit.reopen();
            self.settings();
            if let Some(credentials) = &self.credentials {
                credentials.refresh();
            }
            self.apply().await;
            manager.reloaded();
        }
    }

    fn settings(&mut self) {
        let settings = match Settings::read(&self.line) {
            Ok(settings) => settings,
            Err(error) => return self.troubles.begin(SETTINGS, &cause(error)),
        };
        self.troubles.end(SETTINGS);
        say_what_waits(&self.told, &settings.told, &LIVE);
        let Role::Balancer(arguments) = settings.arguments.role else { return };
        if let Some(credentials) = &self.credentials {
            credentials.set_clients(arguments.clients());
        }
        let former = self.followed.path();
        if arguments.apply != former {
            if let Some(former) = former {
                self.troubles.end(&former.display().to_string());
            }
            self.followed.set(arguments.apply);
        }
    }
}

/// Says which settings differ from what the daemon runs with and wait for its next start.
pub(super) fn say_what_waits(told: &Told, now: &Told, live: &[&str]) {
    let waiting: Vec<_> =
        told.differing(now).into_iter().filter(|name| !live.contains(&name.as_str())).collect();
    if !waiting.is_empty() {
        tracing::warn!("changed settings that wait for the next start: {}", waiting.join(", "));
    }
}

/// Why settings cannot be used, in a line.
pub(super) fn cause(error: Unusable) -> String {
    match error {
        Unusable::File(failure) => failure.message().to_owned(),
        Unusable::CommandLine(error) => {
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.is_empty());
            let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
            words.join(" ").trim_start_matches("error: ").to_owned()
        }
    }
}
