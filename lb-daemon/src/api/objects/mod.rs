//! The configuration in force, object by object: `spillway.v1.Objects`.
//!
//! It is a door like the others. A call reads the configuration in force, changes one object in its
//! message, has the whole judged as an apply is, and applies it on top of the generation it has read.
//! Calls take turns; where somebody else applies in between, the call reads again.

mod answer;
mod following;
mod mask;
mod object;
mod refused;
mod service;
mod users;

use lb_config::Invalid;
use prost_types::FieldMask;
use spillway_proto::v1;
use tokio::sync::Mutex;

use super::{
    access::{caller, within, working},
    convert,
};
use crate::audit::Audit;
use answer::{Answer, Removed};
use lb_control::{
    command::{Actor, Apply, Commands, Exported, Refusal},
    store::{Revision, SchemaMismatch},
};
use object::{Id, Object, etag};
use refused::Refused;

/// How often a call reads again because others changed the configuration meanwhile.
const TRIES: usize = 10;

/// The door.
#[derive(Debug)]
pub(super) struct Objects {
    commands: Commands,
    audit: Audit,
    /// Calls over the socket take turns, and so do those over TLS: neither waits for the other's.
    turns: [Mutex<()>; 2],
}

/// What is to become of an object.
struct Update<'a, O> {
    object: &'a O,
    mask: Option<&'a FieldMask>,
    etag: &'a str,
    allow_missing: bool,
}

/// What a call is to do.
#[derive(Clone, Copy)]
struct Task<'a> {
    verb: &'static str,
    id: &'a Id,
    dry_run: bool,
}

impl Task<'_> {
    /// In words for the log of changes.
    fn wanted(&self) -> String {
        format!("{} of {}", self.verb, self.id)
    }

    /// Whether a refusal is to be noted. What became a command, or was denied, is noted already.
    fn notes(&self, refused: &Refused) -> bool {
        match refused {
            Refused::Command(_) | Refused::NotPermitted(_) | Refused::Stopping(_) => false,
            _ => !self.dry_run,
        }
    }
}

/// What is known of whoever sent an object.
#[derive(Clone, Copy, Debug)]
struct Sender {
    schema: Revision,
    any_schema: bool,
}

impl Sender {
    fn new(schema_revision: i32, any_schema: bool) -> Self {
        Self { schema: Revision::new(schema_revision), any_schema }
    }

    /// Refuses what this daemon would drop of a newer client's object; and where an object, or a part of it, takes
    /// the place of another (`replaces`), what an older client would erase.
    fn agrees(self, daemon: Revision, replaces: bool) -> Result<(), Refused> {
        match SchemaMismatch::check_client(self.schema, daemon) {
            Err(SchemaMismatch::OlderClient { .. }) if !replaces => Ok(()),
            Err(mismatch) if !self.any_schema => {
                Err(Refused::Refusal(Refusal::Schema(mismatch).into()))
            }
            _ => Ok(()),
        }
    }
}

/// The configuration that a call begins with.
struct Before {
    generation: u64,
    configuration: v1::Configuration,
    /// Schema revision of the daemon.
    schema: Revision,
}

impl Objects {
    pub(super) fn new(commands: Commands, audit: Audit) -> Self {
        Self { commands, audit, turns: Default::default() }
    }

    async fn get<O: Object>(&self, id: &Id) -> Result<Answer<O>, Refused> {
        let Before { generation, configuration, .. } = self.read().await?;
        let object = find::<O>(&configuration, id)?.ok_or_else(|| Refused::Missing(id.clone()))?;
        Ok(Answer::of(object, id, generation))
    }

