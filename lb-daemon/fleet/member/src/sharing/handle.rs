//! Starts sharing, and what its caller holds of it.

#[cfg(test)]
use std::net::SocketAddr;
use std::sync::Arc;

use lb_base::boot_clock;
use lb_sharing::Sharing;
use tokio::{
    sync::{Notify, watch},
    task::{JoinError, spawn_blocking},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Enforcer, GroupCounters, LedgerFile, SharingInputs, SharingSettings, SharingStartError,
    SharingStatus,
    ledger_file::StartedLedger,
    loads,
    peers::{ErrorBoard, Inbox, PeerClients, PeerServer, PeerServerParts},
    sharing_loop::{LoopParts, SharingLoop},
};

/// Sharing that runs. Clones are of the same; it stops when the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct SharingHandle {
    #[cfg(test)]
    address: SocketAddr,
    status: watch::Receiver<SharingStatus>,
    leaving: Arc<watch::Sender<bool>>,
    is_old: CancellationToken,
    stop: CancellationToken,
    _stop: Arc<DropGuard>,
}

/// Sharing has been stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this balancer has stopped sharing capacities")]
pub(crate) struct SharingStopped;

/// Begins to share. The incarnation in the ledger has been raised and stored when this returns, and this balancer listens
/// for its peers.
///
/// # Errors
/// [`SharingStartError`]: nothing runs.
pub(crate) async fn start<C: GroupCounters, E: Enforcer>(
    settings: SharingSettings,
    inputs: SharingInputs<C, E>,
) -> Result<SharingHandle, SharingStartError> {
    let SharingSettings { name, listen, security, ledger: file, known_incarnation, .. } = settings;
    let begun = spawn_blocking(move || begin(file, known_incarnation)).await;
    let joined = |error: JoinError| SharingStartError::Ledger(error.into());
    let (file, StartedLedger { ledger, lost }) =
        begun.map_err(joined)?.map_err(SharingStartError::Ledger)?;
    if let Some(cause) = &lost {
        tracing::error!(
            "fleet: {cause}: this balancer owns nothing until its peers have forgotten what it owned"
        );
    }
    let (inbox, errors) = (Inbox::default(), ErrorBoard::default());
    let parts = PeerServerParts {
        name: name.clone(),
        security: security.clone(),
        view: inputs.view.clone(),
        inbox: inbox.clone(),
        errors: errors.clone(),
        answers: inputs.answers,
    };
    let server = PeerServer::start(listen, parts)
        .await
        .map_err(|source| SharingStartError::Listen { address: listen, source })?;
    #[cfg(test)]
    let address = server.address();
    let (is_old, stop) = (CancellationToken::new(), CancellationToken::new());
    let (leaving, leaving_rx) = watch::channel(false);
    let (loads_tx, loads) = watch::channel(Arc::default());
    let refusals = Arc::new(Notify::new());
    let (stopped, follow) =
        (stop.clone(), loads::follow(inputs.counters, loads_tx, refusals.clone()));
    tokio::spawn(async move { stopped.run_until_cancelled(follow).await });
    let (status_tx, status) = watch::channel(SharingStatus {
        incarnation: ledger.incarnation,
        epoch: ledger.epoch,
        frozen: ledger.frozen,
        store_is_old: ledger.is_old_copy,
        lost_ledger: lost,
        ..SharingStatus::default()
    });
    let clients = PeerClients::new(listen, security, errors.clone());
    let sharing = Sharing::start(name, ledger, boot_clock::now(), settings.lost_maps);
    let parts = LoopParts {
        sharing,
        file: Arc::new(file),
        enforcer: inputs.enforcer,
        view: inputs.view,
        loads,
        refusals,
        inbox,
        errors,
        clients,
        server,
        epoch_requests: inputs.epoch_requests,
        status: status_tx,
        conditions: inputs.conditions,
        leaving: leaving_rx,
        is_old: is_old.clone(),
        stop: stop.clone(),
    };
    tokio::spawn(SharingLoop::new(parts).run());
    let guard = Arc::new(stop.clone().drop_guard());
    Ok(SharingHandle {
        #[cfg(test)]
        address,
        status,
        leaving: Arc::new(leaving),
        is_old,
        stop,
        _stop: guard,
    })
}

fn begin(file: LedgerFile, known: u64) -> std::io::Result<(LedgerFile, StartedLedger)> {
    let started = file.begin(known)?;
    Ok((file, started))
}

impl SharingHandle {
    /// Where it listens for its peers.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its state, after every round.
    pub(crate) fn status(&self) -> watch::Receiver<SharingStatus> {
        self.status.clone()
    }

    /// Gives everything away from now on. A later start has to be told too.
    pub(crate) fn leave(&self) {
        self.leaving.send_replace(true);
    }

    /// Takes part as before: it does not leave after all.
    pub(crate) fn stay(&self) {
        self.leaving.send_replace(false);
    }

    /// Says that the ledger is an old copy: the fleet knows a later start of this balancer.
    pub(crate) fn set_ledger_is_old(&self) {
        self.is_old.cancel();
    }

    /// The generation with which this balancer has left, as in [`SharingStatus::has_left`].
    pub(crate) fn has_left(&self) -> Option<u64> {
        self.status.borrow().has_left
    }

    /// Waits until the portions for a generation are in force. With its own portions of the groups that the generation
    /// created: while an epoch is open, or the disk fails, they are not there yet. [`Self::enforced`] does not wait for that.
    ///
    /// # Errors
    /// [`SharingStopped`].
    pub(crate) async fn adopted(&self, generation: u64) -> Result<(), SharingStopped> {
        self.until(|status| status.adopted_generation >= generation).await
    }

    /// Waits until limits are in force with which a generation may be applied. A group that it created may be closed at
    /// first.
    ///
    /// # Errors
    /// [`SharingStopped`].
    pub(crate) async fn enforced(&self, generation: u64) -> Result<(), SharingStopped> {
        self.until(|status| status.enforced_generation >= generation).await
    }

    async fn until(&self, is_so: impl Fn(&SharingStatus) -> bool) -> Result<(), SharingStopped> {
        let mut status = self.status.clone();
        status.wait_for(|status| is_so(status)).await.map(drop).map_err(|_| SharingStopped)
    }

    /// Stops, and returns once nothing runs: nothing is enforced, stored or sent any more. What is being enforced or stored
    /// is waited for, also if that takes for ever; no other start may use the ledger before.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        // The loop holds the sender until its end.
        let mut status = self.status.clone();
        while status.changed().await.is_ok() {}
    }
}
