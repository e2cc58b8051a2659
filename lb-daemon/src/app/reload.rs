//! A reload of the balancer, on SIGHUP or a call of `Reload`: reads the settings, the certificates and tokens, and the
//! configuration of `--apply` again.

use std::{ffi::OsString, path::Path};

use tokio::signal::unix::Signal;

use super::{
    arguments::Component,
    config_file::{self, FileError},
    settings::{SettingValues, Settings, SettingsError},
};
use crate::watchdog::ServiceManager;
use lb_api::{
    audit::Audit,
    reload::{Refused, ReloadOutcome, ReloadRequests, ReloadWaiters},
};
use lb_base::{
    FirstOf,
    conditions::{ConditionReason, Conditions, Subject},
};
use lb_control::{FollowedFile, WaitingSettings, command::Refusal};
use lb_member::Changes;
use lb_observe::http::HttpCredentials;
use lb_secure::tls::Credentials;

/// Subject of the condition that the settings cannot be used.
pub(super) const SETTINGS: Subject = Subject::new(ConditionReason::Settings, "settings");

/// Why packets do not follow the file of `--apply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileNotApplied {
    /// The previous configuration stays in force.
    Refused(Refused),
    /// The file's configuration is in force as this generation, but the packet path does not have it yet.
    Behind(u64, String),
}

#[derive(Debug)]
pub(super) struct Reload {
    /// The command line that the daemon was started with.
    pub(super) line: Vec<OsString>,
    /// The settings that the daemon runs with.
    pub(super) values: SettingValues,
    /// The file of `--apply`.
    pub(super) followed: FollowedFile,
    pub(super) changes: Changes,
    pub(super) audit: Audit,
    pub(super) conditions: Conditions,
    /// Settings that wait for the next start.
    pub(super) waiting: WaitingSettings,
    /// Certificates and clients of the TLS listener.
    pub(super) credentials: Option<Credentials>,
    /// Certificate and tokens of the HTTP listener.
    pub(super) http_credentials: Option<HttpCredentials>,
}

impl Reload {
    /// Applies the file of `--apply`, if there is one, and returns the generation in force after it; with `force` however much
    /// the file removes. A refused file is a condition until it is accepted.
    ///
    /// # Errors
    /// [`FileNotApplied`].
    pub(super) async fn apply(&self, force: bool) -> Result<Option<u64>, FileNotApplied> {
        let Some(path) = self.followed.path() else { return Ok(None) };
        let subject = file_subject(&path);
        match config_file::apply(&path, force, &self.changes, &self.audit).await {
            Ok(applied) => {
                self.conditions.end(&subject);
                Ok(Some(applied.generation))
            }
            Err(error) => {
                let refused = Refused { text: error.to_string(), mistakes: error.mistakes() };
                match &error {
                    // The generation is in force, and `status` shows that the packet path is behind.
                    FileError::Refused(Refusal::Behind { generation, .. }) => {
                        self.conditions.end(&subject);
                        return Err(FileNotApplied::Behind(
                            *generation,
                            refused.about(&subject).text,
                        ));
                    }
                    // No condition: the daemon ends, so nothing would show it.
                    FileError::Stopping(_) => {}
                    error => {
                        self.conditions.begin(&subject, &error.to_string());
                        log_others(&subject, &refused);
                    }
                }
                Err(FileNotApplied::Refused(refused.about(&subject)))
            }
        }
    }

    /// Reads everything again at each SIGHUP and each request.
    pub(super) async fn run(
        mut self,
        mut hangups: Signal,
        mut requests: ReloadRequests,
        manager: ServiceManager,
    ) {
        loop {
            let Some(mut waiters) = next(&mut hangups, &mut requests).await else { return };
            manager.reloading();
            // This reload answers all requests that came before it reads anything.
            waiters.join(&mut requests);
            let outcome = self.read_again(waiters.force()).await;
            // Like an apply's, its lines are in the audit log before its answer.
            self.audit.flush().await;
            manager.reloaded();
            waiters.answer(&outcome);
        }
    }

