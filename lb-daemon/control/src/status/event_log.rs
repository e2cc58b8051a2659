//! The last events, from which a watcher that was away can go on.

use std::{collections::VecDeque, sync::Arc};

use crate::command::{Event, MAX_EVENT_OBJECTS, MAX_EVENTS, WatchPosition};

#[derive(Debug)]
pub(super) struct EventLog {
    /// After the last event.
    position: WatchPosition,
    recent: VecDeque<Arc<Event>>,
    /// Objects in them.
    objects: usize,
}

impl EventLog {
    /// Of a new life of the daemon.
    pub(super) fn new() -> Self {
        // Not secret: it only tells lives of daemons apart.
        let position = WatchPosition { life: fastrand::u64(..), number: 0 };
        Self { position, recent: VecDeque::new(), objects: 0 }
    }

    pub(super) fn position(&self) -> WatchPosition {
        self.position
    }

    pub(super) fn add(&mut self, event: Arc<Event>) {
        self.position = self.position.next();
        self.objects += event.objects();
        self.recent.push_back(event);
        while self.recent.len() > MAX_EVENTS || self.objects > MAX_EVENT_OBJECTS {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.objects -= oldest.objects();
        }
    }

    /// The events after a position; `None`: it is of another life, or some of them are no longer there.
    pub(super) fn since(&self, from: WatchPosition) -> Option<Vec<Arc<Event>>> {
        let missed = self.position.number.checked_sub(from.number)?;
        let missed = usize::try_from(missed).ok().filter(|missed| *missed <= self.recent.len())?;
        let is_ours = from.life == self.position.life;
        is_ours.then(|| self.recent.range(self.recent.len() - missed..).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::BackendsEvent;
    use lb_model::Name;

    fn event(objects: usize) -> Arc<Event> {
        let one = (Name::new("web").unwrap(), [10, 0, 0, 1].into());
        let removed = vec![one; objects - 1];
        Event::Backends(BackendsEvent { removed, ..BackendsEvent::default() }).into()
    }

    #[test]
    fn a_watcher_goes_on_from_where_it_was_or_not_at_all() {
        let mut log = EventLog::new();
        let begin = log.position();
        assert_eq!(log.since(begin), Some(vec![]));
        let events = [event(1), event(2), event(3)];
        events.iter().for_each(|event| log.add(Arc::clone(event)));
        assert_eq!(log.since(begin), Some(events.to_vec()));
        assert_eq!(log.since(begin.next().next()), Some(vec![event(3)]));
        assert_eq!(log.since(log.position()), Some(vec![]));
        assert_eq!(log.since(log.position().next()), None, "of the future");
        let other = WatchPosition { life: begin.life ^ 1, ..begin };
        assert_eq!(log.since(other), None, "of another life");
    }

    #[test]
    fn old_events_go_by_their_number_and_by_their_objects() {
        let mut log = EventLog::new();
        let begin = log.position();
        (0..MAX_EVENTS).for_each(|_| log.add(event(1)));
        assert_eq!(log.since(begin).map(|it| it.len()), Some(MAX_EVENTS));
        log.add(event(1));
        assert_eq!(log.since(begin), None);
        assert_eq!(log.since(begin.next()).map(|it| it.len()), Some(MAX_EVENTS));
        let before = log.position();
        log.add(event(MAX_EVENT_OBJECTS - 1));
        assert_eq!(log.since(before).map(|it| it.len()), Some(1));
        log.add(event(2));
        assert_eq!(log.since(before), None);
        assert_eq!(log.since(before.next()).map(|it| it.len()), Some(1));
        // One that is too large alone is not kept either.
        log.add(event(MAX_EVENT_OBJECTS + 1));
        assert_eq!(log.since(before.next().next()), None);
        assert_eq!(log.since(log.position()), Some(vec![]));
    }

    #[test]
    fn a_position_is_a_text_and_other_texts_are_none() {
        let position = WatchPosition { life: 0xab, number: 7 };
        assert_eq!(position.to_string(), "00000000000000ab-7");
        assert_eq!("00000000000000ab-7".parse(), Ok(position));
        for wrong in ["", "-", "7", "x-7", "ab-", "ab-x", "ab--1", "1ffffffffffffffff-1"] {
            assert_eq!(wrong.parse::<WatchPosition>(), Err(()), "{wrong}");
        }
    }
}
