use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::SystemTime,
};

use tokio::sync::oneshot;

use crate::{
    command::{Applied, OverridesInForce, Refusal, Warning},
    members::MemberUpdate,
};
use lb_model::{
    Configuration, Name, capacity::Portions, ids::Ids, mark_out::MarkOuts, overrides::Overrides,
    remap::Settling,
};
use lb_store::{GenerationReader, HistoryEntry, Unusable};

/// What the status loop is told.
#[derive(Debug)]
pub(crate) enum StatusUpdate {
    /// What the last daemon left is in force, as far as it can be: questions can be answered.
    Begun,
    InForce(Arc<InForce>),
    /// An apply is in force, which the update before showed, so that no snapshot misses its generation.
    Applied(Applied),
    Members(Vec<MemberUpdate>),
    Overrides(OverridesInForce),
    /// Limits are written by these portions.
    Portions(Portions),
    /// What whoever sets overrides should know of what they do to these pools: those before, and those with the new ones.
    JudgeOverrides([Arc<Overrides>; 2], Vec<Name>, oneshot::Sender<Vec<Warning>>),
    /// Only these backends are needed any more.
    Backends(Arc<BTreeSet<IpAddr>>),
}

/// What the state loop has in force.
#[derive(Clone, Debug)]
pub(crate) struct InForce {
    /// 0 before the first apply, and the number of the stored generation even if that cannot be used.
    pub(crate) generation: u64,
    pub(crate) applied_at: Option<SystemTime>,
    /// The generations that are stored.
    pub(crate) history: Arc<[HistoryEntry]>,
    pub(crate) reader: GenerationReader,
    pub(crate) configuration: Arc<Configuration>,
    /// The daemon's own hash key.
    pub(crate) hash_key: [u64; 2],
    /// The stored generation, if it cannot be used.
    pub(crate) unusable: Option<Arc<Unusable>>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) mark_outs: Arc<MarkOuts>,
    /// Pools in a remap by index.
    pub(crate) settling: BTreeMap<u32, Settling>,
    /// Why the packet path is not at the generation; `None` if it is.
    pub(crate) behind: Option<String>,
}

impl Default for InForce {
    fn default() -> Self {
        Self {
            generation: 0,
            applied_at: None,
            history: Arc::default(),
            reader: GenerationReader::default(),
            configuration: Arc::new(Configuration::EMPTY),
            hash_key: [0; 2],
            unusable: None,
            ids: Arc::default(),
            mark_outs: Arc::default(),
            settling: BTreeMap::new(),
            behind: None,
        }
    }
}

impl InForce {
    /// Refuses questions about pools while the stored generation, and so its pools, cannot be read.
    pub(crate) fn require_usable(&self) -> Result<(), Refusal> {
        match &self.unusable {
            Some(unusable) => Err(Refusal::Unusable(unusable.cause.clone())),
            None => Ok(()),
        }
    }
}
