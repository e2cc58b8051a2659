//! How other portions of the capacities are put in force: first all limits that get lower, then those that get higher.
//! So whoever is told that it is done may count on it that what this balancer gave away is no longer used here.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use lb_base::queue::{QueueCounters, UnboundedReceiver, UnboundedSender, unbounded};
use lb_model::capacity::{FleetPortions, GroupName, PortionChanges, Portions, PortionsInForce};
use lb_publish::reconcile::MemberPath;

/// Why it is not sure that limits are within the portions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEnforced {
    /// Packets see groups of which no plan has said yet what their limits follow from: at the start, and after a change that
    /// failed half-way. Their limits are as they were found. They follow with the next plan, which is published under these
    /// portions; asking again tells when.
    #[error("some limits stay as they are until the packet path is at a plan")]
    NoPlan,
    /// The member loop has ended.
    #[error("the daemon is stopping")]
    Stopping,
}

/// Puts this balancer's portions of the capacities in force, while the loops run. Clones share it. It keeps no loop
/// running.
///
/// Changes are made in the order in which they were asked for, each completely, even if whoever asked waits no longer.
#[derive(Clone, Debug)]
pub struct PortionCommands {
    requests: UnboundedSender<PortionRequest>,
    /// Those that were asked for last.
    last: Arc<Mutex<Portions>>,
}

/// Portions that are to be put in force.
#[derive(Debug)]
pub(crate) struct PortionRequest {
    next: Portions,
    /// From those before.
    changes: PortionChanges,
    reply: oneshot::Sender<Result<(), NotEnforced>>,
}

impl PortionCommands {
    /// `in_force`: those that the member loop starts with.
    pub(crate) fn channel(
        counters: &QueueCounters,
        in_force: Portions,
    ) -> (Self, UnboundedReceiver<PortionRequest>) {
        let (requests, receiver) = unbounded(counters);
        (Self { requests, last: Arc::new(Mutex::new(in_force)) }, receiver)
    }

    /// Puts the portions of a fleet in force. A group that they do not name has none, and is closed if it has a capacity.
    ///
    /// Returns once all limits are written; those that get lower are written first. A group whose settings are being
    /// published meanwhile has its limit lowered at once and raised with its settings. Changes of health go on in between.
    /// With the same portions as before it writes nothing, and tells whether they are kept.
    ///
    /// # Errors
    /// [`NotEnforced`]: some limits may be higher than the portions allow, so parts that were given away must not be used
    /// elsewhere yet.
    pub async fn enforce(&self, portions: Arc<FleetPortions>) -> Result<(), NotEnforced> {
        self.change(Portions::Fleet(portions)).await
    }

    /// Has the configuration decide: an equal portion of each capacity for each of its `balancers`. Otherwise as
    /// [`Self::enforce`].
    ///
    /// # Errors
    /// [`NotEnforced`]: some limits may be as they were.
    pub async fn by_configuration(&self) -> Result<(), NotEnforced> {
        self.change(Portions::ByConfiguration).await
    }

    /// Those that were asked for last.
    pub fn last(&self) -> Portions {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn change(&self, next: Portions) -> Result<(), NotEnforced> {
        let (reply, answer) = oneshot::channel();
        {
            // Held while it is sent, so that requests come in the order of their changes.
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let changes = last.changes_to(&next);
            let request = PortionRequest { next: next.clone(), changes, reply };
            self.requests.send(request).map_err(|_| NotEnforced::Stopping)?;
            *last = next;
        }
        answer.await.unwrap_or(Err(NotEnforced::Stopping))
    }
}

/// The member loop's part: takes one request after the other, in steps that are short enough for changes of health to go on
/// between them.
#[derive(Debug)]
pub(super) struct PortionWriter {
    requests: UnboundedReceiver<PortionRequest>,
    in_force: Portions,
    change: Option<Change>,
}

/// Portions that are being put in force.
#[derive(Debug)]
struct Change {
    request: PortionRequest,
    stage: Stage,
    /// Those whose limits are written in this stage.
    groups: Vec<GroupName>,
    /// How many of them are done.
    written: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Lower,
    Raise,
}

/// A change that is complete. Whoever waits for it is told last.
#[derive(Debug)]
pub(super) struct Enforced {
    pub(super) portions: Portions,
    reply: oneshot::Sender<Result<(), NotEnforced>>,
    result: Result<(), NotEnforced>,
}

impl Enforced {
    pub(super) fn reply(self) {
        // Nobody may wait any more.
        let _ = self.reply.send(self.result);
    }
}

impl PortionWriter {
    pub(super) fn new(requests: UnboundedReceiver<PortionRequest>, in_force: Portions) -> Self {
        Self { requests, in_force, change: None }
    }