    async fn create<O: Object>(
        &self,
        id: &Id,
        object: &O,
        sender: Sender,
        dry_run: bool,
    ) -> Result<Answer<O>, Refused> {
        let edit = |configuration: &mut v1::Configuration, daemon| {
            sender.agrees(daemon, false)?;
            put(configuration, id, object.clone())
        };
        let same = |before: &v1::Configuration, after: &v1::Configuration| {
            let before = find::<O>(before, id)?;
            if before.is_some() && before != find(after, id)? {
                return Err(Refused::Exists(id.clone()));
            }
            Ok(())
        };
        let task = Task { verb: "creation", id, dry_run };
        self.change(task, edit, Refused::Invalid, same).await
    }

    async fn update<O: Object>(
        &self,
        id: &Id,
        update: &Update<'_, O>,
        sender: Sender,
        dry_run: bool,
    ) -> Result<Answer<O>, Refused> {
        let edit = |configuration: &mut v1::Configuration, daemon| {
            sender.agrees(daemon, mask::replaces(update.object, update.mask)?)?;
            let object = match find::<O>(configuration, id)? {
                Some(old) => {
                    unchanged(old, id, update.etag)?;
                    mask::merge(old, update.object, update.mask)?
                }
                None if update.allow_missing && update.etag.is_empty() => update.object.clone(),
                None => return Err(Refused::Missing(id.clone())),
            };
            put(configuration, id, object)
        };
        let task = Task { verb: "update", id, dry_run };
        self.change(task, edit, Refused::Invalid, |_, _| Ok(())).await
    }

    /// What changed.
    async fn delete<O: Object>(
        &self,
        id: &Id,
        etag: &str,
        allow_missing: bool,
        dry_run: bool,
    ) -> Result<Removed, Refused> {
        let edit = |configuration: &mut v1::Configuration, _| {
            let old = match find::<O>(configuration, id) {
                Ok(Some(old)) => old,
                // It goes on as an apply that differs in nothing, which answers for packets too.
                Ok(None) | Err(Refused::Missing(_)) if allow_missing => return Ok(Vec::new()),
                Ok(None) => return Err(Refused::Missing(id.clone())),
                Err(refused) => return Err(refused),
            };
            unchanged(old, id, etag)?;
            match O::users(configuration, id) {
                users if users.is_empty() => {}
                users => return Err(Refused::InUse(id.clone(), users)),
            }
            if let Some(list) = O::list_mut(configuration, id) {
                list.retain(|object| object.name() != id.name);
            }
            O::tidy(configuration, id);
            Ok(Vec::new())
        };
        let needed = |invalid| Refused::Needed(id.clone(), invalid);
        let task = Task { verb: "deletion", id, dry_run };
        let (applied, _) = self.apply::<O>(task, edit, needed, |_, _| Ok(())).await?;
        Ok(Removed(applied))
    }

