//! What is known of each backend in each pool: its state, why, and since when.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    net::IpAddr,
    time::SystemTime,
};

use lb_common::abi::member::MemberState;

use super::PacketPath;
use crate::{
    health::HealthChange,
    model::{Configuration, Name, Pool, WantedState},
};

/// A backend in a pool.
pub(super) type Key = (Name, IpAddr);

/// Its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) state: MemberState,
    pub(super) reason: String,
    pub(super) since: SystemTime,
    judge: Judge,
    /// Whether the judge has spoken; until then the state is what the packet path had.
    judged: bool,
}

/// Whose word a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    /// The operator's, who disabled it.
    Operator,
    /// Nobody's: its pool has no checks.
    Nobody,
    /// That of its checks, or of what was there before their first answer.
    Checks,
}

/// All backends of all pools.
#[derive(Debug, Default)]
pub(super) struct Members {
    members: BTreeMap<Key, Member>,
    pools: HashMap<IpAddr, Vec<Name>>,
}

impl Members {
    pub(super) fn get(&self, key: &Key) -> Option<&Member> {
        self.members.get(key)
    }

    /// Pools that have an address, by name.
    pub(super) fn pools_of(&self, address: &IpAddr) -> &[Name] {
        self.pools.get(address).map_or(&[], Vec::as_slice)
    }

    /// Takes over what a configuration says of backends; `path` knows those that an earlier daemon
    /// left. Returns those that are new or changed.
    pub(super) fn configure(
        &mut self,
        configuration: &Configuration,
        path: &impl PacketPath,
        now: SystemTime,
    ) -> Vec<Key> {
        let mut former = mem::take(self).members;
        let mut changed = Vec::new();
        for (name, pool) in &configuration.pools {
            for (address, backend) in &pool.backends {
                let key = (name.clone(), *address);
                let before = former.remove(&key);
                let judge = judge(pool, backend.wanted);
                let member = match before.clone() {
                    Some(before) => before.judged_by(judge, now),
                    None => Member::new(judge, path.state(name, *address), now),
                };
                if before.as_ref() != Some(&member) {
                    changed.push(key.clone());
                }
                self.members.insert(key, member);
                self.pools.entry(*address).or_default().push(name.clone());
            }
        }
        changed
    }

    /// Makes the packet path agree; but a state on which nobody has spoken is the packet path's.
    pub(super) fn agree(&mut self, path: &mut impl PacketPath) {
        for ((pool, address), member) in &mut self.members {
            match path.state(pool, *address) {
                Some(state) if state == member.state => {}
                Some(_) if member.judged => {
                    path.set_state(pool, *address, member.state);
                }
                Some(state) => member.find(state),
                None => {}
            }
        }
    }

    /// Takes what checks say; the state, if that is news.
    pub(super) fn judged(&mut self, change: &HealthChange, now: SystemTime) -> Option<MemberState> {
        let key = (change.pool.clone(), change.address);
        // A word on what was removed or disabled meanwhile is void.
        let member = self.members.get_mut(&key).filter(|member| member.judge == Judge::Checks)?;
        let state = if change.healthy { MemberState::Up } else { MemberState::Dead };
        if member.state == state && member.reason == change.reason {
            return None;
        }
        member.judged = true;
        member.become_state(state, change.reason.clone(), now);
        Some(state)
    }
}

/// Whether a backend is judged by checks, and so must be probed.
pub(super) fn is_checked(pool: &Pool, wanted: WantedState) -> bool {
    judge(pool, wanted) == Judge::Checks
}

fn judge(pool: &Pool, wanted: WantedState) -> Judge {
    match wanted {
        WantedState::Disabled => Judge::Operator,
        WantedState::Active if pool.health_checks.is_empty() => Judge::Nobody,
        WantedState::Active => Judge::Checks,
    }
}

impl Member {
    /// A backend of which this daemon knows nothing but its state in the packet path.
    fn new(judge: Judge, there: Option<MemberState>, now: SystemTime) -> Self {
        let (state, reason) = (MemberState::Dead, String::new());
        let mut member = Self { state, reason, since: now, judge: Judge::Checks, judged: false };
        member.find(there.unwrap_or(MemberState::Dead));
        member.judged_by(judge, now)
    }

    fn find(&mut self, state: MemberState) {
        self.state = state;
        self.reason = match state {
            MemberState::Dead => "not checked yet".into(),
            _ => "as before the daemon's start, not checked yet".into(),
        };
    }

    fn judged_by(mut self, judge: Judge, now: SystemTime) -> Self {
        let before = mem::replace(&mut self.judge, judge);
        match (before, judge) {
            (_, Judge::Operator) => self.become_state(MemberState::Dead, "disabled".into(), now),
            (_, Judge::Nobody) => self.become_state(MemberState::Up, "no checks".into(), now),
            (Judge::Checks, Judge::Checks) => return self,
            (_, Judge::Checks) => self.become_state(self.state, "not checked yet".into(), now),
        }
        self.judged = judge != Judge::Checks;
        self
    }

    fn become_state(&mut self, state: MemberState, reason: String, now: SystemTime) {
        if self.state != state {
            self.since = now;
        }
        (self.state, self.reason) = (state, reason);
    }
}
