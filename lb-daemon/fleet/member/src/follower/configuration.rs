//! Puts in force the fleet's configuration, on top of the homes from before the last changes if the maps do not know them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lb_base::{
    conditions::{Conditions, FLEET_CONFIGURATION},
    error_chain,
};
use lb_config::Reason;
use lb_control::{
    command::{Actor, Apply, Commands, Refusal, Stopping},
    state::{MarkOutDecision, MarkOutDecisions},
};
use lb_fleet::{
    DocumentError, EtcdError, Fleet,
    commit::Committed,
    documents::{Generation, WallTime},
    history::GenerationReader,
    reader::Snapshot,
};
use lb_model::{Configuration, Name};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{RETRY, RefusedGeneration, in_force::Shown, progress::Part, rebuild};
use crate::{sharing::SharingHandle, wall_clock};

/// Longest wait before that: each attempt computes a plan.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Longest wait for the portions of a generation's new groups. After it they are closed until they are known.
const PORTIONS: Duration = Duration::from_secs(2);

/// When a generation that could not be put in force is tried again.
#[derive(Debug, Default)]
pub(super) struct Retry {
    /// `mod_revision` of `config/current`, when to try it again, and how long to wait after that.
    last: Option<(i64, Instant, Duration)>,
}

impl Retry {
    fn is_due(&self, mod_revision: i64) -> bool {
        self.last.is_none_or(|(tried, at, _)| tried != mod_revision || Instant::now() >= at)
    }

    fn note_failure(&mut self, mod_revision: i64) {
        let wait = match self.last {
            Some((tried, _, wait)) if tried == mod_revision => (wait * 2).min(LONGEST_RETRY),
            _ => RETRY,
        };
        self.last = Some((mod_revision, Instant::now() + wait, wait));
    }
}

/// Puts the configuration of etcd in force. It waits for the disk, and so for nothing that others wait for.
pub(crate) struct ConfigurationFollower {
    pub(super) commands: Commands,
    pub(super) conditions: Conditions,
    pub(super) homes: MarkOutDecisions,
    pub(super) sharing: SharingHandle,
    pub(super) fleet: watch::Receiver<Option<Fleet>>,
    pub(super) region: Option<Name>,
    /// The maps do not know what home meant before the last change.
    pub(super) must_rebuild: bool,
    /// Whether that is being put in force, or will be.
    pub(super) is_rebuilding: watch::Sender<bool>,
    pub(super) retry: Retry,
    pub(super) shown: Shown,
    pub(super) part: Part,
}

impl ConfigurationFollower {
    /// Runs until the daemon stops.
    pub(crate) async fn run(mut self) {
        while let Some(offer) = self.part.next().await {
            let Ok(is_in_force) = self.follow(&offer.snapshot).await else { return };
            self.is_rebuilding.send_replace(false);
            match is_in_force {
                true => self.part.put_in_force(offer),
                false => self.part.retry_after(RETRY),
            }
        }
    }