    async fn change<O: Object>(
        &self,
        task: Task<'_>,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<Place, Refused>,
        invalid: impl Fn(Box<Invalid>) -> Refused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), Refused>,
    ) -> Result<Answer<O>, Refused> {
        let (applied, after) = self.apply::<O>(task, edit, invalid, judge).await?;
        let id = task.id;
        let object = find::<O>(&after, id)?.ok_or_else(|| Refused::Missing(id.clone()))?;
        Ok(Answer::of(object, id, applied.generation).with(applied))
    }

    /// Puts the configuration in force as `edit` leaves it, and answers with what came of it and all
    /// that is in force then. `judge` sees it before and after.
    async fn apply<O: Object>(
        &self,
        task: Task<'_>,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<Place, Refused>,
        invalid: impl Fn(Box<Invalid>) -> Refused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), Refused>,
    ) -> Result<(v1::ApplyResponse, v1::Configuration), Refused> {
        let actor = caller().actor;
        let _turn = self.turns[usize::from(matches!(actor, Actor::Certificate(_)))].lock().await;
        let _at_work = working().await;
        let result = self.attempts::<O>(task, &actor, edit, invalid, judge).await;
        if let Err(refused) = &result
            && task.notes(refused)
        {
            self.audit.refused(&actor, &task.wanted(), &refused.to_string());
        }
        result
    }

    async fn attempts<O: Object>(
        &self,
        task: Task<'_>,
        actor: &Actor,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<Place, Refused>,
        invalid: impl Fn(Box<Invalid>) -> Refused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), Refused>,
    ) -> Result<(v1::ApplyResponse, v1::Configuration), Refused> {
        let Task { id, dry_run, .. } = task;
        for _ in 0..TRIES {
            let Before { generation, configuration: before, schema } = self.in_force().await?;
            let mut edited = before.clone();
            let place = edit(&mut edited, schema)?;
            let configuration = lb_config::validate(&edited).map_err(|wrong| {
                invalid(wrong.for_single_object(&place, O::KIND, O::FIELD).into())
            })?;
            let after = lb_config::to_message(&configuration);
            judge(&before, &after)?;
            let expected_generation = Some(generation);
            within(&before, &after).map_err(Refused::NotPermitted)?;
            let apply = Apply {
                configuration,
                dry_run,
                expected_generation,
                schema,
                any_schema: false,
                actor: actor.clone(),
                request: task.wanted(),
            };
            match self.audit.apply(&self.commands, apply).await? {
                Ok(applied) => return Ok((convert::applied(&applied), after)),
                Err(Refusal::Conflict { .. }) => {}
                Err(refusal) => return Err(Refused::Command(refusal.into())),
            }
        }
        Err(Refused::Busy(id.clone(), TRIES))
    }

    async fn read(&self) -> Result<Before, Refused> {
        let _at_work = working().await;
        self.in_force().await
    }

    /// The configuration in force; or the stored one that the daemon cannot use, if all of it is known here: a call
    /// may mend it.
    async fn in_force(&self) -> Result<Before, Refused> {
        let exported: Exported = self.commands.export().await?;
        let schema = exported.schema;
        if let Some(unusable) = exported.unusable.as_ref().filter(|unusable| !unusable.is_whole()) {
            return Err(Refused::Refusal(Refusal::Unusable(unusable.cause.clone()).into()));
        }
        let answer = convert::exported(&exported);
        let answer = answer.map_err(|refusal| Refused::Refusal(refusal.into()))?;
        let configuration = answer.configuration.unwrap_or_default();
        Ok(Before { generation: exported.generation, configuration, schema })
    }
}

/// Where an object stands in a configuration, as [`Invalid`] has it.
type Place = Vec<(&'static str, usize)>;

/// The object of an id, if there is one.
fn find<'a, O: Object>(
    configuration: &'a v1::Configuration,
    id: &Id,
) -> Result<Option<&'a O>, Refused> {
    let list = O::list(configuration, id).ok_or_else(|| Refused::Missing(id.outer()))?;
    Ok(list.iter().find(|object| object.name() == id.name))
}

/// Puts an object in the place of the one with its id, or at the end.
fn put<O: Object>(
    configuration: &mut v1::Configuration,
    id: &Id,
    object: O,
) -> Result<Place, Refused> {
    let outer = id.pool.as_ref().and_then(|name| {
        let index = configuration.pools.iter().position(|pool| pool.name == *name)?;
        Some((v1::Pool::LIST, index))
    });
    let list = O::list_mut(configuration, id).ok_or_else(|| Refused::Missing(id.outer()))?;
    let index = match list.iter().position(|object| object.name() == id.name) {
        Some(index) => {
            list[index] = object;
            index
        }
        None => {
            list.push(object);
            list.len() - 1
        }
    };
    Ok(outer.into_iter().chain([(O::LIST, index)]).collect())
}

/// An object still has the etag that somebody expects, if any.
fn unchanged<O: Object>(object: &O, id: &Id, expected: &str) -> Result<(), Refused> {
    let current = etag(object);
    if expected.is_empty() || expected == current {
        return Ok(());
    }
    Err(Refused::Changed { id: id.clone(), expected: expected.into(), current })
}
