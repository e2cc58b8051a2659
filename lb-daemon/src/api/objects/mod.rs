//! The configuration in force, object by object: `spillway.v1.Objects`.
//!
//! A call reads the configuration in force, changes one object in its message, validates the result, and applies it on top
//! of the generation that it read. Calls take turns; if something else is applied in between, the call reads again.

mod answer;
mod defaults;
mod edit;
mod mask;
mod object;
mod service;

use lb_config::{Draft, Invalid, Reason};
use prost_types::FieldMask;
use spillway_proto::v1;
use tokio::sync::Mutex;
use tonic::Status;

use super::{
    access::{caller, may_change, within, working},
    convert,
};
use crate::audit::Audit;
use answer::{ObjectAnswer, ObjectRefused, Removed};
use edit::{Content, Edited, InForce, ObjectPath, check_etag, edited, find, put};
use lb_control::{
    command::{Actor, Apply, Commands, Exported, Refusal},
    store::{Revision, SchemaMismatch},
};
use object::{Id, Object, etag};

/// How often a call is tried while others change the configuration.
const MAX_TRIES: usize = 10;

/// The service `spillway.v1.Objects`.
#[derive(Debug)]
pub(super) struct Objects {
    commands: Commands,
    audit: Audit,
    /// Calls over the socket take turns, and so do calls over TLS: neither waits for the other.
    turns: [Mutex<()>; 2],
}

struct Update<'a, O> {
    object: &'a O,
    mask: Option<&'a FieldMask>,
    etag: &'a str,
    allow_missing: bool,
}

/// What all calls that change something have.
#[derive(Clone, Debug)]
struct Options {
    dry_run: bool,
    reason: Reason,
}

impl Options {
    /// # Errors
    /// The caller's role does not permit the change, or the reason is wrong.
    fn new(dry_run: bool, reason: &str) -> Result<Self, Status> {
        may_change(dry_run)?;
        let reason = super::service::reason(reason)?;
        Ok(Self { dry_run, reason })
    }
}

#[derive(Clone, Copy)]
struct ObjectChange<'a> {
    verb: &'static str,
    id: &'a Id,
    options: &'a Options,
}

impl ObjectChange<'_> {
    /// Describes the change for the audit log.
    fn describe(&self) -> String {
        format!("{} of {}", self.verb, self.id)
    }

    /// Whether a refusal must still be logged: not if it became a command or was denied, which is logged already.
    fn must_log(&self, refused: &ObjectRefused) -> bool {
        match refused {
            ObjectRefused::Command(_)
            | ObjectRefused::NotPermitted(_)
            | ObjectRefused::Stopping(_) => false,
            _ => !self.options.dry_run,
        }
    }
}

/// Schema of the client that sent an object.
#[derive(Clone, Copy, Debug)]
struct Sender {
    schema: Revision,
    any_schema: bool,
}

impl Sender {
    fn new(schema_revision: i32, any_schema: bool) -> Self {
        Self { schema: Revision::new(schema_revision), any_schema }
    }

    /// Refuses an object of a newer client, parts of which this daemon would drop; and an object of an older client that
    /// replaces another one, or part of it (`replaces`), and would erase fields that the client does not know.
    fn check_schema(self, daemon: Revision, replaces: bool) -> Result<(), ObjectRefused> {
        match SchemaMismatch::check_client(self.schema, daemon) {
            Err(SchemaMismatch::OlderClient { .. }) if !replaces => Ok(()),
            Err(mismatch) if !self.any_schema => {
                Err(ObjectRefused::Refusal(Refusal::Schema(mismatch).into()))
            }
            _ => Ok(()),
        }
    }
}

impl Objects {
    pub(super) fn new(commands: Commands, audit: Audit) -> Self {
        Self { commands, audit, turns: Default::default() }
    }

