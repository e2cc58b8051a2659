use std::{future::Future, net::IpAddr, time::Duration};

use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{PacketPath, State, demand::SECOND, members::clock, next_hops, now};
use crate::command::Command;
use lb_base::{error_chain, heartbeat::Heartbeat};
use lb_health::HealthChange;
use lb_model::next_hop::NextHop;
use lb_net::{NetChange, NextHopChange};

/// Time between two attempts to bring a packet path that is behind to the plan.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Inbox {
    /// Results of checks.
    pub health: mpsc::Receiver<HealthChange>,
    /// Next hops of backends, and ports of bonds.
    pub network: mpsc::Receiver<NetChange>,
    pub commands: mpsc::Receiver<Command>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopEnd {
    /// It was told to stop, or all senders of commands are gone.
    Stopped,
    /// A sensor ended, which is a defect.
    SensorEnded,
}

impl<P: PacketPath> State<P> {
    /// Runs until `stop` is done. It blocks its thread while it works, so it needs its own. The heartbeat has
    /// its own tick, which comes before all else, and proves only that the loop turns: while the packet path
    /// is behind, a restart would not help.
    pub async fn run(
        mut self,
        mut inbox: Inbox,
        heartbeat: Heartbeat,
        stop: impl Future<Output = ()>,
    ) -> LoopEnd {
        tokio::pin!(stop);
        let mut beat = interval(heartbeat.interval());
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut retry = interval(RETRY_INTERVAL);
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut second = interval(SECOND);
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return LoopEnd::Stopped,
                _ = beat.tick() => heartbeat.beat(),
                change = inbox.health.recv() => match change {
                    Some(change) => self.apply_health_change(&change),
                    None => return LoopEnd::SensorEnded,
                },
                change = inbox.network.recv() => match change {
                    Some(NetChange::NextHop(change)) => self.apply_next_hop_change(change),
                    Some(NetChange::Bonds(bonds)) => self.path.set_bonds(&bonds),
                    None => return LoopEnd::SensorEnded,
                },
                command = inbox.commands.recv() => match command {
                    Some(command) => self.execute(command),
                    None => return LoopEnd::Stopped,
                },
                _ = retry.tick(), if self.behind.is_some() => self.retry_apply(),
                _ = second.tick() => {
                    self.read_counters();
                    self.advance_remaps();
                    self.update_shares();
                }
            }
        }
    }

    fn apply_health_change(&mut self, change: &HealthChange) {
        let key = (change.pool.clone(), change.address);
        let before = self.members.get(&key).map(|member| member.state);
        let Some(state) = self.members.take_health_change(change, now()) else { return };
        // Writes maps before announcing, and sets the slow-start share before marking the member up.
        let pool = Self::in_force(&self.store).pools.get(&change.pool);
        if let Some(pool) = pool {
            self.members.write_ramps(&change.pool, pool, &mut self.path, clock());
        }
        self.path.set_state(&change.pool, change.address, state.accepts());
        if let Some(pool) = pool {
            self.members.write_last_resorts(&change.pool, pool, &mut self.path);
        }
        let (from, to) = (before.map_or("unknown", |state| state.name()), state.name());
        if from != to {
            self.log_backend((&change.pool, change.address), from, to, &change.reason);
        }
        self.announce_backend(&key);
    }

    fn apply_next_hop_change(&mut self, change: NextHopChange) {
        let NextHopChange { address, hop } = change;
        let hop = hop.map_err(|why| error_chain::message(&why));
        let hop = next_hops::check_direct(Self::in_force(&self.store), address, hop);
        // After each configuration the sensors report everything again, mostly unchanged.
        if self.next_hops.get(&address) != Some(&hop) {
            self.set_next_hop(address, hop);
        }
    }

    /// Writes a backend's next hop and announces the change.
    pub(super) fn set_next_hop(&mut self, address: IpAddr, mut hop: Result<NextHop, String>) {
        if let Err(error) = self.path.set_next_hop(address, hop.as_ref().ok().copied()) {
            hop = Err(error_chain::message(&error));
            // The previous next hop is no longer valid either.
            if let Err(error) = self.path.set_next_hop(address, None) {
                tracing::error!(
                    backend = %address,
                    error = error_chain::message(&error),
                    "backend {address}: its next hop cannot be written"
                );
            }
        }
        match &hop {
            Ok(hop) => tracing::debug!(backend = %address, ?hop, "next hop"),
            Err(why) => {
                tracing::warn!(backend = %address, why, "backend {address}: no next hop: {why}");
            }
        }
        self.next_hops.insert(address, hop);
        self.check_path(address);
        for pool in self.members.pools_of(&address) {
            self.announce_backend(&(pool.clone(), address));
        }
    }

    fn execute(&mut self, command: Command) {
        // The caller hung up or its deadline is over, and it was told that the outcome is unknown.
        if command.is_abandoned() {
            tracing::debug!("a command is skipped: its caller is gone");
            return;
        }
        match command {
            Command::Apply(apply, mut change, reply) => {
                let result = self.apply(*apply, &mut change);
                if let Some(change) = change {
                    change.finished(&result);
                }
                drop(reply.send(result));
            }
            Command::Export(reply) => drop(reply.send(self.export())),
            Command::Status(reply) => drop(reply.send(self.status())),
            Command::Condition(reply) => drop(reply.send(self.condition())),
            Command::Regions(pool, reply) => drop(reply.send(self.regions(pool.as_deref()))),
            Command::History { pool, address, reply } => {
                drop(reply.send(self.history(&pool, address.as_deref())));
            }
            Command::Watch(reply) => drop(reply.send(self.watch())),
        }
    }

    fn retry_apply(&mut self) {
        if let Err(error) = self.catch_up() {
            // A higher level would log every second; the condition is logged once.
            tracing::debug!(
                error = error_chain::message(&error),
                "the packet path is still behind"
            );
        }
    }
}
