//! An edit of the configuration in force: of one object in its message.

use lb_config::{Draft, Invalid, Requested};
use spillway_proto::v1;

use super::{
    ObjectRefused,
    object::{Id, Needs, Object, etag},
};
use lb_model::Configuration;
use lb_store::Revision;

/// The configuration that a call starts from.
pub(super) struct InForce {
    pub(super) generation: u64,
    pub(super) configuration: Content,
    /// Schema revision of the daemon.
    pub(super) schema: Revision,
}

pub(super) enum Content {
    InForce(Box<Configuration>),
    /// A stored message that the daemon cannot use. A call may correct it.
    Stored(v1::Configuration),
}

impl InForce {
    /// All of it.
    pub(super) fn whole(&self) -> v1::Configuration {
        match &self.configuration {
            Content::InForce(configuration) => lb_config::to_message(configuration),
            Content::Stored(message) => message.clone(),
        }
    }

    /// As much of it as a call about an object needs.
    pub(super) fn draft<'a>(&'a self, needs: Needs<'a>) -> Draft<'a> {
        match (&self.configuration, needs) {
            (Content::InForce(configuration), Needs::Pool(pool)) => {
                Draft::of_pool(configuration, pool)
            }
            _ => Draft::whole(self.whole()),
        }
    }
}

/// An edit of a configuration that is valid.
pub(super) struct Edited {
    pub(super) before: v1::Configuration,
    pub(super) after: v1::Configuration,
    pub(super) requested: Requested,
    pub(super) places: Vec<Place>,
}

/// Where an object of a request is in the edited configuration.
pub(super) struct Place {
    pub(super) path: ObjectPath,
    /// Its field in the request, as `backend` or `backends[3]`.
    pub(super) field: String,
}

/// The configuration that `edit` makes of a draft; `None` if only the whole shows whether it is valid.
pub(super) fn edited(
    draft: &Draft<'_>,
    kind: &'static str,
    schema: Revision,
    edit: &impl Fn(&mut v1::Configuration, Revision) -> Result<Vec<Place>, ObjectRefused>,
    invalid: &impl Fn(Box<Invalid>) -> ObjectRefused,
) -> Result<Option<Edited>, ObjectRefused> {
    let before = draft.message().clone();
    let mut edited = before.clone();
    let places = edit(&mut edited, schema)?;
    let refuse = |wrong: Invalid| invalid(for_request(wrong, &places, kind).into());
    let Some(requested) = draft.validate(&edited).map_err(refuse)? else { return Ok(None) };
    // The state loop will find the same slots in force, or refuse because of the generation.
    let in_force = lb_config::slots_of_message(&before);
    let after = draft.message_of(&*requested.resolved(&in_force).map_err(refuse)?);
    Ok(Some(Edited { before, after, requested, places }))
}

/// Mistakes of a configuration as those of the objects that were sent.
pub(super) fn for_request(wrong: Invalid, places: &[Place], kind: &'static str) -> Invalid {
    let rephrase =
        |wrong: Invalid, place: &Place| wrong.for_single_object(&place.path, kind, &place.field);
    places.iter().fold(wrong, rephrase)
}

/// Path of an object in a configuration, in the form of [`Invalid`].
pub(super) type ObjectPath = Vec<(&'static str, usize)>;

pub(super) fn find<'a, O: Object>(
    configuration: &'a v1::Configuration,
    id: &Id,
) -> Result<Option<&'a O>, ObjectRefused> {
    let list = O::list(configuration, id).ok_or_else(|| ObjectRefused::Missing(id.outer()))?;
    Ok(list.iter().find(|object| object.name() == id.name))
}

/// Replaces the object with this id, or adds it at the end.
pub(super) fn put<O: Object>(
    configuration: &mut v1::Configuration,
    id: &Id,
    object: O,
) -> Result<ObjectPath, ObjectRefused> {
    let outer = id.pool.as_ref().and_then(|name| {
        let index = configuration.pools.iter().position(|pool| pool.name == *name)?;
        Some((v1::Pool::LIST, index))
    });
    let list = O::list_mut(configuration, id).ok_or_else(|| ObjectRefused::Missing(id.outer()))?;
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

/// Checks the etag that the client expects, if any.
pub(super) fn check_etag<O: Object>(
    object: &O,
    id: &Id,
    expected: &str,
) -> Result<(), ObjectRefused> {
    let current = etag(object);
    if expected.is_empty() || expected == current {
        return Ok(());
    }
    Err(ObjectRefused::Changed { id: id.clone(), expected: expected.into(), current })
}