    async fn get<O: Object>(&self, id: &Id) -> Result<ObjectAnswer<O>, ObjectRefused> {
        let in_force = self.read().await?;
        let draft = in_force.draft::<O>(id);
        let object =
            find::<O>(draft.message(), id)?.ok_or_else(|| ObjectRefused::Missing(id.clone()))?;
        Ok(ObjectAnswer::new(object, id, in_force.generation))
    }

    async fn create<O: Object>(
        &self,
        id: &Id,
        object: &O,
        sender: Sender,
        options: Options,
    ) -> Result<ObjectAnswer<O>, ObjectRefused> {
        let edit = |configuration: &mut v1::Configuration, daemon| {
            sender.check_schema(daemon, false)?;
            put(configuration, id, object.clone())
        };
        let same = |before: &v1::Configuration, after: &v1::Configuration| {
            let before = find::<O>(before, id)?;
            if before.is_some() && before != find(after, id)? {
                return Err(ObjectRefused::Exists(id.clone()));
            }
            Ok(())
        };
        let change = ObjectChange { verb: "creation", id, options: &options };
        self.change_one(change, edit, ObjectRefused::Invalid, same).await
    }

    async fn update<O: Object>(
        &self,
        id: &Id,
        update: &Update<'_, O>,
        sender: Sender,
        options: Options,
    ) -> Result<ObjectAnswer<O>, ObjectRefused> {
        let edit = |configuration: &mut v1::Configuration, daemon| {
            sender.check_schema(daemon, mask::replaces(update.object, update.mask)?)?;
            let object = match find::<O>(configuration, id)? {
                Some(old) => {
                    check_etag(old, id, update.etag)?;
                    mask::merge(old, update.object, update.mask)?
                }
                None if update.allow_missing && update.etag.is_empty() => update.object.clone(),
                None => return Err(ObjectRefused::Missing(id.clone())),
            };
            put(configuration, id, object)
        };
        let change = ObjectChange { verb: "update", id, options: &options };
        self.change_one(change, edit, ObjectRefused::Invalid, |_, _| Ok(())).await
    }

    async fn delete<O: Object>(
        &self,
        id: &Id,
        etag: &str,
        allow_missing: bool,
        options: Options,
    ) -> Result<Removed, ObjectRefused> {
        let edit = |configuration: &mut v1::Configuration, _| {
            let old = match find::<O>(configuration, id) {
                Ok(Some(old)) => old,
                // Continues as an apply without changes, which also waits for the packet path.
                Ok(None) | Err(ObjectRefused::Missing(_)) if allow_missing => return Ok(Vec::new()),
                Ok(None) => return Err(ObjectRefused::Missing(id.clone())),
                Err(refused) => return Err(refused),
            };
            check_etag(old, id, etag)?;
            match O::users(configuration, id) {
                users if users.is_empty() => {}
                users => return Err(ObjectRefused::InUse(id.clone(), users)),
            }
            if let Some(list) = O::list_mut(configuration, id) {
                list.retain(|object| object.name() != id.name);
            }
            O::tidy(configuration, id);
            Ok(Vec::new())
        };
        let needed = |invalid| ObjectRefused::Needed(id.clone(), invalid);
        let change = ObjectChange { verb: "deletion", id, options: &options };
        let (applied, _) = self.apply::<O>(change, edit, needed, |_, _| Ok(())).await?;
        Ok(Removed(applied))
    }