    /// Returns whether the generation of etcd is in force.
    async fn follow(&mut self, snapshot: &Snapshot) -> Result<bool, Stopping> {
        if let Some(error) = &snapshot.configuration_error {
            let is_newer = matches!(error, DocumentError::Newer { .. });
            self.refuse(snapshot, &error.to_string(), is_newer);
            return Ok(false);
        }
        // Until the fleet has one, limits stay as they are: nobody owns anything.
        let Some(shared) = &snapshot.configuration else { return Ok(true) };
        let generation = &shared.committed.document.body;
        let number = generation.number;
        if self.shown.in_force.borrow().generation == number && !self.must_rebuild {
            self.conditions.end(&FLEET_CONFIGURATION);
            self.shown.update(|in_force| in_force.refused = None);
            return Ok(true);
        }
        let mod_revision = shared.committed.mod_revision;
        if !self.retry.is_due(mod_revision) {
            return Ok(false);
        }
        let decoded = match lb_store::decode_shared(&shared.bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.retry.note_failure(mod_revision);
                self.refuse(snapshot, &error_chain::message(&error), error.is_newer());
                return Ok(false);
            }
        };
        // The portions of new groups have to be in force before packets see them. A change without new groups waits for no round
        // and for no write of the ledger, which were most of its time.
        let newest = generation.births.values().flat_map(BTreeMap::values).max();
        let newest = newest.copied().unwrap_or(0);
        // With an epoch open, or a disk that does not answer, its portions of new groups are not there yet.
        if timeout(PORTIONS, self.sharing.adopted(newest)).await.is_err()
            && timeout(PORTIONS, self.sharing.enforced(newest)).await.is_err()
        {
            tracing::warn!("the portions of generation {number} are not in force in time");
        }
        if self.must_rebuild {
            self.rebuild(snapshot, generation, &decoded).await?;
        }
        match self.apply(generation, decoded).await? {
            Ok(()) => {
                self.must_rebuild = false;
                self.conditions.end(&FLEET_CONFIGURATION);
                self.shown.update(|in_force| {
                    in_force.generation = number;
                    in_force.refused = None;
                });
                Ok(true)
            }
            Err(cause) => {
                self.retry.note_failure(mod_revision);
                self.refuse(snapshot, &cause, false);
                Ok(false)
            }
        }
    }

    fn refuse(&self, snapshot: &Snapshot, cause: &str, is_newer: bool) {
        let current = snapshot.configuration.as_ref();
        let number = current.map_or(0, |it| it.committed.document.body.number);
        let sentence = match number {
            0 => format!("the configuration of the fleet is not in force here: {cause}"),
            number => format!("generation {number} of the fleet is not in force here: {cause}"),
        };
        self.conditions.begin(&FLEET_CONFIGURATION, &sentence);
        let refused = RefusedGeneration { generation: number, cause: cause.to_owned(), is_newer };
        self.shown.update(|in_force| in_force.refused = Some(refused));
    }

    /// Puts in force the homes from before the last changes. If it cannot, flows that they placed may break, and no others.
    async fn rebuild(
        &self,
        snapshot: &Snapshot,
        generation: &Generation,
        present: &Configuration,
    ) -> Result<(), Stopping> {
        self.is_rebuilding.send_replace(true);
        let (region, now) = (self.region.as_ref(), wall_clock::now());
        let marked_out = rebuild::previously_marked_out(snapshot, present, region, now);
        let marked_out = marked_out.map_or_else(|| rebuild::present(snapshot, region), Arc::new);
        self.homes.decide(MarkOutDecision::Agreed(marked_out));
        let past = self.read_past(generation.number, present, now).await;
        let Some(previous) = rebuild::previous(&past, (generation.applied_at, present), now) else {
            return Ok(());
        };
        // No generation of the fleet, and gone from the store with the next one, whose number is not above this one.
        let number = generation.number.saturating_add(1);
        let reason = "the homes before the last changes".into();
        let before = Generation { number, reason, ..generation.clone() };
        match self.apply(&before, previous).await? {
            Ok(()) => tracing::info!(
                "the homes before the last changes are in force first, so that flows find them"
            ),
            Err(cause) => {
                tracing::warn!("the homes before the last changes are not known here: {cause}");
            }
        }
        Ok(())
    }

    /// The generations whose homes may still count, as far as they can be read and used here: one that cannot was in force
    /// nowhere.
    async fn read_past(
        &self,
        current: u64,
        present: &Configuration,
        now: WallTime,
    ) -> Vec<rebuild::Since<Configuration>> {
        let fleet = self.fleet.borrow().clone();
        let mut past = Vec::new();
        let Some(fleet) = fleet else { return past };
        let applied = match applied_at(&fleet).await {
            Ok(applied) => applied,
            Err(error) => {
                tracing::warn!("the homes before the last changes are not known here: {error}");
                return past;
            }
        };
        let mut reader = GenerationReader::new(&fleet);
        for number in rebuild::needed(&applied, current, present, now) {
            let read = reader.read(number).await.map_err(|error| error.to_string());
            let used = read.and_then(|it| {
                let decoded = lb_store::decode_shared(&it.bytes);
                let decoded = decoded.map_err(|error| error_chain::message(&error))?;
                Ok((it.committed.document.body.applied_at, decoded))
            });
            match used {
                Ok(used) => past.push(used),
                Err(cause) => {
                    tracing::warn!("the homes of generation {number} are not known here: {cause}")
                }
            }
        }
        past
    }

    async fn apply(
        &self,
        generation: &Generation,
        configuration: Configuration,
    ) -> Result<Result<(), String>, Stopping> {
        let apply = Apply {
            configuration: configuration.into(),
            shared: Some(generation.number),
            actor: Actor::Fleet { author: generation.author.clone() },
            request: generation.reason.clone(),
            reason: Reason::new(&generation.reason).unwrap_or_default(),
            ..Apply::default()
        };
        Ok(match self.commands.apply(apply, None).await? {
            // The packet path is a condition of its own, and is retried by the state loop.
            Ok(_) | Err(Refusal::Behind { .. }) => Ok(()),
            Err(refusal) => Err(error_chain::message(&refusal)),
        })
    }
}

/// When each generation of the history came into force.
async fn applied_at(fleet: &Fleet) -> Result<BTreeMap<u64, WallTime>, EtcdError> {
    let mut applied = BTreeMap::new();
    let visit = |number, read: Result<Committed, DocumentError>| {
        if let Ok(committed) = read {
            applied.insert(number, committed.document.body.applied_at);
        }
    };
    fleet.visit_generations(fleet.list_generations().await?, visit).await?;
    Ok(applied)
}
