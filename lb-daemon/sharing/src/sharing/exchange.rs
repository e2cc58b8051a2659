//! What a balancer hears from the others, and what it tells them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lb_model::Name;

use super::{Demand, SILENCE, Sharing, UNCONFIRMED};
use crate::{GroupKey, GroupReport, Message, ledger::Pair, message::MessageError};

/// Why a message is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharingError {
    #[error("{from}: {source}")]
    Malformed { from: Name, source: MessageError },
    #[error("{0}: a message of this balancer itself")]
    OwnName(Name),
    #[error("{0} is not a member of the fleet")]
    NotAMember(Name),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// Its latest message, and when it came.
    pub(super) latest: Option<(Message, Duration)>,
    /// Number of the last message to it.
    sequence: u64,
    /// The last start of the peer for which the store holds all that was applied of earlier starts.
    incarnation: u64,
    /// Number of the first transfer to it that it has not confirmed, and since when that has been the first.
    oldest: Option<(u64, Duration)>,
}

impl Peer {
    /// Takes note of the transfers to it that it has not confirmed.
    pub(super) fn note_oldest(&mut self, pair: Option<&Pair>, now: Duration) {
        let first = pair.and_then(|pair| pair.unacknowledged.first());
        let since = |number| self.oldest.filter(|(of, _)| *of == number).map_or(now, |(_, at)| at);
        self.oldest = first.map(|transfer| (transfer.number, since(transfer.number)));
    }
}

impl Sharing {
    /// Takes a message, whose sender the caller has authenticated. One that came late is ignored.
    ///
    /// # Errors
    /// [`SharingError`]: the message makes no sense.
    pub fn receive(&mut self, now: Duration, message: Message) -> Result<(), SharingError> {
        if message.from == self.name {
            return Err(SharingError::OwnName(message.from));
        }
        if !self.is_member(&message.from) {
            return Err(SharingError::NotAMember(message.from));
        }
        message
            .check()
            .map_err(|source| SharingError::Malformed { from: message.from.clone(), source })?;
        self.known_incarnation = self.known_incarnation.max(message.receiver_incarnation);
        let peer = self.peers.entry(message.from.clone()).or_default();
        let order = |message: &Message| (message.incarnation, message.sequence);
        if peer.latest.as_ref().is_some_and(|(last, _)| order(&message) <= order(last)) {
            return Ok(());
        }
        // One that was sent before this start, or of another epoch, does not have the last numbers.
        if message.receiver_incarnation == self.ledger.incarnation
            && message.epoch == self.ledger.epoch
            && let Some((awaited, _)) = &mut self.awaited
        {
            awaited.remove(&message.from);
        }
        if !message.store_is_old {
            self.compare_numbers(&message);
            for ledger in [&mut self.ledger].into_iter().chain(&mut self.storing) {
                if ledger.epoch == message.epoch {
                    ledger.acknowledge(&message.from, message.applied);
                }
            }
        }
        let is_store_known = self.is_store_known();
        let peer = self.peers.entry(message.from.clone()).or_default();
        // Only the sender's can have changed: of the others it was noted when they spoke, or after the write that was under
        // way then. To go through all peers for each message would cost the square of the fleet in each round.
        if is_store_known {
            peer.incarnation = message.incarnation;
        }
        peer.latest = Some((message, now));
        Ok(())
    }

    /// Whether a peer knows more of this balancer's transfers than its own store does.
    fn compare_numbers(&mut self, message: &Message) {
        let newest = self.storing.iter().chain([&self.ledger]);
        let Some(ledger) = newest.into_iter().find(|ledger| ledger.epoch == message.epoch) else {
            return;
        };
        // What it contributed to an epoch has no numbers any more, if it was forgotten.
        if ledger.frozen.is_some() || ledger.is_old_copy {
            return;
        }
        let pair = ledger.pairs.get(&message.from).cloned().unwrap_or_default();
        let has_applied_what_was_not_sent = message.applied > pair.sent;
        let has_forgotten_what_was_not_applied =
            message.sent - message.transfers.len() as u64 > pair.applied;
        if has_applied_what_was_not_sent || has_forgotten_what_was_not_applied {
            self.found_old = true;
        }
    }