    /// Waits until there is a step to take. It may be cancelled.
    pub(super) async fn ready(&mut self) {
        if self.change.is_some() {
            return;
        }
        match self.requests.recv().await {
            Some(request) => {
                let (stage, groups, written) = (Stage::Begin, Vec::new(), 0);
                self.change = Some(Change { request, stage, groups, written });
            }
            // Nobody can ask any more, and what is in force stays.
            None => std::future::pending().await,
        }
    }

    /// Writes some limits. Returns the change if it is complete.
    ///
    /// Until the last lower limit is written, each group has the lower one of its two portions, so neither a change of
    /// health nor a plan that is published raises a limit early, or takes a lower one back.
    pub(super) fn step(&mut self, words: &mut impl MemberPath) -> Option<Enforced> {
        let mut change = self.change.take()?;
        if change.stage == Stage::Begin {
            let (from, to) = (self.in_force.clone(), change.request.next.clone());
            words.set_portions(PortionsInForce::changing(from, to));
            change.begin(Stage::Lower, words);
        }
        if change.write(words) {
            if change.stage == Stage::Raise {
                return Some(self.finish(change, words));
            }
            self.in_force = change.request.next.clone();
            words.set_portions(self.in_force.clone().into());
            change.begin(Stage::Raise, words);
            if change.groups.is_empty() {
                return Some(self.finish(change, words));
            }
        }
        self.change = Some(change);
        None
    }

    fn finish(&self, change: Change, words: &impl MemberPath) -> Enforced {
        let result = if words.is_described() { Ok(()) } else { Err(NotEnforced::NoPlan) };
        Enforced { portions: self.in_force.clone(), reply: change.request.reply, result }
    }
}

impl Change {
    /// Groups that come later are written under the portions that are in force from here on, so nothing of them is left to
    /// do.
    fn begin(&mut self, stage: Stage, words: &impl MemberPath) {
        (self.stage, self.written) = (stage, 0);
        self.groups = match (&mut self.request.changes, stage) {
            (PortionChanges::All, _) => words.groups(),
            (PortionChanges::Groups(groups), Stage::Raise) => std::mem::take(&mut groups.higher),
            (PortionChanges::Groups(groups), _) => std::mem::take(&mut groups.lower),
        };
    }

    /// Returns whether all are written.
    fn write(&mut self, words: &mut impl MemberPath) -> bool {
        let left = &self.groups[self.written..];
        if !left.is_empty() {
            // One at least, so that it comes to an end.
            self.written += words.update_group_limits(left).clamp(1, left.len());
        }
        self.written == self.groups.len()
    }
}

#[cfg(test)]
mod tests {
    use lb_common::abi::limiter::LimitWord;
    use lb_config::document::Document;
    use lb_model::{
        Configuration, Name,
        capacity::{Portion, per_second},
        ids::{Ids, Quarantine},
        plan::{self, PlanInputs},
    };

    use super::*;
    use crate::fake::FakePacketPath;

    const POOLS: &str = r#"
        [[region]]
        name = "eu"
        [[pool]]
        name = "a"
        slots = 31
        backend = [{ address = "10.0.0.1", region = "eu" }]
        group = [{ region = "eu", capacity = "100/s" }]
        [[pool]]
        name = "b"
        slots = 31
        backend = [{ address = "10.0.0.2", region = "eu" }]
        group = [{ region = "eu", capacity = "100/s" }]
        [[pool]]
        name = "c"
        slots = 31
        backend = [{ address = "10.0.0.3", region = "eu" }]
        group = [{ region = "eu", capacity = "100/s" }]
        [[pool]]
        name = "d"
        slots = 31
        backend = [{ address = "10.0.0.4", region = "eu" }]
        group = [{ region = "eu", capacity = "100/s" }]
    "#;

    fn group(pool: &str) -> GroupName {
        (Name::new(pool).unwrap(), Name::new("eu").unwrap())
    }

    fn fleet(portions: [f64; 4]) -> Arc<FleetPortions> {
        let portions = ["a", "b", "c", "d"].iter().zip(portions);
        let portion = |(pool, it): (&&str, _)| (group(pool), Portion::new(it).unwrap());
        Arc::new(portions.map(portion).collect())
    }

