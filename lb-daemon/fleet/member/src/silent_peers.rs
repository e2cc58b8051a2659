//! Whether all balancers that are alive exchange messages with this one. While one of them does not, etcd says that it takes
//! part: no portion moves to it or from it, and this balancer cannot leave.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lb_base::conditions::{ConditionReason, Subject};
use lb_fleet::reader::Connection;
use lb_model::Name;
use tokio::time::Instant;

use super::{Member, sharing::PeerStatus};

/// Subject of the condition that a balancer is alive, and exchanges no messages with this one.
pub(super) const FLEET_PEERS: Subject = Subject::new(ConditionReason::FleetShares, "fleet peers");

/// Longer than a restart of a daemon, and than its connections take after it.
const LASTS: Duration = Duration::from_secs(15);

/// What is wrong with the messages of a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Silence {
    /// None come from it.
    NotHeard,
    /// None of this balancer's got there since it was started.
    NotHearing,
}

/// The balancers that are alive and silent, and since when.
#[derive(Debug, Default)]
pub(super) struct SilentPeers {
    since: BTreeMap<Name, Instant>,
}

impl SilentPeers {
    /// Looks at the messages of all balancers that are alive.
    pub(super) fn look(&mut self, member: &Member) {
        match self.note(member.silent_peers(), Instant::now()) {
            Some(problem) => member.conditions().begin(&FLEET_PEERS, &problem),
            None => member.conditions().end(&FLEET_PEERS),
        }
    }

    /// Takes note of who is silent now. Returns what is wrong, once it has lasted.
    fn note(&mut self, silent: BTreeMap<Name, Silence>, now: Instant) -> Option<String> {
        self.since.retain(|name, _| silent.contains_key(name));
        let lasts = silent.into_iter().filter(|(name, _)| {
            let since = *self.since.entry(name.clone()).or_insert(now);
            now.duration_since(since) >= LASTS
        });
        let mut by_silence: BTreeMap<Silence, BTreeSet<Name>> = BTreeMap::new();
        for (name, silence) in lasts {
            by_silence.entry(silence).or_default().insert(name);
        }
        let sentences: Vec<_> =
            by_silence.iter().map(|(silence, names)| sentence(*silence, names)).collect();
        (!sentences.is_empty()).then(|| {
            format!(
                "{}, although etcd says alive: no portions move there or from there, \
                 and this balancer cannot leave; let the balancers reach each other, or stop the daemon that nobody hears",
                sentences.join("; ")
            )
        })
    }
}

fn sentence(silence: Silence, names: &BTreeSet<Name>) -> String {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let names = names.join(", ");
    match silence {
        Silence::NotHeard => format!("no messages come from {names}"),
        Silence::NotHearing => format!("this balancer's messages do not get to {names}"),
    }
}

impl Member {
    /// Balancers that are alive, and what is wrong with their messages. Empty while etcd does not say who is alive.
    fn silent_peers(&self) -> BTreeMap<Name, Silence> {
        let view = self.view();
        let Some(snapshot) = view.snapshot.filter(|_| view.connection == Connection::Connected)
        else {
            return BTreeMap::new();
        };
        let status = self.sharing().status();
        let status = status.borrow();
        let others = snapshot
            .alive
            .keys()
            .filter(|name| *name != self.name() && snapshot.members.contains_key(*name));
        others.filter_map(|name| Some((name.clone(), silence(status.peers.get(name))?))).collect()
    }
}

fn silence(peer: Option<&PeerStatus>) -> Option<Silence> {
    match peer {
        Some(peer) if !peer.is_heard() => Some(Silence::NotHeard),
        Some(peer) if !peer.hears_this => Some(Silence::NotHearing),
        Some(_) => None,
        // The loop that sends the messages has not heard of it yet.
        None => Some(Silence::NotHeard),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_for_long_is_named_with_the_direction() {
        let name = |text: &str| Name::new(text).unwrap();
        let now = Instant::now();
        let mut peers = SilentPeers::default();
        let both = [(name("lb-2"), Silence::NotHeard), (name("lb-3"), Silence::NotHearing)];
        assert_eq!(peers.note(both.clone().into(), now), None);
        assert_eq!(peers.note(both[..1].iter().cloned().collect(), now + LASTS / 2), None);
        // The second one was heard in between.
        let problem = peers.note(both.clone().into(), now + LASTS).unwrap();
        assert!(problem.starts_with("no messages come from lb-2, although"), "{problem}");
        let problem = peers.note(both.into(), now + LASTS * 2).unwrap();
        let both =
            "no messages come from lb-2; this balancer's messages do not get to lb-3, although";
        assert!(problem.starts_with(both), "{problem}");
        assert_eq!(peers.note(BTreeMap::new(), now + LASTS * 3), None);
    }
}
