//! What is known of each backend in each pool: its state, why, and since when.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    net::IpAddr,
    time::{Instant, SystemTime},
};

use lb_common::abi::member::Accepts;

use super::{PacketPath, history::History, homes::clock};
use lb_health::{AgentReport, Health, HealthChange};
use lb_model::{Configuration, Name, Pool, WantedState};

/// A backend in a pool.
pub(super) type Key = (Name, IpAddr);

/// Its state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) state: Accepts,
    pub(super) reason: String,
    pub(super) since: SystemTime,
    pub(super) judge: Judge,
    /// Whether the judge has spoken; until then what is known is what the packet path had.
    pub(super) judged: bool,
    /// What is known of it, whether it is drained or not, and why.
    known: (Accepts, String),
    /// Whether it has had connections, as far as is known: who never passed has none to keep.
    has_served: bool,
    /// Whether the operator wants no new connections there.
    drained: bool,
    /// What it says of itself, as far as its checks hear it.
    pub(super) report: AgentReport,
    /// What its utilisation makes its share; `None`: nobody of its group has said one.
    pub(super) balance: Option<f64>,
    /// What the packet path was told of its being a last resort.
    pub(super) last_resort: Option<bool>,
    /// When it came up, if this daemon saw it.
    pub(super) up_since: Option<Instant>,
    /// What the packet path was told of its share of new connections.
    pub(super) ramp: Option<u8>,
    /// What has become of it.
    pub(super) history: History,
}

/// Whose word a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judge {
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
    /// By pool and address.
    members: BTreeMap<Name, BTreeMap<IpAddr, Member>>,
    pools: HashMap<IpAddr, Vec<Name>>,
    /// Pools some of whose backends say something of themselves, or whose shares still show it.
    pub(super) saying: BTreeSet<Name>,
    /// When shares were last made to follow utilisation.
    pub(super) balanced_at: Option<Instant>,
}

impl Members {
    pub(super) fn get(&self, (pool, address): &Key) -> Option<&Member> {
        self.of_pool(pool)?.get(address)
    }

    pub(super) fn get_mut(&mut self, (pool, address): &Key) -> Option<&mut Member> {
        self.members.get_mut(pool)?.get_mut(address)
    }

    /// The members of a pool, by address.
    pub(super) fn of_pool(&self, pool: &Name) -> Option<&BTreeMap<IpAddr, Member>> {
        self.members.get(pool)
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
        let previous = mem::take(self);
        self.balanced_at = previous.balanced_at;
        let mut previous = previous.members;
        let mut changed = Vec::new();
        for (name, pool) in &configuration.pools {
            let mut previous = previous.remove(name).unwrap_or_default();
            let mut members = BTreeMap::new();
            for (address, backend) in &pool.backends {
                let before = previous.remove(address);
                let mut member = match before.clone() {
                    Some(before) => before,
                    None => Member::new(path.state(name, *address), now),
                };
                member.judged_by(judge(pool, backend.wanted));
                member.drained = backend.wanted == WantedState::Drain;
                member.settle(now);
                if before.as_ref() != Some(&member) {
                    changed.push((name.clone(), *address));
                }
                if !member.report.is_nothing() || member.balance.is_some() {
                    self.saying.insert(name.clone());
                }
                members.insert(*address, member);
                self.pools.entry(*address).or_default().push(name.clone());
            }
            self.members.insert(name.clone(), members);
        }
        changed
    }

    /// Makes the packet path agree; but what nobody has spoken on is as the packet path has it.
    pub(super) fn agree(&mut self, path: &mut impl PacketPath, now: SystemTime) {
        let members = self.members.iter_mut();
        let members =
            members.flat_map(|(pool, members)| members.iter_mut().map(move |m| (pool, m)));
        for (pool, (address, member)) in members {
            let Some(state) = path.state(pool, *address) else { continue };
            if state != member.state && !member.judged {
                member.find(state);
                member.settle(now);
                member.up_since = None;
            }
            if state != member.state {
                path.set_state(pool, *address, member.state);
            }
        }
    }

    /// Takes what checks say; the state, if that is news.
    pub(super) fn judged(&mut self, change: &HealthChange, now: SystemTime) -> Option<Accepts> {
        let of_pool = self.members.get_mut(&change.pool)?;
        // A word on what was removed or disabled meanwhile is void.
        let member = of_pool.get_mut(&change.address)?;
        if member.judge != Judge::Checks {
            return None;
        }
        member.judged |= change.undecided.is_none();
        member.hear(change);
        if !member.report.is_nothing() && !self.saying.contains(&change.pool) {
            self.saying.insert(change.pool.clone());
        }
        member.settle(now).then_some(member.state)
    }
}

