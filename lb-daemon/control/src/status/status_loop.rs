use std::future::Future;

use super::StatusLoop;
use crate::{command::Query, members::clock};
use lb_base::{
    background::lower_thread_priority,
    heartbeat::Heartbeat,
    loops::{LoopEnd, SECOND, ticks},
};
use lb_publish::reconcile::PathReader;

impl<R: PathReader> StatusLoop<R> {
    /// Runs on a thread of its own, of lower priority, until `stop` is done or the other loops are gone. Updates come before
    /// questions, so that an answer shows what the one who asks may know of.
    pub async fn run(mut self, heartbeat: Heartbeat, stop: impl Future<Output = ()>) -> LoopEnd {
        lower_thread_priority();
        tokio::pin!(stop);
        let (mut beat, mut second) = (ticks(heartbeat.interval()), ticks(SECOND));
        let counters = self.settings.loop_counters.status.clone();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => {
                    self.show_hold_downs();
                    return LoopEnd::Stopped;
                }
                _ = beat.tick() => heartbeat.beat(),
                update = self.updates.recv() => match update {
                    Some(update) => {
                        let _turn = counters.turn();
                        self.take(update);
                    }
                    None => return LoopEnd::Stopped,
                },
                // Before questions: of those there may always be another one.
                _ = second.tick(), if self.known.has_begun => {
                    let _turn = counters.turn();
                    self.announcements.expire(clock());
                    self.read_counters();
                    self.show_hold_downs();
                }
                query = self.queries.recv(), if self.known.has_begun => match query {
                    Some(query) => {
                        let _turn = counters.turn();
                        self.answer(query);
                    }
                    None => return LoopEnd::Stopped,
                },
            }
        }
    }

    fn answer(&mut self, query: Query) {
        // The caller hung up or its deadline is over.
        if query.is_abandoned() {
            tracing::debug!("a question is skipped: its caller is gone");
            return;
        }
        match query {
            Query::Export(reply) => drop(reply.send(self.export())),
            Query::Status(reply) => drop(reply.send(self.status())),
            Query::Condition(reply) => drop(reply.send(self.condition())),
            Query::TableDigests(reply) => drop(reply.send(self.table_digests())),
            Query::Regions(pool, reply) => drop(reply.send(self.regions(pool.as_deref()))),
            Query::Backend { pool, address, reply } => {
                drop(reply.send(self.one_backend(&pool, &address)));
            }
            Query::History { pool, address, reply } => {
                drop(reply.send(self.known.history(&pool, address.as_deref())));
            }
            Query::Overrides(reply) => drop(reply.send(self.known.overrides.clone())),
            Query::Generations(reply) => drop(reply.send(self.known.in_force.generations())),
            Query::Generation(number, reply) => self.read_generation(number, reply),
            Query::Difference { from, to, reply } => self.compare_generations(from, to, reply),
            Query::Watch(from, reply) => drop(reply.send(self.watch(from))),
            Query::WatchAgain(reply) => drop(reply.send(self.watch_again())),
        }
    }
}
