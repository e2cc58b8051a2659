//! Which neighbours the kernel has to resolve, and when to request it again.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::time::Instant;

use super::neighbour::NeighbourKey;

/// Time from the first request to the second.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Longest time between two requests; the kernel sends three packets, a second apart, for each.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// Pending requests, with exponential backoff.
#[derive(Debug, Default)]
pub(super) struct NeighbourRequests {
    requests: HashMap<NeighbourKey, Request>,
    due: BTreeSet<(Instant, NeighbourKey)>,
}

#[derive(Debug)]
struct Request {
    due: Instant,
    wait: Duration,
    /// Why the kernel refused the last request.
    refused: Option<String>,
}

impl NeighbourRequests {
    /// Requests a neighbour now, and again until [`NeighbourRequests::end`].
    pub(super) fn begin(&mut self, key: NeighbourKey, now: Instant) {
        self.requests.entry(key).or_insert_with(|| {
            self.due.insert((now, key));
            Request { due: now, wait: FIRST_WAIT, refused: None }
        });
    }

    /// Stops requesting a neighbour.
    pub(super) fn end(&mut self, key: NeighbourKey) {
        if let Some(request) = self.requests.remove(&key) {
            self.due.remove(&(request.due, key));
        }
    }

    /// Takes the neighbours that are due at `now`. Each is due again after twice its last wait.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<NeighbourKey> {
        let mut keys = Vec::new();
        while let Some((due, key)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, key));
            let Some(request) = self.requests.get_mut(&key) else { continue };
            request.due = now + request.wait;
            request.wait = (2 * request.wait).min(LONGEST_WAIT);
            self.due.insert((request.due, key));
            keys.push(key);
        }
        keys
    }

    /// When the next request is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Stores the kernel's answer to a request; true if it changed.
    pub(super) fn set_refused(&mut self, key: NeighbourKey, refused: Option<String>) -> bool {
        let Some(request) = self.requests.get_mut(&key) else { return false };
        let changed = request.refused != refused;
        request.refused = refused;
        changed
    }

    /// Why the kernel refuses to resolve a neighbour.
    pub(super) fn refused(&self, key: NeighbourKey) -> Option<&str> {
        self.requests.get(&key)?.refused.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last: u8) -> NeighbourKey {
        NeighbourKey { interface: 2, address: [192, 0, 2, last].into() }
    }

    #[tokio::test]
    async fn requests_back_off_until_they_end() {
        let mut requests = NeighbourRequests::default();
        let start = Instant::now();
        requests.begin(key(1), start);
        let mut times = Vec::new();
        while times.len() < 7 {
            let now = requests.next_due().unwrap();
            assert_eq!(requests.take_due(now), [key(1)]);
            requests.begin(key(1), now);
            times.push((now - start).as_secs());
        }
        assert_eq!(times, [0, 1, 3, 7, 15, 23, 31]);
        requests.end(key(1));
        assert_eq!(requests.next_due(), None);
        requests.begin(key(1), start);
        assert_eq!(requests.next_due(), Some(start), "anew");
    }

    #[tokio::test]
    async fn only_due_neighbours_are_requested() {
        let mut requests = NeighbourRequests::default();
        let start = Instant::now();
        let later = start + Duration::from_millis(500);
        requests.begin(key(1), start);
        requests.begin(key(2), later);
        assert_eq!(requests.take_due(start), [key(1)]);
        assert_eq!(requests.take_due(start), []);
        assert_eq!(requests.take_due(start + FIRST_WAIT), [key(2), key(1)]);
    }
}
