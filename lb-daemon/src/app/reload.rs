//! What the balancer reads again, at SIGHUP or when it is asked to (`Reload` of the API): its settings, and the
//! configuration of `--apply`.

use std::ffi::OsString;

use tokio::signal::unix::Signal;

use super::{
    arguments::Role,
    settings::{Settings, Told, Unusable},
};
use crate::{
    audit::Audit,
    file::{self, FileError},
    reloads::{Outcome, ReloadRequests, Waiters},
    tls::Credentials,
    watchdog::Manager,
};
use lb_base::conditions::Conditions;
use lb_control::{
    FollowedFile, WaitingSettings,
    command::{Commands, Refusal},
};

/// What the settings are called among the conditions.
pub(super) const SETTINGS: &str = "settings";

/// Why packets do not go by the file of `--apply`, `FILE: cause`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unapplied {
    /// What was in force stays.
    Refused(String),
    /// It is in force, and the packet path is not there yet.
    Behind(String),
}

/// Reads again what can be read again.
#[derive(Debug)]
pub(super) struct Reload {
    /// The command line that the daemon was started with.
    pub(super) line: Vec<OsString>,
    /// What is in force of the settings.
    pub(super) told: Told,
    /// The file of `--apply`.
    pub(super) followed: FollowedFile,
    pub(super) commands: Commands,
    pub(super) audit: Audit,
    pub(super) conditions: Conditions,
    /// Settings that wait for the next start.
    pub(super) waiting: WaitingSettings,
    /// Certificates and clients of the door over TLS.
    pub(super) credentials: Option<Credentials>,
}

impl Reload {
    /// Applies the file of `--apply`, if there is one, and returns the generation in force after it. Where that
    /// fails, what is in force stays, and the file is a condition until it is read and accepted.
    ///
    /// # Errors
    /// [`Unapplied`].
    pub(super) async fn apply(&self) -> Result<Option<u64>, Unapplied> {
        let Some(path) = self.followed.path() else { return Ok(None) };
        let subject = path.display().to_string();
        match file::apply(&path, &self.commands, &self.audit).await {
            Ok(applied) => {
                self.conditions.end(&subject);
                Ok(Some(applied.generation))
            }
            Err(error) => {
                let why = format!("{subject}: {error}");
                match &error {
                    // It is in force, and `status` says what is missing.
                    FileError::Refused(Refusal::Behind { .. }) => {
                        self.conditions.end(&subject);
                        return Err(Unapplied::Behind(why));
                    }
                    // Then there is nothing left to show it.
                    FileError::Stopping(_) => {}
                    error => self.conditions.begin(&subject, &error.to_string()),
                }
                Err(Unapplied::Refused(why))
            }
        }
    }

    /// Reads everything again at each hangup, and whenever it is asked for.
    pub(super) async fn run(
        mut self,
        mut hangups: Signal,
        mut requests: ReloadRequests,
        manager: Manager,
    ) {
        loop {
            let Some(mut waiters) = next(&mut hangups, &mut requests).await else { return };
            manager.reloading();
            // Whoever asked before this moment is answered by what is read after it.
            waiters.join(&mut requests);
            let outcome = self.again().await;
            manager.reloaded();
            waiters.answer(&outcome);
        }
    }

    async fn again(&mut self) -> Outcome {
        self.audit.reopen();
        let settings = self.settings();
        let certificates = self.credentials.as_ref().map_or(Ok(()), Credentials::refresh);
        // With wrong settings it is not sure which configuration is meant.
        let applied = match &settings {
            Ok(()) => self.apply().await,
            Err(_) => Ok(None),
        };
        let (generation, not_applied, behind) = match applied {
            Ok(generation) => (generation, None, None),
            Err(Unapplied::Refused(why)) => (None, Some(why), None),
            Err(Unapplied::Behind(why)) => (None, None, Some(why)),
        };
        let refused = [settings.err(), certificates.err(), not_applied];
        let refused = refused.into_iter().flatten().collect();
        Outcome { generation, refused, behind, waiting: self.waiting.now() }
    }

    fn settings(&mut self) -> Result<(), String> {
        let settings = take(&self.line, &self.told, &self.conditions, &self.waiting);
        let audit = &self.audit;
        match &settings {
            Ok(_) => audit.settings_read(Ok(())),
            Err(cause) => audit.settings_read(Err(cause)),
        }
        let settings = settings.map_err(refused)?;
        let Role::Balancer(arguments) = settings.arguments.role else { return Ok(()) };
        if let Some(credentials) = &self.credentials {
            credentials.set_clients(arguments.clients());
        }
        let former = self.followed.path();
        if arguments.apply != former {
            if let Some(former) = former {
                self.conditions.end(&former.display().to_string());
            }
            self.followed.set(arguments.apply);
        }
        Ok(())
    }
}

/// Waits until there is a reason to read everything again: a hangup, or somebody who waits for the outcome.
/// `None`: there are no signals any more.
pub(super) async fn next(hangups: &mut Signal, requests: &mut ReloadRequests) -> Option<Waiters> {
    tokio::select! {
        hangup = hangups.recv() => {
            tracing::info!("SIGHUP: reading settings again");
            hangup.map(|()| Waiters::default())
        }
        waiters = requests.next() => {
            tracing::info!("reload asked for: reading settings again");
            Some(waiters)
        }
    }
}

/// The settings as they are now. Those that differ from what the daemon runs with, and that a reload does not
/// take, wait for the next start.
///
/// # Errors
/// Why they cannot be used, which is a condition until they can.
pub(super) fn take(
    line: &[OsString],
    told: &Told,
    conditions: &Conditions,
    waiting: &WaitingSettings,
) -> Result<Settings, String> {
    match Settings::read(line) {
        Ok(settings) => {
            conditions.end(SETTINGS);
            waiting.set(told.waiting(&settings));
            Ok(settings)
        }
        Err(error) => {
            let cause = cause(error);
            conditions.begin(SETTINGS, &cause);
            Err(cause)
        }
    }
}

/// What a reload answers where the settings are refused: `settings: cause`.
pub(super) fn refused(cause: String) -> String {
    format!("{SETTINGS}: {cause}")
}

/// Why settings cannot be used, in a line.
fn cause(error: Unusable) -> String {
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