    async fn change_one<O: Object>(
        &self,
        change: ObjectChange<'_>,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<ObjectPath, ObjectRefused>,
        invalid: impl Fn(Box<Invalid>) -> ObjectRefused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), ObjectRefused>,
    ) -> Result<ObjectAnswer<O>, ObjectRefused> {
        let (applied, after) = self.apply::<O>(change, edit, invalid, judge).await?;
        let id = change.id;
        let object = find::<O>(&after, id)?.ok_or_else(|| ObjectRefused::Missing(id.clone()))?;
        Ok(ObjectAnswer::new(object, id, applied.generation).with_applied(applied))
    }

    /// Applies the configuration that `edit` makes of the one in force, and returns the result and the new configuration.
    /// `judge` checks the configuration before and after.
    async fn apply<O: Object>(
        &self,
        change: ObjectChange<'_>,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<ObjectPath, ObjectRefused>,
        invalid: impl Fn(Box<Invalid>) -> ObjectRefused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), ObjectRefused>,
    ) -> Result<(v1::ApplyResponse, v1::Configuration), ObjectRefused> {
        let actor = caller().actor;
        let _turn = self.turns[usize::from(matches!(actor, Actor::Certificate(_)))].lock().await;
        let _at_work = working().await;
        let result = self.try_apply::<O>(change, &actor, edit, invalid, judge).await;
        if let Err(refused) = &result
            && change.must_log(refused)
        {
            self.audit.refused(&actor, &change.describe(), &refused.to_string());
        }
        result
    }

    async fn try_apply<O: Object>(
        &self,
        change: ObjectChange<'_>,
        actor: &Actor,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<ObjectPath, ObjectRefused>,
        invalid: impl Fn(Box<Invalid>) -> ObjectRefused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), ObjectRefused>,
    ) -> Result<(v1::ApplyResponse, v1::Configuration), ObjectRefused> {
        let ObjectChange { id, options, .. } = change;
        let Options { dry_run, reason } = options;
        for _ in 0..MAX_TRIES {
            let in_force = self.in_force().await?;
            let (generation, schema) = (in_force.generation, in_force.schema);
            let edited = match edited::<O>(&in_force.draft::<O>(id), schema, &edit, &invalid)? {
                Some(edited) => edited,
                None => {
                    let whole = Draft::whole(in_force.whole());
                    let edited = edited::<O>(&whole, schema, &edit, &invalid)?;
                    edited.ok_or_else(|| ObjectRefused::Missing(id.clone()))?
                }
            };
            let Edited { before, after, requested, place } = edited;
            let for_object = |wrong: Invalid| wrong.for_single_object(&place, O::KIND, O::FIELD);
            judge(&before, &after)?;
            let expected_generation = Some(generation);
            within(&before, &after, *dry_run).map_err(ObjectRefused::NotPermitted)?;
            let apply = Apply {
                configuration: requested,
                dry_run: *dry_run,
                expected_generation,
                schema,
                any_schema: false,
                actor: actor.clone(),
                request: change.describe(),
                reason: reason.clone(),
                rollback_to: None,
            };
            match self.audit.apply(&self.commands, apply).await? {
                Ok(applied) => return Ok((convert::applied(&applied), after)),
                Err(Refusal::Conflict { .. }) => {}
                Err(Refusal::OpenSlots(mut open)) => {
                    open.invalid = for_object(open.invalid);
                    return Err(ObjectRefused::Command(Refusal::OpenSlots(open).into()));
                }
                Err(refusal) => return Err(ObjectRefused::Command(refusal.into())),
            }
        }
        Err(ObjectRefused::Busy(id.clone(), MAX_TRIES))
    }

    async fn read(&self) -> Result<InForce, ObjectRefused> {
        let _at_work = working().await;
        self.in_force().await
    }

    /// The configuration in force; or a stored one that the daemon cannot use, if it has no unknown fields: a call may
    /// correct it.
    async fn in_force(&self) -> Result<InForce, ObjectRefused> {
        let exported: Exported = self.commands.export().await?;
        let schema = exported.schema;
        if let Some(unusable) = exported.unusable.as_ref().filter(|unusable| !unusable.is_whole()) {
            return Err(ObjectRefused::Refusal(Refusal::Unusable(unusable.cause.clone()).into()));
        }
        let configuration = match exported.unusable {
            None => Content::InForce(Box::new(exported.configuration)),
            Some(_) => {
                let answer = convert::exported(&exported);
                let answer = answer.map_err(|refusal| ObjectRefused::Refusal(refusal.into()))?;
                Content::Stored(answer.configuration.unwrap_or_default())
            }
        };
        Ok(InForce { generation: exported.generation, configuration, schema })
    }
}
