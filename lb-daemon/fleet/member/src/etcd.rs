//! The connection of a member to etcd, made anew when its certificate files have changed and etcd answers with them.

use std::{sync::Arc, time::Duration};

use lb_base::conditions::{ConditionReason, Conditions, ETCD, Subject};
use lb_fleet::{
    Document, EtcdError, Fleet, FleetSettings,
    commit::CommitError,
    documents::Liveness,
    presence::LeaseState,
    reader::{Connection, LossCause, READ_AGAIN, Reader, Snapshot, View},
};
use lb_pieces::Digest;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use lb_secure::tls;

use super::follower::InForce;

/// Before files that cannot be read are read again.
const RETRY: Duration = Duration::from_secs(5);

/// How often the certificate files are compared with those in use.
const COMPARE_FILES: Duration = Duration::from_secs(10);

/// Longest wait for a first answer of etcd.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Subject of the condition that changed certificate files are not in use, because etcd does not answer with them.
const ETCD_TLS: Subject = Subject::new(ConditionReason::TlsFiles, "TLS of etcd");

/// Where to find etcd, and what it has.
#[derive(Clone)]
pub(super) struct EtcdConnection {
    /// `None` until the certificate files could be read.
    pub(super) fleet: watch::Receiver<Option<Fleet>>,
    pub(super) view: watch::Receiver<View>,
}

/// What is shown of this balancer in `alive/`.
type Presence = watch::Receiver<Arc<Document<Liveness>>>;

