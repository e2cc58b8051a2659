//! What peers sent and the sharing loop has not looked at, and what went wrong with each peer.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lb_base::{boot_clock, rate_limited_log::RateLimit};
use lb_model::Name;
use lb_peers::PeerMessage;

/// Log lines a second about one peer.
const LINES: u32 = 1;
/// Most characters of a sentence of a peer that are kept.
const MAX_SENTENCE: usize = 400;

/// A message, and when it came.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedMessage {
    pub(crate) message: PeerMessage,
    /// Time since the boot.
    pub(crate) at: Duration,
}

/// The latest message of each peer. Messages that another one replaced are as good as lost, which does no harm, so nothing
/// queues up while the loop waits for the disk. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox(Arc<Mutex<BTreeMap<Name, ReceivedMessage>>>);

impl Inbox {
    /// Keeps a message, unless one that was sent later is there.
    pub(super) fn put(&self, message: PeerMessage) {
        let order = |it: &PeerMessage| (it.message.incarnation, it.message.sequence);
        let mut waiting = self.waiting();
        if waiting
            .get(&message.message.from)
            .is_none_or(|last| order(&message) > order(&last.message))
        {
            let received = ReceivedMessage { message, at: boot_clock::now() };
            waiting.insert(received.message.message.from.clone(), received);
        }
    }

    /// Takes all that are there.
    pub(crate) fn take(&self) -> BTreeMap<Name, ReceivedMessage> {
        std::mem::take(&mut *self.waiting())
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Name, ReceivedMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was wrong last with a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerErrors {
    /// Why the last message to it was not taken; `None`: it was.
    pub(crate) sending: Option<String>,
    /// Why the last message of it was not taken; `None`: it was.
    pub(crate) receiving: Option<String>,
}

impl PeerErrors {
    /// Both in one sentence; `None`: nothing is wrong.
    pub(crate) fn sentence(&self) -> Option<String> {
        let sending =
            self.sending.iter().map(|cause| format!("messages do not get there: {cause}"));
        let receiving =
            self.receiving.iter().map(|cause| format!("its messages are refused here: {cause}"));
        let both: Vec<_> = sending.chain(receiving).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

/// The errors of all peers. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorBoard(Arc<Mutex<BTreeMap<Name, BoardEntry>>>);

#[derive(Debug, Default)]
struct BoardEntry {
    errors: PeerErrors,
    rate_limit: RateLimit,
}

/// What was done when an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Sending,
    Receiving,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sending => "sending",
            Self::Receiving => "receiving",
        })
    }
}

impl ErrorBoard {
    /// Notes how it went with a peer, and logs it if it is news.
    pub(crate) fn note(&self, peer: &Name, direction: Direction, result: Result<(), String>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = all.entry(peer.clone()).or_default();
        let error = match direction {
            Direction::Sending => &mut entry.errors.sending,
            Direction::Receiving => &mut entry.errors.receiving,
        };
        let new = result.err().map(|sentence| printable(&sentence));
        if *error == new {
            return;
        }
        if let Some(left_out) = entry.rate_limit.now(LINES) {
            match &new {
                Some(cause) => {
                    tracing::warn!(%peer, left_out, "peer {peer}: {direction}: {cause}");
                }
                None => tracing::info!(%peer, left_out, "peer {peer}: {direction}: works again"),
            }
        }
        *error = new;
    }

    /// Forgets peers that are gone.
    pub(super) fn retain(&self, is_peer: impl Fn(&Name) -> bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|name, _| is_peer(name));
    }

    pub(crate) fn of(&self, peer: &Name) -> PeerErrors {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(peer).map(|entry| entry.errors.clone()).unwrap_or_default()
    }
}

/// A sentence without what would disturb a terminal. Some come from a peer.
fn printable(sentence: &str) -> String {
    let is_shown = |letter: &char| !letter.is_control();
    sentence.chars().filter(is_shown).take(MAX_SENTENCE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_peers::{EncodedReports, MessageReader, to_request};
    use lb_sharing::{Ledger, Sharing};

    #[test]
    fn the_latest_message_wins_and_sentences_are_printable() {
        let (own, other) = (Name::new("a").unwrap(), Name::new("b").unwrap());
        let mut sharing = Sharing::start(own.clone(), Ledger::default(), Duration::ZERO, None);
        let mut next = || {
            let (_, message) = sharing.messages(Duration::ZERO, [&other]).remove(0);
            let request = to_request(&message, &EncodedReports::new(&message.groups));
            MessageReader::default().from_request(request).unwrap()
        };
        let (first, second, inbox) = (next(), next(), Inbox::default());
        inbox.put(second.clone());
        inbox.put(first);
        assert_eq!(inbox.take()[&own].message, second);
        assert!(inbox.take().is_empty());
        let board = ErrorBoard::default();
        board.note(&other, Direction::Sending, Err("\u{1b}[31mred\n".into()));
        assert_eq!(board.of(&other).sending.as_deref(), Some("[31mred"));
        board.note(&other, Direction::Sending, Ok(()));
        assert_eq!(board.of(&other), PeerErrors::default());
    }
}
