//! One balancer: the daemon's sharing loop in simulated time. What it decides, and the messages, are the daemon's own code.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result};
use lb_common_fake::limiter::FakeLimiter;
use lb_model::{
    Name,
    capacity::{Capacity, Portion, Share},
};
use lb_peers::{EncodedReports, MessageReader, to_request};
use lb_sharing::{Demand, DemandAverage, Ledger, Message, Parts, ReportedCapacity, Sharing};
use prost::{Message as _, bytes::Bytes};
use spillway_proto::peers::v1::ExchangeRequest;

use crate::{
    cost::{Cost, timed},
    fleet::{Groups, STEP},
};

/// As in the daemon (`sharing_loop.rs`, `loads.rs`): interval of rounds, least time between two, and interval of readings.
const ROUND: Duration = Duration::from_millis(250);
const SHORTEST: Duration = Duration::from_millis(50);
const READING: Duration = Duration::from_millis(100);

/// A group as this balancer sees it.
pub(crate) struct GroupLoad {
    pub(crate) limiter: FakeLimiter,
    /// What the limiter enforces.
    parts: Parts,
    /// Connections a second that clients begin here.
    pub(crate) demand: f64,
    average: DemandAverage,
    refused: u64,
    is_refusing: bool,
}

impl GroupLoad {
    /// Enforces `parts` of a capacity of `per_second` connections.
    fn enforce(&mut self, parts: Parts, per_second: f64, now: Duration) {
        if self.parts == parts {
            return;
        }
        self.parts = parts;
        let Some(portion) = Portion::new(parts.fraction()) else { return };
        let share = Share { portion, tick: STEP.as_nanos() as u64 };
        self.limiter.change_limit(share.group_limit(Capacity::PerSecond(per_second)), now);
    }
}

/// A message on its way, as it travels: encoded where one end is measured.
pub(crate) enum Packet {
    Bytes(Bytes),
    Message(Box<Message>),
}

pub(crate) struct Balancer {
    pub(crate) sharing: Sharing,
    /// In the order of [`Groups::keys`].
    pub(crate) loads: Vec<GroupLoad>,
    /// Whether its messages are encoded and decoded, and its CPU time is taken.
    pub(crate) is_measured: bool,
    pub(crate) cost: Cost,
    reader: MessageReader,
    inbox: BTreeMap<Name, Message>,
    next_round: Duration,
    last_round: Duration,
    next_reading: Duration,
    /// When the write that is under way is done.
    writing: Option<Duration>,
}

impl Balancer {
    pub(crate) fn new(name: Name, first_round: Duration, groups: usize) -> Self {
        let ledger = Ledger { incarnation: 1, ..Ledger::default() };
        let load = || GroupLoad {
            limiter: FakeLimiter::closed(),
            parts: Parts::NONE,
            demand: 0.0,
            average: DemandAverage::default(),
            refused: 0,
            is_refusing: false,
        };
        Self {
            sharing: Sharing::start(name, ledger, Duration::ZERO, None),
            loads: std::iter::repeat_with(load).take(groups).collect(),
            is_measured: false,
            cost: Cost::default(),
            reader: MessageReader::default(),
            inbox: BTreeMap::new(),
            next_round: first_round,
            last_round: Duration::ZERO,
            next_reading: first_round,
            writing: None,
        }
    }

    /// Takes a message from the network. The latest of each peer waits for the next round.
    ///
    /// # Errors
    /// The message cannot be read: both ends are of this program, so it is a mistake of theirs.
    pub(crate) fn deliver(&mut self, packet: Packet) -> Result<()> {
        let message = match packet {
            Packet::Message(message) => *message,
            Packet::Bytes(bytes) => {
                timed(&mut self.cost.receiving, || {
                    let request = ExchangeRequest::decode(bytes)?;
                    self.reader.from_request(request).map_err(anyhow::Error::from)
                })
                .context("a message of a peer")?
                .message
            }
        };
        self.inbox.insert(message.from.clone(), message);
        Ok(())
    }

