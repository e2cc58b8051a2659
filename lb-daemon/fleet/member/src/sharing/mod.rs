//! How this balancer shares the capacities of its fleet with the others: runs [`lb_sharing::Sharing`] over a ledger on disk,
//! the counters and the limits of the packet path, and connections to peers.
//!
//! | to understand | begin at |
//! |---|---|
//! | in which order things are done, and why | `sharing_loop` |
//! | what a runtime has to give | [`SharingInputs`], [`FleetView`] |
//! | what it gets | [`SharingHandle`] |
//! | what peers say and how | [`lb_peers`], `peers` |

mod handle;
mod ledger_file;
mod loads;
mod peers;
mod sharing_loop;
mod status;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use lb_base::conditions::Conditions;
use lb_model::{Name, capacity::Capacity};
use lb_sharing::{
    GroupKey, Parts,
    epoch::{Epoch, EpochStep, Membership},
};
use tokio::{sync::watch, time::Instant};

pub(crate) use handle::{SharingHandle, start};
pub(crate) use lb_peers::PROGRAM_VERSION;
pub(crate) use ledger_file::LedgerFile;
pub(crate) use peers::{
    Answers, AskedPeer, PeerCredentials, PeerErrors, PeerSecurity, TableDigests, balancers, owner,
};
pub(crate) use sharing_loop::LEDGER;
pub(crate) use status::{GroupShare, PeerStatus, SharingStatus};

/// A pool and a region.
pub(crate) type GroupName = (Name, Name);

/// What a balancer knows of its fleet, from etcd or, while that cannot be read, from its own store. All of it is from one
/// moment: members without the groups would be taken for a fleet without groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FleetView {
    /// The generation whose groups these are: the latest, which this balancer may not have applied yet. It applies it
    /// after [`SharingHandle::adopted`].
    pub(crate) generation: u64,
    /// The groups, each with the balancers that were alive when it was created.
    pub(crate) births: BTreeMap<GroupKey, BTreeSet<Name>>,
    pub(crate) membership: Membership,
    /// The epoch with the highest number.
    pub(crate) epoch: Option<Epoch>,
    /// Where members listen for their peers. This balancer's own address may be among them.
    pub(crate) peers: BTreeMap<Name, SocketAddr>,
}

impl FleetView {
    /// Whether it was filled. Until then nothing is enforced and nothing said: limits of before stay.
    pub(crate) fn is_known(&self) -> bool {
        self.generation > 0 || !self.membership.members.is_empty()
    }
}

/// What the packet path says of all groups that this balancer may send to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupLoads {
    /// The generation of the fleet that the packet path had when they were read, or an earlier one. A group that it created
    /// or an earlier one did, and that is not listed, is one that this balancer does not send to.
    pub(crate) generation: u64,
    pub(crate) groups: Vec<GroupLoad>,
}

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupLoad {
    pub(crate) pool: Name,
    pub(crate) region: Name,
    /// Of the whole fleet, as this balancer sees it.
    pub(crate) capacity: Capacity,
    /// New connections that were offered, with those that were refused; since the group was created.
    pub(crate) offered: u64,
    /// Of them, those that it had no room for: refused, sent to another region, or admitted over capacity.
    pub(crate) refused: u64,
}

/// Where the counters are read.
pub(crate) trait GroupCounters: Send + Sync + 'static {
    /// Reads them. May be cancelled.
    ///
    /// # Errors
    /// A sentence.
    fn read(&self) -> impl Future<Output = Result<GroupLoads, String>> + Send;
}

/// What puts portions of capacities in force.
pub(crate) trait Enforcer: Send + Sync + 'static {
    /// Limits each group to its portion of the capacity as this balancer sees it, and remembers the portions for all limits
    /// that it computes later, also those of groups that the packet path does not have yet. A group that is not among them
    /// has no portion: it admits nothing. Lowers limits before it raises any, and returns once all are in the packet path.
    /// It is never cancelled.
    ///
    /// # Errors
    /// A sentence: some limits may not be in force. Nothing is said to peers until a later call succeeds.
    fn enforce(
        &self,
        portions: BTreeMap<GroupName, Parts>,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// A step of an epoch that should be written to etcd, with what it was decided from: the transaction compares that.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EpochRequest {
    pub(crate) step: EpochStep,
    pub(crate) membership: Membership,
    pub(crate) epoch: Option<Epoch>,
    /// When it was decided. It is decided again in every round in which it is still needed.
    pub(crate) decided: Instant,
}

impl EpochRequest {
    /// Whether it may be written: an older one says nothing of what was heard since.
    pub(crate) fn is_current(&self) -> bool {
        self.decided.elapsed() <= Duration::from_secs(1)
    }
}

/// What a balancer begins to share with.
#[derive(Debug)]
pub(crate) struct SharingSettings {
    /// Of this balancer.
    pub(crate) name: Name,
    /// Where it listens for its peers.
    pub(crate) listen: SocketAddr,
    pub(crate) security: PeerSecurity,
    pub(crate) ledger: LedgerFile,
    /// The last start of this balancer that the fleet knows of; 0: none, or not known. Once sharing has begun,
    /// [`SharingStatus::incarnation`] has to be written there.
    pub(crate) known_incarnation: u64,
    /// The peers, if the maps of the packet path are gone, as after a boot.
    pub(crate) lost_maps: Option<BTreeSet<Name>>,
}

/// What the sharing loop reads and writes.
#[derive(Debug)]
pub(crate) struct SharingInputs<C, E> {
    pub(crate) view: watch::Receiver<FleetView>,
    pub(crate) counters: C,
    pub(crate) enforcer: E,
    /// The step that an epoch needs of this balancer now; `None`: none. Only the latest is of any use.
    pub(crate) epoch_requests: watch::Sender<Option<EpochRequest>>,
    pub(crate) conditions: Conditions,
    /// Answers what peers ask.
    pub(crate) answers: Arc<dyn Answers>,
}

/// Why sharing cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SharingStartError {
    #[error("cannot store the ledger, so no capacity may be shared")]
    Ledger(#[source] io::Error),
    #[error("{address}: cannot listen for peers")]
    Listen { address: SocketAddr, source: io::Error },
}
