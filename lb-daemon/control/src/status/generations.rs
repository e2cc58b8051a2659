//! Answers about the history. Old generations are read and compared beside the loop.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{InForce, StatusLoop};
use crate::command::{Difference, Refusal};
use lb_base::background;
use lb_model::{
    Configuration, Name,
    diff::{self, TableDiffs},
};
use lb_publish::reconcile::PathReader;
use lb_store::{GenerationReader, HistoryEntry, ReadError};

/// Questions that read generations at a time. Others wait, so that a disk that does not answer holds few threads.
pub(super) const AT_A_TIME: usize = 2;

/// Finds the configurations of generations.
struct Generations {
    in_force: Arc<InForce>,
    reader: GenerationReader,
}

impl Generations {
    /// May wait for the disk.
    fn read(&self, number: u64) -> Result<Arc<Configuration>, Refusal> {
        let InForce { generation, configuration, unusable, history, .. } = &*self.in_force;
        if number == *generation && number > 0 {
            return match unusable {
                None => Ok(Arc::clone(configuration)),
                Some(unusable) => {
                    let cause = unusable.cause.clone();
                    Err(Refusal::UnusableGeneration { number, cause })
                }
            };
        }
        let mut known = history.iter().filter(|entry| entry.number == number);
        if !known.clone().any(|entry| !entry.is_before_fleet) {
            return Err(match known.next() {
                Some(_) => Refusal::BeforeFleet(number),
                None => Refusal::NoGeneration(number),
            });
        }
        match self.reader.read(number) {
            Ok(mut read) => {
                // So that equal pools take no time.
                read.share_pools(configuration);
                Ok(Arc::new(read))
            }
            Err(ReadError::NotKept) => Err(Refusal::NoGeneration(number)),
            Err(ReadError::Unusable(cause)) => Err(Refusal::UnusableGeneration { number, cause }),
            Err(ReadError::Store(error)) => Err(Refusal::UnreadGeneration(error)),
        }
    }

    fn compare(&self, from: u64, to: u64, own: Option<&Name>) -> Result<Difference, Refusal> {
        let (before, after) = (self.read(from)?, self.read(to)?);
        let diffs = TableDiffs::new(&before, &after, &diff::owners);
        let own_key = self.in_force.hash_key;
        Ok(Difference {
            from,
            to,
            changes: diff::between(&before, &after, &diffs),
            movements: diff::movements(&before, &after, own, own_key, &diffs),
        })
    }
}

impl InForce {
    /// The last generations, by number, after those from before the fleet; the one in force is the last.
    pub(super) fn generations(&self) -> Vec<HistoryEntry> {
        let InForce { history, unusable, .. } = self;
        let mut entries = history.to_vec();
        if let (Some(unusable), Some(last)) = (unusable, entries.last_mut())
            && last.number == unusable.number
        {
            last.unusable = Some(unusable.cause.clone());
        }
        entries
    }
}

impl<R: PathReader> StatusLoop<R> {
    pub(super) fn read_generation(
        &self,
        number: u64,
        reply: oneshot::Sender<Result<Arc<Configuration>, Refusal>>,
    ) {
        self.read_beside(reply, move |generations| generations.read(number));
    }

    pub(super) fn compare_generations(
        &self,
        from: u64,
        to: Option<u64>,
        reply: oneshot::Sender<Result<Difference, Refusal>>,
    ) {
        let (own, to) =
            (self.settings.region.clone(), to.unwrap_or(self.known.in_force.generation));
        self.read_beside(reply, move |generations| generations.compare(from, to, own.as_ref()));
    }

    fn read_beside<T: Send + 'static>(
        &self,
        reply: oneshot::Sender<Result<T, Refusal>>,
        read: impl FnOnce(&Generations) -> Result<T, Refusal> + Send + 'static,
    ) {
        let in_force = Arc::clone(&self.known.in_force);
        let generations = Generations { reader: in_force.reader.clone(), in_force };
        let reading = Arc::clone(&self.reading);
        tokio::spawn(async move {
            // Never closed.
            let permit = reading.acquire_owned().await;
            if reply.is_closed() {
                return;
            }
            let result = background::run(move || {
                let _until_read = permit;
                read(&generations)
            });
            drop(reply.send(result.await.unwrap_or_else(|error| Err(Refusal::Thread(error)))));
        });
    }
}
