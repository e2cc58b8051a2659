//! Packets to backends over all balancers, by which a drain knows that it is done.

use std::collections::HashMap;

use lb_base::error_chain;
use lb_inspect::stats;
use lb_model::Name;

use super::{Member, sharing};

impl Member {
    /// Packets that each other live balancer sent to backends since its counters began, in the order of `backends`, or why
    /// it does not say.
    pub async fn count_packets(
        &self,
        backends: &[String],
    ) -> Vec<(Name, Result<Vec<u64>, String>)> {
        let snapshot = self.view().snapshot;
        let alive = snapshot.iter().flat_map(|snapshot| {
            let address = |name: &Name| Some(snapshot.members.get(name)?.document.body.address);
            let others = snapshot.alive.keys().filter(|name| *name != self.name());
            others.filter_map(move |name| Some((name.clone(), address(name)?)))
        });
        let security = self.peer_security();
        let asked = alive.map(|(name, address)| {
            let (security, backends) = (security.clone(), backends.to_vec());
            async move {
                let counted = sharing::count_packets(address, &security, &name, backends).await;
                (name, counted)
            }
        });
        futures::future::join_all(asked).await
    }
}

/// Packets that this balancer sent to backends since its counters began; 0 to one that it does not know.
///
/// # Errors
/// The counters cannot be read.
pub(crate) async fn packets_of(
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

/// The same, for peers that ask.
pub(crate) fn packet_counts(counters: stats::Source) -> sharing::PacketCounts {
    sharing::PacketCounts::new(move |backends| packets_of(counters.clone(), backends))
}
