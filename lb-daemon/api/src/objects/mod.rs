//! The configuration in force, object by object: `spillway.v1.Objects`.
//!
//! A call reads the configuration in force, changes one object in its message, validates the result, and applies it on top
//! of the generation that it read. Calls take turns; if something else is applied in between, the call reads again.

mod batch;
mod defaults;
mod edit;
mod list;
mod mask;
mod object;
mod refused;
mod service;

use std::mem;

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
use edit::{
    Content, Edited, InForce, ObjectPath, Place, check_etag, edited, find, for_request, put,
};
use lb_control::command::{Actor, Applied, Apply, Exported, Refusal};
use lb_member::Changes;
use lb_store::{Revision, SchemaMismatch};
use object::{Id, Needs, Object, answered};
use refused::ObjectRefused;

/// How often a call is tried while others change the configuration.
const MAX_TRIES: usize = 10;

/// The service `spillway.v1.Objects`.
#[derive(Debug)]
pub(super) struct Objects {
    changes: Changes,
    audit: Audit,
    /// Calls over the socket take turns, and so do calls over TLS: neither waits for the other.
    turns: [Mutex<()>; 2],
}

/// An object of a request.
#[derive(Debug)]
struct Sent<O> {
    id: Id,
    /// Without its etag, and a backend without its pool.
    object: O,
    /// The etag that it must have; empty: any.
    etag: String,
}

impl<O: Object> Sent<O> {
    /// `field` is that of the request which has the object.
    ///
    /// # Errors
    /// It is not set, or does not say which one it is.
    fn new(object: Option<O>, field: &str) -> Result<Self, ObjectRefused> {
        let mut object = object.ok_or_else(|| ObjectRefused::wrong(field, "must be set"))?;
        let etag = mem::take(object.etag_mut());
        let pool = object.pool_mut().map(mem::take);
        let id = O::id(pool.as_deref(), object.name(), &format!("{field}."))?;
        Ok(Self { id, object, etag })
    }
}

/// How an update changes an object.
#[derive(Clone, Copy)]
struct Update<'a> {
    mask: Option<&'a FieldMask>,
    allow_missing: bool,
}

/// Most paths of a mask: more than any object has fields.
const MAX_PATHS: usize = 100;

impl<'a> Update<'a> {
    /// # Errors
    /// The mask has too many paths, each of which takes time for each object.
    fn new(mask: Option<&'a FieldMask>, allow_missing: bool) -> Result<Self, ObjectRefused> {
        let paths = mask.map_or(0, |mask| mask.paths.len());
        if paths > MAX_PATHS {
            let cause = format!("has {paths} paths; at most {MAX_PATHS} are allowed");
            return Err(ObjectRefused::wrong("update_mask", cause));
        }
        Ok(Self { mask, allow_missing })
    }

    /// The object after the update of `old`; `None`: it does not exist.
    fn of<O: Object>(self, old: Option<&O>, sent: &Sent<O>) -> Result<O, ObjectRefused> {
        match old {
            Some(old) => {
                check_etag(old, &sent.id, &sent.etag)?;
                mask::merge(old, &sent.object, self.mask)
            }
            None if self.allow_missing && sent.etag.is_empty() => Ok(sent.object.clone()),
            None => Err(ObjectRefused::Missing(sent.id.clone())),
        }
    }
}

/// What all calls that change something have.
#[derive(Clone, Debug)]
struct Options {
    dry_run: bool,
    reason: Reason,
    /// As in [`Apply`].
    force: bool,
}

impl Options {
    /// # Errors
    /// The caller's role does not permit the change, or the reason is wrong.
    fn new(dry_run: bool, reason: &str) -> Result<Self, Status> {
        may_change(dry_run)?;
        let reason = super::service::reason(reason)?;
        Ok(Self { dry_run, reason, force: false })
    }

    /// The same of a call that may need force.
    fn forced(self, force: bool) -> Self {
        Self { force, ..self }
    }
}

/// What a call changes.
struct ObjectChange<'a> {
    /// For the audit log and the history: `update of pool "web"`.
    request: String,
    kind: &'static str,
    needs: Needs<'a>,
    options: &'a Options,
}

