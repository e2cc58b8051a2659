//! Which balancers are alive: a lease holds `alive/<name>`.

use std::{sync::Arc, time::Duration};

use etcd_client::{
    Client, Compare, CompareOp, KvClient, LeaseClient, LeaseTimeToLiveOptions, PutOptions, Txn,
    TxnOp,
};
use tokio::{sync::watch, time};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{Document, EtcdError, Fleet, documents::Liveness};

/// How long a balancer counts as alive after its last renewal, seconds.
pub const LEASE: i64 = 10;

/// Three renewals fit into a lease. etcd's leader handles each of them, so there are no more.
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// When a lease that could not be renewed is certainly gone.
const EXPIRY: Duration = Duration::from_secs(LEASE.unsigned_abs());

/// Longest wait of a balancer that stops until its lease is revoked.
const REVOKE: Duration = Duration::from_secs(1);

/// Before a lease is asked for again.
const RETRY: Duration = Duration::from_secs(1);

/// The state of this balancer's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    Waiting,
    Held {
        lease: i64,
    },
    /// The lease is held, but `alive/` could not be written. If an earlier value is there, others still read that.
    Unshown {
        lease: i64,
        error: EtcdError,
    },
    Lost(EtcdError),
}

impl Fleet {
    /// Checks that this balancer has the right to write `alive/<name>`. Writes nothing: etcd checks the rights of all
    /// operations of a transaction before it compares, and no key has a version below 0.
    ///
    /// # Errors
    /// [`EtcdError::Denied`], or etcd does not answer.
    pub async fn check_alive_right(&self) -> Result<(), EtcdError> {
        let key = self.keys().alive(self.name());
        let never = Compare::version(&*key, CompareOp::Less, 0);
        let put = TxnOp::put(key, "", None);
        self.transact(Txn::new().when([never]).and_then([put])).await.map(drop)
    }

    /// Shows that this balancer is alive until `shutdown`, then revokes its lease, so that the others know at once.
    pub async fn stay_alive(
        self,
        mut liveness_rx: watch::Receiver<Arc<Document<Liveness>>>,
        state_tx: watch::Sender<LeaseState>,
        shutdown: CancellationToken,
    ) {
        loop {
            let held = self.hold_lease(&mut liveness_rx, &state_tx, &shutdown).await;
            match held {
                Ok(()) => return,
                Err(error) => {
                    let state = state_tx.borrow().clone();
                    if matches!(state, LeaseState::Held { .. } | LeaseState::Unshown { .. }) {
                        warn!("lost the lease of alive/{}: {error}", self.name());
                    }
                    state_tx.send_replace(LeaseState::Lost(error));
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = time::sleep(RETRY.mul_f64(0.5 + fastrand::f64())) => {}
            }
        }
    }

    /// Returns when `shutdown` is requested; otherwise when the lease is lost, with the cause. While etcd has no space it
    /// grants no leases, so a write that fails is no reason to give up the one that is held.
    async fn hold_lease(
        &self,
        liveness_rx: &mut watch::Receiver<Arc<Document<Liveness>>>,
        state_tx: &watch::Sender<LeaseState>,
        shutdown: &CancellationToken,
    ) -> Result<(), EtcdError> {
        let servers = self.servers();
        let grant = |mut it: LeaseClient| async move { it.grant(LEASE, None).await };
        let mut renewed_at = time::Instant::now();
        let granted = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            granted = servers.ask(Client::lease_client, grant) => self.written(granted)?,
        };
        let lease = granted.id();
        let revoke = |mut it: LeaseClient| async move { it.revoke(lease).await };
        let keep_alive = |mut it: LeaseClient| async move { it.keep_alive(lease).await };
        let mut shown: Option<Arc<Document<Liveness>>> = None;
        // After a failure the lease is renewed first: writes that hang must not keep it from that.
        let mut may_show = true;
        let mut renewals = time::interval_at(renewed_at + RENEW_EVERY, RENEW_EVERY);
        renewals.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            let liveness = Arc::clone(&liveness_rx.borrow_and_update());
            if may_show && shown.as_ref() != Some(&liveness) {
                match self.show(&liveness, lease).await {
                    Ok(()) => {
                        shown = Some(liveness);
                        self.set_state(state_tx, LeaseState::Held { lease });
                    }
                    Err(error) if error.is_lease_gone() => return Err(error),
                    Err(error) => {
                        // It may have been written although it failed.
                        shown = None;
                        may_show = false;
                        self.set_state(state_tx, LeaseState::Unshown { lease, error });
                    }
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {
                    // If it fails, the lease expires by itself.
                    let _ = time::timeout(REVOKE, servers.ask(Client::lease_client, revoke)).await;
                    return Ok(());
                }
                changed = liveness_rx.changed() => {
                    if changed.is_err() {
                        let _ = time::timeout(REVOKE, servers.ask(Client::lease_client, revoke)).await;
                        return Ok(());
                    }
                }
                _ = renewals.tick() => {
                    let asked_at = time::Instant::now();
                    match servers.ask(Client::lease_client, keep_alive).await {
                        Ok(_) => {
                            renewed_at = asked_at;
                            may_show = true;
                            if self.is_shown(lease).await == Ok(false) {
                                shown = None;
                            }
                        }
                        Err(error) if error.is_lease_gone() || renewed_at.elapsed() >= EXPIRY => {
                            return Err(error);
                        }
                        // It may still be there: another server of etcd may answer in time.
                        Err(_) => {}
                    }
                }
            }
        }
    }

    fn set_state(&self, state_tx: &watch::Sender<LeaseState>, state: LeaseState) {
        if state_tx.send_replace(state.clone()) == state {
            return;
        }
        match state {
            LeaseState::Held { lease } => info!("alive/{} is held by lease {lease:x}", self.name()),
            LeaseState::Unshown { error, .. } => {
                warn!("alive/{} cannot be written, its lease stays: {error}", self.name());
            }
            LeaseState::Waiting | LeaseState::Lost(_) => {}
        }
    }

    /// Whether the lease holds the key. It does not if the key was deleted, or if an earlier write, under another lease,
    /// arrived late.
    async fn is_shown(&self, lease: i64) -> Result<bool, EtcdError> {
        let ask = |mut client: LeaseClient| async move {
            let options = LeaseTimeToLiveOptions::new().with_keys();
            client.time_to_live(lease, Some(options)).await
        };
        let held = self.servers().ask(Client::lease_client, ask).await?;
        let key = self.keys().alive(self.name());
        Ok(held.keys().iter().any(|held| held == key.as_bytes()))
    }

    async fn show(&self, liveness: &Document<Liveness>, lease: i64) -> Result<(), EtcdError> {
        let key = self.keys().alive(self.name());
        let value = liveness.write(&key).map_err(|error| EtcdError::Refused(error.to_string()))?;
        let options = PutOptions::new().with_lease(lease);
        let put = |mut kv: KvClient| {
            let (key, value, options) = (key.clone(), value.clone(), options.clone());
            async move { kv.put(key, value, Some(options)).await }
        };
        self.written(self.servers().ask_once(Client::kv_client, put).await).map(drop)
    }
}
