//! Which balancers there are: `members/<name>` stays until it is removed; a lease holds `alive/<name>`.

use std::{sync::Arc, time::Duration};

use etcd_client::{LeaseTimeToLiveOptions, PutOptions, Txn, TxnOp};
use lb_model::Name;
use tokio::{sync::watch, time};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    Document, DocumentError, EtcdError, Fleet,
    client::{is_at, timed},
    documents::{FleetMember, Liveness},
};

/// How long a balancer counts as alive after its last renewal, seconds.
pub const LEASE: i64 = 10;

/// Three renewals fit into a lease. etcd's leader handles each of them, so there are no more.
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// When a lease that could not be renewed is certainly gone.
const EXPIRY: Duration = Duration::from_secs(LEASE.unsigned_abs());

/// Before a lease is asked for again.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    #[error("member {0} was changed by another balancer meanwhile")]
    Conflict(Name),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Etcd(#[from] EtcdError),
}

/// The state of this balancer's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    Waiting,
    Held { lease: i64 },
    Lost(EtcdError),
}

impl Fleet {
    /// Writes this balancer's member key. `expected` is the `mod_revision` of what it replaces; 0: there must be none.
    ///
    /// # Errors
    /// [`MemberError`]
    pub async fn join(
        &self,
        member: &Document<FleetMember>,
        expected: i64,
    ) -> Result<(), MemberError> {
        let key = self.keys().member(self.name());
        let put = TxnOp::put(&*key, member.write(&key)?, None);
        let done = self.transact(Txn::new().when([is_at(&key, expected)]).and_then([put])).await?;
        match done.is_done {
            true => Ok(()),
            false => Err(MemberError::Conflict(self.name().clone())),
        }
    }

    /// Removes a member, and that it is alive.
    ///
    /// # Errors
    /// [`EtcdError`]
    pub async fn remove_member(&self, name: &Name) -> Result<(), EtcdError> {
        let keys = [self.keys().member(name), self.keys().alive(name)];
        let deletes = keys.map(|key| TxnOp::delete(key, None));
        self.transact(Txn::new().and_then(deletes)).await.map(drop)
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
                    if matches!(*state_tx.borrow(), LeaseState::Held { .. }) {
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

    /// Returns when `shutdown` is requested; otherwise when the lease is lost, with the cause.
    async fn hold_lease(
        &self,
        liveness_rx: &mut watch::Receiver<Arc<Document<Liveness>>>,
        state_tx: &watch::Sender<LeaseState>,
        shutdown: &CancellationToken,
    ) -> Result<(), EtcdError> {
        let mut client = self.client().lease_client();
        let granted = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            granted = timed(client.grant(LEASE, None)) => granted?,
        };
        let lease = granted.id();
        let mut renewed_at = time::Instant::now();
        let mut shown: Option<Arc<Document<Liveness>>> = None;
        let mut renewals = time::interval_at(renewed_at + RENEW_EVERY, RENEW_EVERY);
        renewals.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        loop {
            let liveness = Arc::clone(&liveness_rx.borrow_and_update());
            if shown.as_ref() != Some(&liveness) {
                self.show(&liveness, lease).await?;
                shown = Some(liveness);
                if state_tx.send_replace(LeaseState::Held { lease }) != (LeaseState::Held { lease })
                {
                    info!("alive/{} is held by lease {lease:x}", self.name());
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {
                    // If it fails, the lease expires by itself.
                    return timed(client.revoke(lease)).await.map(drop).or(Ok(()));
                }
                changed = liveness_rx.changed() => {
                    if changed.is_err() {
                        return timed(client.revoke(lease)).await.map(drop).or(Ok(()));
                    }
                }
                _ = renewals.tick() => match self.renew(lease).await {
                    Ok(is_shown) => {
                        renewed_at = time::Instant::now();
                        shown = shown.filter(|_| is_shown);
                    }
                    // It may still be there: another server of etcd may answer in time.
                    Err(error) if error.is_indefinite() && renewed_at.elapsed() < EXPIRY => {}
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Returns whether the lease holds the key. It does not if the key was deleted, or if an earlier write, under another
    /// lease, arrived late.
    async fn renew(&self, lease: i64) -> Result<bool, EtcdError> {
        let mut client = self.client().lease_client();
        timed(client.keep_alive(lease)).await?;
        let options = LeaseTimeToLiveOptions::new().with_keys();
        let held = timed(client.time_to_live(lease, Some(options))).await?;
        let key = self.keys().alive(self.name());
        Ok(held.keys().iter().any(|held| held == key.as_bytes()))
    }

    async fn show(&self, liveness: &Document<Liveness>, lease: i64) -> Result<(), EtcdError> {
        let key = self.keys().alive(self.name());
        let value = liveness.write(&key).map_err(|error| EtcdError::Refused(error.to_string()))?;
        let options = PutOptions::new().with_lease(lease);
        timed(self.client().kv_client().put(key, value, Some(options))).await.map(drop)
    }
}