impl<'a> ObjectChange<'a> {
    fn of_one<O: Object>(verb: &str, id: &'a Id, options: &'a Options) -> Self {
        let request = format!("{verb} of {id}");
        Self { request, kind: O::KIND, needs: O::pool(id), options }
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
    pub(super) fn new(changes: Changes, audit: Audit) -> Self {
        Self { changes, audit, turns: Default::default() }
    }

    async fn get<O: Object>(&self, id: &Id) -> Result<O, ObjectRefused> {
        let in_force = self.read().await?;
        let draft = in_force.draft(O::pool(id));
        let object = find::<O>(draft.message(), id)?;
        object.map(|it| answered(it, id)).ok_or_else(|| ObjectRefused::Missing(id.clone()))
    }

    async fn create<O: Object>(
        &self,
        sent: Sent<O>,
        sender: Sender,
        options: Options,
    ) -> Result<(Option<O>, Option<v1::ApplyResult>), ObjectRefused> {
        let id = &sent.id;
        let edit = |configuration: &mut v1::Configuration, daemon| {
            sender.check_schema(daemon, false)?;
            put(configuration, id, sent.object.clone())
        };
        let same = |before: &v1::Configuration, after: &v1::Configuration| {
            let before = find::<O>(before, id)?;
            if before.is_some() && before != find(after, id)? {
                return Err(ObjectRefused::Exists(id.clone()));
            }
            Ok(())
        };
        let change = ObjectChange::of_one::<O>("creation", id, &options);
        self.change_one(&change, id, edit, same).await
    }

    async fn update<O: Object>(
        &self,
        sent: Sent<O>,
        update: Update<'_>,
        sender: Sender,
        options: Options,
    ) -> Result<(Option<O>, Option<v1::ApplyResult>), ObjectRefused> {
        let id = &sent.id;
        let edit = |configuration: &mut v1::Configuration, daemon| {
            sender.check_schema(daemon, mask::replaces(&sent.object, update.mask)?)?;
            let object = update.of(find::<O>(configuration, id)?, &sent)?;
            put(configuration, id, object)
        };
        let change = ObjectChange::of_one::<O>("update", id, &options);
        self.change_one(&change, id, edit, |_, _| Ok(())).await
    }

    async fn delete<O: Object>(
        &self,
        id: &Id,
        etag: &str,
        allow_missing: bool,
        options: Options,
    ) -> Result<Option<v1::ApplyResult>, ObjectRefused> {
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
        let change = ObjectChange::of_one::<O>("deletion", id, &options);
        let (result, _) = self.apply(&change, edit, needed, |_, _| Ok(())).await?;
        Ok(Some(result))
    }

    async fn change_one<O: Object>(
        &self,
        change: &ObjectChange<'_>,
        id: &Id,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<ObjectPath, ObjectRefused>,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), ObjectRefused>,
    ) -> Result<(Option<O>, Option<v1::ApplyResult>), ObjectRefused> {
        let edit = |configuration: &mut v1::Configuration, daemon: Revision| {
            Ok(vec![Place { path: edit(configuration, daemon)?, field: O::FIELD.into() }])
        };
        let (result, after) = self.apply(change, edit, ObjectRefused::Invalid, judge).await?;
        let object = find::<O>(&after, id)?.ok_or_else(|| ObjectRefused::Missing(id.clone()))?;
        Ok((Some(answered(object, id)), Some(result)))
    }

    /// Applies the configuration that `edit` makes of the one in force, and returns the result and the new configuration.
    /// `edit` returns where the objects of the request are in it, and `judge` checks the configuration before and after.
    async fn apply(
        &self,
        change: &ObjectChange<'_>,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<Vec<Place>, ObjectRefused>,
        invalid: impl Fn(Box<Invalid>) -> ObjectRefused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), ObjectRefused>,
    ) -> Result<(v1::ApplyResult, v1::Configuration), ObjectRefused> {
        let actor = caller().actor;
        let turn = self.turns[usize::from(matches!(actor, Actor::Certificate(_)))].lock().await;
        let at_work = working().await;
        let result = self.try_apply(change, &actor, edit, invalid, judge).await;
        drop((turn, at_work));
        if let Err(refused) = &result
            && change.must_log(refused)
        {
            self.audit.refused(&actor, &change.request, &refused.to_string());
        }
        let (applied, after) = result?;
        let applied = self.changes.with_balancers(applied, change.options.dry_run).await;
        Ok((convert::applied(&applied), after))
    }

    async fn try_apply(
        &self,
        change: &ObjectChange<'_>,
        actor: &Actor,
        edit: impl Fn(&mut v1::Configuration, Revision) -> Result<Vec<Place>, ObjectRefused>,
        invalid: impl Fn(Box<Invalid>) -> ObjectRefused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), ObjectRefused>,
    ) -> Result<(Applied, v1::Configuration), ObjectRefused> {
        let ObjectChange { request, kind, needs, options } = change;
        let Options { dry_run, reason, force } = options;
        for _ in 0..MAX_TRIES {
            let in_force = self.in_force().await?;
            let (generation, schema) = (in_force.generation, in_force.schema);
            let edit = |draft: &Draft<'_>| edited(draft, kind, schema, &edit, &invalid);
            let edited = match edit(&in_force.draft(*needs))? {
                Some(edited) => Some(edited),
                None => edit(&Draft::whole(in_force.whole()))?,
            };
            // The whole always shows whether it is valid.
            let Some(Edited { before, after, requested, places }) = edited else { continue };
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
                request: request.clone(),
                reason: reason.clone(),
                force: *force,
                is_scoped: caller().scope.is_some(),
                ..Apply::default()
            };
            match self.audit.apply(&self.changes, apply).await? {
                Ok(applied) => return Ok((applied, after)),
                Err(Refusal::Conflict { .. }) => {}
                Err(Refusal::OpenSlots(mut open)) => {
                    open.invalid = for_request(open.invalid, &places, kind);
                    return Err(ObjectRefused::Command(Refusal::OpenSlots(open).into()));
                }
                Err(refusal) => return Err(ObjectRefused::Command(refusal.into())),
            }
        }
        Err(ObjectRefused::Busy(request.clone(), MAX_TRIES))
    }

    async fn read(&self) -> Result<InForce, ObjectRefused> {
        let _at_work = working().await;
        self.in_force().await
    }

    /// The configuration in force; or a stored one that the daemon cannot use, if it has no unknown fields: a call may
    /// correct it.
    async fn in_force(&self) -> Result<InForce, ObjectRefused> {
        let exported: Exported = self.changes.commands().export().await?;
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