    /// Takes note of peers that started again. Those whose store is an old copy must hear of everything that this balancer
    /// applied of their earlier life, so none of it may be on its way to the store.
    pub(super) fn see_incarnations(&mut self) {
        if !self.is_store_known() {
            return;
        }
        for peer in self.peers.values_mut() {
            peer.incarnation = peer.latest.as_ref().map_or(0, |(last, _)| last.incarnation);
        }
    }

    /// Whether the store has all that this balancer applied: no write is under way, and the last one did not fail.
    fn is_store_known(&self) -> bool {
        self.storing.is_none() && !self.is_store_unknown
    }

    /// The messages to other balancers.
    pub fn messages<'n>(
        &mut self,
        now: Duration,
        to: impl IntoIterator<Item = &'n Name>,
    ) -> Vec<(Name, Message)> {
        let silent = self.silent_members(now);
        let store_is_old = self.store_is_old();
        let report = |(group, demand): (&GroupKey, &Demand)| {
            let report = GroupReport {
                demand: demand.per_second,
                owned: self.ledger.owned(group),
                capacity: demand.capacity,
                may_send: demand.may_send && !self.leaving,
            };
            (group.clone(), report)
        };
        let groups: Arc<BTreeMap<_, _>> = Arc::new(self.groups.iter().map(report).collect());
        let others: Vec<Name> =
            to.into_iter().filter(|name| **name != self.name).cloned().collect();
        let message = |to: Name| {
            let peer = self.peers.entry(to.clone()).or_default();
            peer.sequence += 1;
            let pair = self.ledger.pairs.get(&to).cloned().unwrap_or_default();
            let message = Message {
                from: self.name.clone(),
                incarnation: self.ledger.incarnation,
                receiver_incarnation: peer.incarnation,
                sequence: peer.sequence,
                epoch: self.ledger.epoch,
                sent: pair.sent,
                applied: pair.applied,
                transfers: pair.unacknowledged,
                groups: Arc::clone(&groups),
                silent: silent.clone(),
                store_is_old,
                is_leaving: self.leaving,
                // A gift that was decided before is on its way to the store.
                receiver_is_leaving: self.storing.is_none()
                    && peer.latest.as_ref().is_some_and(|(last, _)| last.is_leaving),
            };
            (to, message)
        };
        others.into_iter().map(message).collect()
    }

    /// Whether a balancer belongs to the fleet, as far as the members are known.
    pub(super) fn is_member(&self, name: &Name) -> bool {
        let members = &self.membership.members;
        members.is_empty() || members.contains_key(name)
    }

    /// The latest message of a peer, if it came within a time.
    pub(super) fn heard(&self, peer: &Name, within: Duration, now: Duration) -> Option<&Message> {
        let (message, at) = self.peers.get(peer)?.latest.as_ref()?;
        (now.saturating_sub(*at) <= within).then_some(message)
    }

    /// Whether a peer confirms what it is given.
    pub(super) fn confirms(&self, peer: &Name, now: Duration) -> bool {
        let oldest = self.peers.get(peer).and_then(|peer| peer.oldest);
        oldest.is_none_or(|(_, since)| now.saturating_sub(since) <= UNCONFIRMED)
    }

    /// Whether it has listened to a member for [`SILENCE`] without an interruption, and has not heard from it.
    pub(super) fn is_silent(&self, member: &Name, now: Duration) -> bool {
        let known = self.member_since.get(member).copied().unwrap_or(now);
        let has_listened = now.saturating_sub(self.listening_since.max(known)) >= SILENCE;
        has_listened && self.heard(member, SILENCE, now).is_none()
    }
}