    async fn read_again(&mut self, force: bool) -> ReloadOutcome {
        self.audit.reopen();
        let settings = self.read_settings();
        let certificates = self.credentials.as_ref().map_or(Ok(()), Credentials::refresh);
        let http = self.http_credentials.as_ref().map_or(Ok(()), HttpCredentials::refresh);
        // If the settings are wrong, it is unclear which configuration file is meant.
        let applied = match &settings {
            Ok(()) => self.apply(force).await,
            Err(_) => Ok(None),
        };
        let (generation, not_applied, behind) = match applied {
            Ok(generation) => (generation, None, None),
            Err(FileNotApplied::Refused(message)) => (None, Some(message), None),
            Err(FileNotApplied::Behind(generation, message)) => {
                (Some(generation), None, Some(message))
            }
        };
        let (certificates, http) = (certificates.err(), http.err());
        let refused =
            [settings.err(), certificates.map(Into::into), http.map(Into::into), not_applied];
        let refused = refused.into_iter().flatten().collect();
        ReloadOutcome { generation, refused, behind, waiting: self.waiting.now() }
    }

    fn read_settings(&mut self) -> Result<(), Refused> {
        let settings = read_settings(&self.line, &self.values, &self.conditions, &self.waiting);
        let audit = &self.audit;
        match &settings {
            Ok(_) => audit.settings_read(Ok(())),
            Err(refused) => audit.settings_read(Err(&refused.text)),
        }
        let settings = settings.map_err(settings_refused)?;
        let Component::Balancer(arguments) = settings.arguments.component else { return Ok(()) };
        if let Some(credentials) = &self.credentials {
            credentials.set_clients(arguments.clients());
        }
        let former = self.followed.path();
        if arguments.apply != former {
            if let Some(former) = former {
                self.conditions.end(&file_subject(&former));
            }
            self.followed.set(arguments.apply);
        }
        Ok(())
    }
}

/// Waits for a SIGHUP or for requests of a reload. `None`: no more signals can arrive.
pub(super) async fn next(
    hangups: &mut Signal,
    requests: &mut ReloadRequests,
) -> Option<ReloadWaiters> {
    tokio::select! {
        hangup = hangups.recv() => {
            tracing::info!("SIGHUP: reading settings again");
            hangup.map(|()| ReloadWaiters::default())
        }
        waiters = requests.next() => {
            tracing::info!("reload requested: reading settings again");
            Some(waiters)
        }
    }
}

/// Reads the settings, and notes those that differ from the daemon's `values` and wait for the next start.
///
/// # Errors
/// Why they cannot be used, which is a condition until they can.
pub(super) fn read_settings(
    line: &[OsString],
    values: &SettingValues,
    conditions: &Conditions,
    waiting: &WaitingSettings,
) -> Result<Settings, Refused> {
    match Settings::read(line) {
        Ok(settings) => {
            conditions.end(&SETTINGS);
            waiting.set(values.waiting(&settings));
            Ok(settings)
        }
        Err(error) => {
            let refused = refused(error);
            conditions.begin(&SETTINGS, &refused.text);
            log_others(&SETTINGS, &refused);
            Err(refused)
        }
    }
}

/// The condition of the configuration file.
fn file_subject(path: &Path) -> Subject {
    Subject::named(ConditionReason::File, path.display().to_string())
}

/// How a reload reports settings that cannot be used: `settings: cause`.
pub(super) fn settings_refused(refused: Refused) -> Refused {
    refused.about(SETTINGS)
}

/// Logs the mistakes that a condition leaves out.
fn log_others(subject: &Subject, refused: &Refused) {
    for mistake in refused.mistakes.iter().skip(1) {
        tracing::error!(subject = subject.text(), "{subject}: {mistake}");
    }
}

/// The error without line ends.
fn refused(error: SettingsError) -> Refused {
    match error {
        SettingsError::File(failure) => {
            let mut mistakes = failure.messages();
            let text = FirstOf(&mistakes[0], mistakes.len()).to_string();
            if mistakes.len() == 1 {
                mistakes.clear();
            }
            Refused { text, mistakes }
        }
        SettingsError::CommandLine(error) => {
            let text = error.to_string();
            let lines = text.lines().take_while(|line| !line.is_empty());
            let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
            words.join(" ").trim_start_matches("error: ").to_owned().into()
        }
    }
}