    /// The packet path with the plan of [`POOLS`], and limits as the portions say.
    async fn packet_path(portions: Portions) -> FakePacketPath {
        use lb_publish::publisher::PacketPath as _;
        let document = Document::parse(POOLS).unwrap().into();
        let configuration: Configuration = lb_config::validate_first(&document).unwrap();
        let (sizes, rests) = (lb_common::abi::sizes::MapSizes::default(), Quarantine::default());
        let now = std::time::Instant::now();
        let ids = Ids::default().next(None, &configuration, &sizes, &rests, now).unwrap();
        let inputs = PlanInputs {
            configuration: &configuration,
            own: None,
            ids: &ids,
            hash_key: [0; 2],
            source_prefix: None,
            out: &std::collections::BTreeMap::new(),
        };
        let plan = plan::build(&inputs, None).unwrap();
        let mut path = FakePacketPath::default();
        path.set_portions(portions.into());
        path.publish(&plan, &lb_model::maglev::BuiltTables::default()).await.unwrap();
        path
    }

    fn limits(path: &FakePacketPath) -> [f64; 4] {
        let content = path.content();
        let limit = |pool| per_second(content.limit(pool, "eu")).unwrap();
        ["a", "b", "c", "d"].map(|pool| limit(pool).round())
    }

    /// One group a step. Between two steps all limits are written again, as changes of health do.
    #[tokio::test]
    async fn whatever_is_written_between_steps_nothing_rises_before_all_lower_limits_are_there() {
        let before = Portions::Fleet(fleet([0.1, 0.5, 0.2, 0.6]));
        let mut path = packet_path(before.clone()).await;
        assert_eq!(limits(&path), [10.0, 50.0, 20.0, 60.0]);
        let (commands, requests) =
            PortionCommands::channel(&QueueCounters::default(), before.clone());
        let mut writer = PortionWriter::new(requests, before);
        let enforced = tokio::spawn({
            let commands = commands.clone();
            async move { commands.enforce(fleet([0.4, 0.3, 0.5, 0.1])).await }
        });
        writer.ready().await;
        let mut steps = Vec::new();
        path.content().groups_at_once = Some(1);
        let done = loop {
            let done = writer.step(&mut path);
            assert!(done.is_some() || !enforced.is_finished());
            path.content().groups_at_once = None;
            path.update_group_limits(&["a", "c"].map(group));
            path.content().groups_at_once = Some(1);
            steps.push(limits(&path));
            if let Some(done) = done {
                break done;
            }
        };
        assert_eq!(
            steps,
            [
                [10.0, 30.0, 20.0, 60.0],
                // From here on others may use what this balancer gave away, and it what they gave.
                [40.0, 30.0, 50.0, 10.0],
                [40.0, 30.0, 50.0, 10.0],
                [40.0, 30.0, 50.0, 10.0],
            ]
        );
        assert_eq!(done.portions, commands.last());
        done.reply();
        assert_eq!(enforced.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn changes_are_made_in_turn_and_all_groups_are_left_to_the_configuration() {
        let mut path = packet_path(Portions::ByConfiguration).await;
        let (commands, requests) =
            PortionCommands::channel(&QueueCounters::default(), Portions::ByConfiguration);
        let mut writer = PortionWriter::new(requests, Portions::ByConfiguration);
        path.content().groups_at_once = Some(3);
        let ask = |portions| {
            let commands = commands.clone();
            tokio::spawn(async move { commands.enforce(portions).await })
        };
        let first = ask(fleet([0.0, 0.5, 1.0, 0.25]));
        tokio::task::yield_now().await;
        let second = ask(fleet([0.0, 0.25, 1.0, 0.25]));
        tokio::task::yield_now().await;
        let mut seen = Vec::new();
        for _ in 0..2 {
            writer.ready().await;
            let done = loop {
                if let Some(done) = writer.step(&mut path) {
                    break done;
                }
                writer.ready().await;
            };
            seen.push(limits(&path));
            done.reply();
        }
        assert_eq!(seen, [[0.0, 50.0, 100.0, 25.0], [0.0, 25.0, 100.0, 25.0]]);
        assert_eq!(path.content().limit("a", "eu"), LimitWord::CLOSED);
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(()), Ok(())));

        drop(writer);
        assert_eq!(commands.by_configuration().await, Err(NotEnforced::Stopping));
    }
}
