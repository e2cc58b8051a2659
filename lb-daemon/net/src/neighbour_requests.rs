//! Whom to ask for, and when again.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::time::Instant;

use super::neighbour::NeighbourKey;

/// From the first asking to the second.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Longest time between two; the kernel sends three requests, a second apart, for each.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// Neighbours that the kernel must be told to ask for.
#[derive(Debug, Default)]
pub(super) struct NeighbourRequests {
    asks: HashMap<NeighbourKey, Ask>,
    due: BTreeSet<(Instant, NeighbourKey)>,
}

#[derive(Debug)]
struct Ask {
    due: Instant,
    wait: Duration,
    /// Why the kernel would not, the last time.
    refused: Option<String>,
}

impl NeighbourRequests {
    /// NeighbourRequests for it, now and again, until [`NeighbourRequests::end`].
    pub(super) fn begin(&mut self, key: NeighbourKey, now: Instant) {
        self.asks.entry(key).or_insert_with(|| {
            self.due.insert((now, key));
            Ask { due: now, wait: FIRST_WAIT, refused: None }
        });
    }

    /// NeighbourRequests no more.
    pub(super) fn end(&mut self, key: NeighbourKey) {
        if let Some(ask) = self.asks.remove(&key) {
            self.due.remove(&(ask.due, key));
        }
    }

    /// Whom to ask for at `now`; each is due again after twice the wait before.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<NeighbourKey> {
        let mut keys = Vec::new();
        while let Some((due, key)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, key));
            let Some(ask) = self.asks.get_mut(&key) else { continue };
            ask.due = now + ask.wait;
            ask.wait = (2 * ask.wait).min(LONGEST_WAIT);
            self.due.insert((ask.due, key));
            keys.push(key);
        }
        keys
    }

    /// When somebody is due next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// How the asking itself went; true if that is news.
    pub(super) fn asked(&mut self, key: NeighbourKey, refused: Option<String>) -> bool {
        let Some(ask) = self.asks.get_mut(&key) else { return false };
        let news = ask.refused != refused;
        ask.refused = refused;
        news
    }

    /// Why the kernel will not ask.
    pub(super) fn refused(&self, key: NeighbourKey) -> Option<&str> {
        self.asks.get(&key)?.refused.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last: u8) -> NeighbourKey {
        NeighbourKey { interface: 2, address: [192, 0, 2, last].into() }
    }

    #[tokio::test]
    async fn asking_becomes_more_and_more_seldom_until_it_ends() {
        let mut asks = NeighbourRequests::default();
        let start = Instant::now();
        asks.begin(key(1), start);
        let mut times = Vec::new();
        while times.len() < 7 {
            let now = asks.next_due().unwrap();
            assert_eq!(asks.take_due(now), [key(1)]);
            asks.begin(key(1), now);
            times.push((now - start).as_secs());
        }
        assert_eq!(times, [0, 1, 3, 7, 15, 23, 31]);
        asks.end(key(1));
        assert_eq!(asks.next_due(), None);
        asks.begin(key(1), start);
        assert_eq!(asks.next_due(), Some(start), "anew");
    }

    #[tokio::test]
    async fn only_those_due_are_asked_for() {
        let mut asks = NeighbourRequests::default();
        let start = Instant::now();
        let later = start + Duration::from_millis(500);
        asks.begin(key(1), start);
        asks.begin(key(2), later);
        assert_eq!(asks.take_due(start), [key(1)]);
        assert_eq!(asks.take_due(start), []);
        assert_eq!(asks.take_due(start + FIRST_WAIT), [key(2), key(1)]);
    }
}
