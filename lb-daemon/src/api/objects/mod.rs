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

use prost_types::FieldMask;
use spillway_proto::v1;
use tokio::sync::Mutex;

use super::{
    access::{caller, within},
    convert::{self, Invalid},
};
use crate::command::{Apply, Commands, Exported, Refusal};
use answer::{Answer, Removed};
use object::{Id, Object, etag};
use refused::Refused;

/// How often a call reads again because others changed the configuration meanwhile.
const TRIES: usize = 10;

/// The door.
#[derive(Debug)]
pub(super) struct Objects {
    commands: Commands,
    turn: Mutex<()>,
}

/// What is to become of an object.
struct Update<'a, O> {
    object: &'a O,
    mask: Option<&'a FieldMask>,
    etag: &'a str,
    allow_missing: bool,
}

impl Objects {
    pub(super) fn new(commands: Commands) -> Self {
        Self { commands, turn: Mutex::new(()) }
    }

    async fn get<O: Object>(&self, id: &Id) -> Result<Answer<O>, Refused> {
        let (generation, configuration) = self.read().await?;
        let object = find::<O>(&configuration, id)?.ok_or_else(|| Refused::Missing(id.clone()))?;
        Ok(Answer::of(object, id, generation))
    }

    async fn create<O: Object>(
        &self,
        id: &Id,
        object: &O,
        dry_run: bool,
    ) -> Result<Answer<O>, Refused> {
        let edit = |configuration: &mut v1::Configuration| put(configuration, id, object.clone());
        let same = |before: &v1::Configuration, after: &v1::Configuration| {
            let before = find::<O>(before, id)?;
            if before.is_some() && before != find(after, id)? {
                return Err(Refused::Exists(id.clone()));
            }
            Ok(())
        };
        self.change(id, dry_run, edit, Refused::Invalid, same).await
    }

    async fn update<O: Object>(
        &self,
        id: &Id,
        update: &Update<'_, O>,
        dry_run: bool,
    ) -> Result<Answer<O>, Refused> {
        let edit = |configuration: &mut v1::Configuration| {
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
        self.change(id, dry_run, edit, Refused::Invalid, |_, _| Ok(())).await
    }

    /// What changed.
    async fn delete<O: Object>(
        &self,
        id: &Id,
        etag: &str,
        allow_missing: bool,
        dry_run: bool,
    ) -> Result<Removed, Refused> {
        let edit = |configuration: &mut v1::Configuration| {
            let Some(old) = find::<O>(configuration, id)? else {
                return Err(Refused::Missing(id.clone()));
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
        match self.apply::<O>(id, dry_run, edit, needed, |_, _| Ok(())).await {
            Err(Refused::Missing(_)) if allow_missing => {
                let (generation, _) = self.read().await?;
                Ok(Removed(v1::ApplyResponse { generation, ..v1::ApplyResponse::default() }))
            }
            applied => applied.map(|(applied, _)| Removed(applied)),
        }
    }

    async fn change<O: Object>(
        &self,
        id: &Id,
        dry_run: bool,
        edit: impl Fn(&mut v1::Configuration) -> Result<Place, Refused>,
        invalid: impl Fn(Box<Invalid>) -> Refused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), Refused>,
    ) -> Result<Answer<O>, Refused> {
        let (applied, after) = self.apply::<O>(id, dry_run, edit, invalid, judge).await?;
        let object = find::<O>(&after, id)?.ok_or_else(|| Refused::Missing(id.clone()))?;
        Ok(Answer::of(object, id, applied.generation).with(applied))
    }

    /// Puts the configuration in force as `edit` leaves it, and answers with what came of it and all
    /// that is in force then. `judge` sees it before and after.
    async fn apply<O: Object>(
        &self,
        id: &Id,
        dry_run: bool,
        edit: impl Fn(&mut v1::Configuration) -> Result<Place, Refused>,
        invalid: impl Fn(Box<Invalid>) -> Refused,
        judge: impl Fn(&v1::Configuration, &v1::Configuration) -> Result<(), Refused>,
    ) -> Result<(v1::ApplyResponse, v1::Configuration), Refused> {
        let _turn = self.turn.lock().await;
        for _ in 0..TRIES {
            let (generation, before) = self.read().await?;
            let mut edited = before.clone();
            let place = edit(&mut edited)?;
            let configuration = convert::configuration(&edited)
                .map_err(|wrong| invalid(wrong.of_one(&place, O::KIND, O::FIELD).into()))?;
            let after = v1::Configuration::from(&configuration);
            judge(&before, &after)?;
            let expected_generation = Some(generation);
            within(&before, &after).map_err(Refused::NotPermitted)?;
            let actor = caller().actor;
            let apply = Apply { configuration, dry_run, expected_generation, actor };
            match self.commands.apply(apply).await? {
                Ok(applied) => return Ok(((&applied).into(), after)),
                Err(Refusal::Conflict { .. }) => {}
                Err(refusal) => return Err(Refused::Refusal(refusal.into())),
            }
        }
        Err(Refused::Busy(id.clone(), TRIES))
    }

    async fn read(&self) -> Result<(u64, v1::Configuration), Refused> {
        let Exported { generation, configuration } = self.commands.export().await?;
        Ok((generation, (&configuration).into()))
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