    /// Lets what is due happen. Returns whether peers have to be told.
    ///
    /// # Errors
    /// What a peer said makes no sense, or the ledger cannot be encoded.
    pub(crate) fn run(&mut self, now: Duration, groups: &Groups) -> Result<bool> {
        let (mut speaks, mut acts) = (false, false);
        if self.writing.is_some_and(|done| done <= now) {
            self.writing = None;
            self.sharing.stored(true);
            speaks = true;
        }
        if self.next_reading <= now {
            self.next_reading = now + READING;
            self.read_counters(now);
        }
        if self.next_round <= now {
            (self.next_round, self.last_round) = (now + ROUND, now);
            let stores = self.round(now, groups)?;
            // What is being stored is told once it is.
            speaks |= !stores;
            acts = true;
        }
        if acts || speaks {
            let Self { sharing, loads, cost, .. } = self;
            let enforced = timed(&mut cost.deciding, || sharing.enforced().collect::<Vec<_>>());
            for ((_, parts), load) in enforced.into_iter().zip(loads) {
                load.enforce(parts, groups.capacity, now);
            }
        }
        Ok(speaks)
    }

    /// As `loads.rs` does: demand, and whether a group begins to refuse.
    fn read_counters(&mut self, now: Duration) {
        for load in &mut self.loads {
            load.average.record(now, load.limiter.offered);
            let refuses = load.limiter.refused() > load.refused;
            if refuses && !load.is_refusing {
                self.next_round = self.next_round.min(self.last_round + SHORTEST).max(now);
            }
            (load.refused, load.is_refusing) = (load.limiter.refused(), refuses);
        }
    }

    /// Decides. Returns whether a ledger is being stored from now on.
    fn round(&mut self, now: Duration, groups: &Groups) -> Result<bool> {
        self.cost.rounds += 1;
        let Self { sharing, loads, cost, inbox, .. } = self;
        timed(&mut cost.receiving, || {
            let mut messages = std::mem::take(inbox).into_values();
            messages.try_for_each(|message| sharing.receive(now, message))
        })?;
        let adopted = sharing.ledger().adopted;
        let ledger = timed(&mut cost.deciding, || {
            for (group, load) in groups.keys.iter().zip(loads) {
                if group.birth <= adopted && load.average.is_measured() {
                    sharing.set_demand(group, demand(load, groups.capacity));
                }
            }
            // What the daemon does in each round although it mostly has no result.
            let _step = sharing.epoch_step(now);
            sharing.round(now)
        });
        if self.writing.is_none()
            && let Some(ledger) = ledger
        {
            let bytes = timed(&mut cost.storing, || serde_json::to_vec(ledger))?;
            cost.writes += 1;
            cost.written += bytes.len() as u64;
            self.writing = Some(now + groups.disk);
            return Ok(true);
        }
        Ok(false)
    }

    /// Messages to peers, in their order, and what all of them say of groups.
    pub(crate) fn messages(
        &mut self,
        now: Duration,
        to: &[Name],
    ) -> (Vec<Message>, EncodedReports) {
        let Self { sharing, cost, .. } = self;
        timed(&mut cost.sending, || {
            let messages = sharing.messages(now, to);
            let messages: Vec<Message> = messages.into_iter().map(|(_, message)| message).collect();
            let reports = messages.first().map(|message| EncodedReports::new(&message.groups));
            (messages, reports.unwrap_or_else(|| EncodedReports::new(&BTreeMap::new())))
        })
    }

    /// Encodes a message as it is sent, and counts it.
    pub(crate) fn encode(&mut self, message: &Message, reports: &EncodedReports) -> Bytes {
        let bytes = timed(&mut self.cost.sending, || to_request(message, reports).encode_to_vec());
        self.cost.messages += 1;
        self.cost.bytes += bytes.len() as u64;
        bytes.into()
    }
}

fn demand(load: &GroupLoad, capacity: f64) -> Demand {
    Demand {
        per_second: load.average.per_second(),
        capacity: ReportedCapacity::PerSecond(capacity),
        may_send: true,
    }
}
