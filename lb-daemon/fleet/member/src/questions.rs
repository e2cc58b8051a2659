//! What the balancers of a fleet ask each other, by the way of an operator's question to one of them.

use std::collections::HashMap;

use futures::future::join_all;
use lb_base::error_chain;
use lb_control::command::Commands;
use lb_inspect::stats;
use lb_model::Name;

use super::{
    Member,
    sharing::{Answers, AskedPeer, TableDigests},
};

impl Member {
    /// Packets that each other live balancer sent to backends since its counters began, in the order of `backends`, or why
    /// it does not say.
    pub async fn count_packets(
        &self,
        backends: &[String],
    ) -> Vec<(Name, Result<Vec<u64>, String>)> {
        let snapshot = self.view().snapshot;
        let alive = snapshot.iter().flat_map(|snapshot| snapshot.alive.keys());
        let others = alive.filter(|name| *name != self.name());
        let asked = others.filter_map(|name| self.asked_peer(name)).map(async |peer| {
            let counted = peer.count_packets(backends.to_vec()).await;
            (peer.name, counted)
        });
        join_all(asked).await
    }

    /// Digests of the tables of a member, which may be this one.
    ///
    /// # Errors
    /// A sentence.
    pub(super) async fn digest_tables_of(&self, name: &Name) -> Result<TableDigests, String> {
        if name == self.name() {
            return own_digests(self.commands()).await;
        }
        let peer = self.asked_peer(name).ok_or_else(|| format!("{name} is not a member"))?;
        peer.digest_tables().await
    }

    fn asked_peer(&self, name: &Name) -> Option<AskedPeer> {
        let snapshot = self.view().snapshot?;
        let address = snapshot.members.get(name)?.document.body.address;
        let (own, security) = (self.settings().address, self.peer_security().clone());
        Some(AskedPeer { name: name.clone(), address, own, security })
    }
}

/// Packets that this balancer sent to backends since its counters began; 0 to one that it does not know.
///
/// # Errors
/// The counters cannot be read.
pub async fn packets_of(
    counters: stats::Source,
    backends: Vec<String>,
) -> Result<Vec<u64>, String> {
    let read = move || {
        let stats = counters.read().map_err(|error| error_chain::message(&error))?;
        let packets = stats.backends.iter().map(|it| (it.backend.to_string(), it.traffic.packets));
        let packets: HashMap<String, u64> = packets.collect();
        Ok(backends.iter().map(|it| packets.get(it).copied().unwrap_or_default()).collect())
    };
    tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?
}

/// Digests over what packets of each pool are decided by.
///
/// # Errors
/// A sentence: the maps cannot be read, or the daemon stops.
pub(super) async fn own_digests(commands: &Commands) -> Result<TableDigests, String> {
    let digests = commands.table_digests().await.map_err(|error| error_chain::message(&error))?;
    digests.map_err(|error| error_chain::message(&error))
}

/// What this balancer answers to the others.
#[derive(Debug)]
pub struct OwnAnswers {
    pub commands: Commands,
    pub counters: stats::Source,
}

#[tonic::async_trait]
impl Answers for OwnAnswers {
    async fn count_packets(&self, backends: Vec<String>) -> Result<Vec<u64>, String> {
        packets_of(self.counters.clone(), backends).await
    }

    async fn digest_tables(&self) -> Result<TableDigests, String> {
        own_digests(&self.commands).await
    }
}
