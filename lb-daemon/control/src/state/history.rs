use std::{collections::VecDeque, time::SystemTime};

use super::{PacketPath, State};
use crate::command::{BackendHistory, Refusal, StateChange};
use lb_model::{MemberState, Name};

/// Changes that are kept of each backend.
const KEPT: usize = 16;

/// The last changes of a backend's state, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    changes: VecDeque<StateChange>,
    /// Whether the newest is of before its judge had spoken.
    unjudged: bool,
}

impl History {
    /// Takes a state that holds, and why. One that holds already is no change, but the first word of its
    /// judge says better why it does.
    pub(super) fn take(&mut self, at: SystemTime, state: MemberState, reason: &str, judged: bool) {
        let unjudged = std::mem::replace(&mut self.unjudged, !judged);
        match self.changes.front_mut() {
            Some(newest) if newest.state == state => {
                if unjudged && judged {
                    newest.reason = reason.into();
                }
            }
            _ => {
                self.changes.truncate(KEPT - 1);
                self.changes.push_front(StateChange { at, state, reason: reason.into() });
            }
        }
    }
}

impl<P: PacketPath> State<P> {
    /// What has become of a pool's backends, or of one of them.
    pub(super) fn history(
        &self,
        pool: &str,
        address: Option<&str>,
    ) -> Result<Vec<BackendHistory>, Refusal> {
        self.is_known()?;
        let pools = &self.configuration().pools;
        let found = Name::new(pool).ok().and_then(|name| pools.get_key_value(&name));
        let (name, of) = found.ok_or_else(|| Refusal::NoPool(pool.to_owned()))?;
        let wanted = address.map(|text| text.parse().map_err(|_| text)).transpose();
        let unknown = |address: &str| Refusal::NoBackend(pool.to_owned(), address.to_owned());
        let wanted = wanted.map_err(unknown)?;
        if let Some(address) = wanted.filter(|address| !of.backends.contains_key(address)) {
            return Err(unknown(&address.to_string()));
        }
        let backends = of.backends.keys().filter(|each| wanted.is_none_or(|one| **each == one));
        let histories = backends.filter_map(|address| {
            let member = self.members.get(&(name.clone(), *address))?;
            let changes = member.history.changes.iter().cloned().collect();
            Some(BackendHistory { pool: name.clone(), address: *address, changes })
        });
        Ok(histories.collect())
    }
}