/// Whether a backend is judged by checks, and so must be probed.
pub(super) fn is_checked(pool: &Pool, wanted: WantedState) -> bool {
    judge(pool, wanted) == Judge::Checks
}

fn judge(pool: &Pool, wanted: WantedState) -> Judge {
    match wanted {
        WantedState::Disabled => Judge::Operator,
        // One that is drained is still asked whether it lives.
        _ if pool.health_checks.is_empty() => Judge::Nobody,
        _ => Judge::Checks,
    }
}

impl Member {
    /// A backend of which this daemon knows nothing but its state in the packet path.
    fn new(there: Option<Accepts>, now: SystemTime) -> Self {
        let mut member = Self {
            state: there.unwrap_or(Accepts::Nothing),
            reason: String::new(),
            since: now,
            judge: Judge::Checks,
            judged: false,
            known: (Accepts::Nothing, String::new()),
            has_served: false,
            drained: false,
            report: AgentReport::default(),
            balance: None,
            last_resort: None,
            up_since: None,
            ramp: None,
            history: History::default(),
        };
        member.find(there.unwrap_or(Accepts::Nothing));
        member
    }

    fn find(&mut self, state: Accepts) {
        let reason = match state {
            Accepts::Nothing => "not checked yet",
            _ => "as before the daemon's start, not checked yet",
        };
        self.has_served = state != Accepts::Nothing;
        self.known = (state, reason.into());
    }

    /// Takes what its checks say. Where the host lives its connections stay, if it can have any; while a
    /// row of failures has only begun, all stays as it is.
    fn hear(&mut self, change: &HealthChange) {
        let reason = change.reason.clone();
        self.report = change.report.clone();
        self.has_served |= change.health == Health::Passing;
        if let Some(row) = change.undecided.filter(|_| self.has_served) {
            self.known.1 = format!("{reason} ({row})");
            return;
        }
        self.known = match change.health {
            Health::Passing => (Accepts::All, reason),
            Health::Failing if self.has_served => (Accepts::OpenOnly, reason),
            Health::Failing => {
                (Accepts::Nothing, format!("{reason} (takes nothing until it passes)"))
            }
            Health::Silent => (Accepts::Nothing, reason),
        };
    }

    fn judged_by(&mut self, judge: Judge) {
        if self.judge == judge {
            return;
        }
        self.judge = judge;
        self.report = AgentReport::default();
        self.judged = judge != Judge::Checks;
        let (state, reason) = match judge {
            Judge::Operator => (Accepts::Nothing, "disabled"),
            Judge::Nobody => (Accepts::All, "no checks"),
            Judge::Checks => (self.known.0, "not checked yet"),
        };
        // Who was disabled comes back as a new one: its connections have moved.
        self.has_served = state != Accepts::Nothing;
        self.known = (state, reason.into());
    }

    /// Whether the operator, or it itself, wants no new connections there.
    pub(super) fn is_drained(&self) -> bool {
        self.drained || self.report.drain.is_some()
    }

    /// Whether it may have new connections as soon as the operator wants it to. Of one that was
    /// disabled nothing is known: it may.
    pub(super) fn may_serve(&self) -> bool {
        let healthy = self.known.0 == Accepts::All && self.report.drain.is_none();
        healthy || self.judge == Judge::Operator
    }

    /// Makes the state what follows from what is known; whether that is news.
    fn settle(&mut self, now: SystemTime) -> bool {
        let (state, reason) = match (&self.known, &self.report.drain) {
            ((Accepts::All, _), _) if self.drained => (Accepts::OpenOnly, "drained".into()),
            ((Accepts::All, _), Some(why)) => (Accepts::OpenOnly, format!("drained: {why}")),
            ((state, reason), _) => (*state, reason.clone()),
        };
        let reason = reason.as_str();
        let news = self.state != state || self.reason != reason;
        if self.state != state {
            self.since = now;
            self.up_since = (state == Accepts::All).then(clock);
        }
        self.history.take(now, state, reason, self.judged);
        (self.state, self.reason) = (state, reason.into());
        news
    }
}