/// Follows etcd until `stop`, and meanwhile shows that this balancer is alive, once it takes part.
pub(super) fn connect(
    settings: FleetSettings,
    (liveness, may_show): (Presence, watch::Receiver<bool>),
    in_force: watch::Receiver<InForce>,
    conditions: Conditions,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> EtcdConnection {
    let (fleet_tx, fleet) = watch::channel(None);
    let (view_tx, view) = watch::channel(View::default());
    let (lease_tx, _) = watch::channel(LeaseState::Waiting);
    let connector = Connector {
        settings,
        liveness,
        may_show,
        in_force,
        conditions,
        fleet_tx,
        view_tx,
        lease_tx,
    };
    tasks.spawn(connector.run(stop));
    EtcdConnection { fleet, view }
}

struct Connector {
    settings: FleetSettings,
    liveness: Presence,
    /// Becomes true once this balancer takes part.
    may_show: watch::Receiver<bool>,
    in_force: watch::Receiver<InForce>,
    conditions: Conditions,
    fleet_tx: watch::Sender<Option<Fleet>>,
    view_tx: watch::Sender<View>,
    lease_tx: watch::Sender<LeaseState>,
}

impl Connector {
    async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let files = file_digests(&self.settings).await;
            match Fleet::new(&self.settings).await {
                Ok(fleet) => self.follow(fleet, &files, &stop).await,
                Err(error) => {
                    self.conditions.begin(&ETCD, &error.to_string());
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = sleep(RETRY) => {}
                    }
                }
            }
        }
        self.conditions.end(&ETCD);
        self.conditions.end(&ETCD_TLS);
    }

    /// Returns when certificate files have changed and work, or at the end.
    async fn follow(&self, fleet: Fleet, files: &[Option<Digest>], stop: &CancellationToken) {
        let session = stop.child_token();
        let _end = session.clone().drop_guard();
        let in_force = self.in_force.clone();
        let traced_from = Box::new(move || in_force.borrow().guard.traced_from());
        let (reader, mut views) = Reader::new(fleet.clone(), READ_AGAIN, traced_from);
        tokio::spawn(reader.run(session.clone()));
        let (liveness, lease_tx) = (self.liveness.clone(), self.lease_tx.clone());
        let presence = fleet.clone().stay_alive(liveness, lease_tx, session.clone());
        let (mut may_show, end) = (self.may_show.clone(), session.clone());
        let presence = tokio::spawn(async move {
            let may_show = may_show.wait_for(|may_show| *may_show);
            let may_show = end.run_until_cancelled(may_show).await.map(|shown| shown.is_ok());
            if may_show == Some(true) {
                presence.await;
            }
        });
        self.fleet_tx.send_replace(Some(fleet));
        let other_files = self.other_files(files);
        tokio::pin!(other_files);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                changed = views.changed() => match changed {
                    Ok(()) => {
                        let view = views.borrow_and_update().clone();
                        self.show(self.explained(view, files).await);
                    }
                    Err(_) => break,
                },
                () = &mut other_files => {
                    tracing::info!("the certificate files of the fleet changed: connecting to etcd again");
                    break;
                }
            }
        }
        // At the end the lease is revoked, so that the others know at once. With other files, the next lease takes the key over,
        // and this balancer is alive all the time.
        if !stop.is_cancelled() {
            presence.abort();
        }
        session.cancel();
        let _ = presence.await;
    }

    /// Returns when there are other files than those in use, and etcd answers with them. A wrong file, or a new key beside the
    /// old certificate, must not end a session that works.
    async fn other_files(&self, in_use: &[Option<Digest>]) {
        let mut compare = tokio::time::interval(COMPARE_FILES);
        loop {
            compare.tick().await;
            if file_digests(&self.settings).await == in_use {
                self.conditions.end(&ETCD_TLS);
                continue;
            }
            match self.ask().await {
                Ok(()) => return self.conditions.end(&ETCD_TLS),
                Err(cause) => {
                    let cause = self.expired().await.unwrap_or(cause);
                    let sentence =
                        format!("the files changed, and those from before stay in use: {cause}");
                    self.conditions.begin(&ETCD_TLS, &sentence);
                }
            }
        }
    }

    /// Whether etcd answers with the files as they are now.
    async fn ask(&self) -> Result<(), String> {
        let with_servers =
            |error: EtcdError| error.with_servers(&self.settings.endpoints).to_string();
        let fleet = Fleet::new(&self.settings).await.map_err(with_servers)?;
        match timeout(FIRST_ANSWER, fleet.current()).await {
            Ok(Err(CommitError::Etcd(error))) => Err(with_servers(error)),
            // What it has is not the question.
            Ok(_) => Ok(()),
            Err(_) => Err(format!("etcd does not answer within {} s", FIRST_ANSWER.as_secs())),
        }
    }

    /// That the certificate has expired, if it has.
    async fn expired(&self) -> Option<String> {
        let files = self.settings.tls.as_ref()?;
        let pem = tokio::fs::read(&files.certificate).await.ok()?;
        Some(format!("{}: {}", files.certificate.display(), tls::expired(&pem)?))
    }

    /// Names the servers if etcd is lost. Says that the certificate has expired if that may be why: with TLS 1.3 a server
    /// refuses a certificate only when the client believes itself connected already, and mostly no more than the end of the
    /// connection is seen.
    async fn explained(&self, mut view: View, files: &[Option<Digest>]) -> View {
        let Connection::Lost { cause, .. } = &mut view.connection else { return view };
        *cause = cause.clone().with_servers(&self.settings.endpoints);
        if !matches!(cause, LossCause::Etcd(EtcdError::CertificateExpired(_)))
            && file_digests(&self.settings).await == files
            && let Some(expired) = self.expired().await
        {
            *cause = LossCause::Etcd(EtcdError::CertificateExpired(expired));
        }
        view
    }

    /// What was known before stays until the new connection has read something.
    fn show(&self, view: View) {
        match view.connection.sentence() {
            Some(sentence) => self.conditions.begin(&ETCD, &sentence),
            None if view.snapshot.is_some() => self.conditions.end(&ETCD),
            None => {}
        }
        self.view_tx.send_modify(|known| {
            known.connection = view.connection;
            known.snapshot = view.snapshot.or_else(|| known.snapshot.take());
        });
    }
}

async fn file_digests(settings: &FleetSettings) -> Vec<Option<Digest>> {
    let files = settings.tls.iter().flat_map(|tls| [&tls.authorities, &tls.certificate, &tls.key]);
    let mut digests = Vec::new();
    for file in files {
        digests.push(tokio::fs::read(file).await.ok().map(|content| Digest::new(&content)));
    }
    digests
}

/// What etcd has now.
///
/// # Errors
/// It does not answer, or this version cannot read what it has.
pub(super) async fn read_once(fleet: &Fleet) -> Result<Arc<Snapshot>, String> {
    let end = CancellationToken::new();
    let _end = end.clone().drop_guard();
    // Of a balancer that follows nothing yet.
    let (reader, mut views) = Reader::new(fleet.clone(), READ_AGAIN, Box::new(|| None));
    tokio::spawn(reader.run(end));
    let decided = views.wait_for(|view| {
        view.snapshot.is_some() || matches!(view.connection, Connection::Lost { .. })
    });
    let decided =
        timeout(FIRST_ANSWER, decided).await.map_err(|_| EtcdError::NoAnswer.to_string())?;
    let view = decided.map_err(|_| EtcdError::NoAnswer.to_string())?.clone();
    view.snapshot.ok_or_else(|| view.connection.sentence().unwrap_or_default())
}
