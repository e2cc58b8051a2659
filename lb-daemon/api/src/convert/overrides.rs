//! Overrides in messages.

use spillway_proto::v1;

use super::{WrongField, responses::timestamp};
use lb_config::message::ApiEnum;
use lb_control::command::{OverridesEvent, OverridesInForce};
use lb_model::{
    Name,
    overrides::{Key, Kind, Override, Target},
};

/// The target of a request.
///
/// # Errors
/// The field that is wrong; `path` is that of the target.
pub(crate) fn override_target(
    path: &str,
    message: &v1::OverrideTarget,
) -> Result<Target, WrongField> {
    let v1::OverrideTarget { backend, pool, region } = message;
    let name = |field: &str, text: &str| {
        let wrong = |error: lb_model::NameError| {
            WrongField::new(format!("{path}.{field}"), error.to_string())
        };
        (!text.is_empty()).then(|| Name::new(text).map_err(wrong)).transpose()
    };
    let (pool, region) = (name("pool", pool)?, name("region", region)?);
    if !backend.is_empty() {
        if region.is_some() {
            let cause = "must not be set beside a backend";
            return Err(WrongField::new(format!("{path}.region"), cause));
        }
        let wrong = |_| {
            let cause = "must be an IPv4 or IPv6 address";
            WrongField::new(format!("{path}.backend"), cause)
        };
        return Ok(Target::Backend { address: backend.parse().map_err(wrong)?, pool });
    }
    match (pool, region) {
        (Some(pool), Some(region)) => Ok(Target::Group { pool, region }),
        (Some(pool), None) => Ok(Target::Pool(pool)),
        (None, Some(region)) => Ok(Target::Region(region)),
        (None, None) => Err(WrongField::new(path, "must have a backend, a pool or a region")),
    }
}

/// The keys of a request.
///
/// # Errors
/// The name that is wrong.
pub(crate) fn override_names(names: &[String]) -> Result<Vec<Key>, WrongField> {
    let key = |(at, name): (usize, &String)| {
        name.parse().map_err(|error: lb_model::overrides::KeyError| {
            WrongField::new(format!("names[{at}]"), error.to_string())
        })
    };
    names.iter().enumerate().map(key).collect()
}

pub(crate) fn override_message((key, it): (&Key, &Override)) -> v1::Override {
    let (backend, pool, region) = match &key.target {
        Target::Backend { address, pool } => (Some(address.to_string()), pool.as_ref(), None),
        Target::Pool(pool) => (None, Some(pool), None),
        Target::Group { pool, region } => (None, Some(pool), Some(region)),
        Target::Region(region) => (None, None, Some(region)),
    };
    let text = |name: Option<&Name>| name.map(ToString::to_string).unwrap_or_default();
    v1::Override {
        name: key.to_string(),
        target: Some(v1::OverrideTarget {
            backend: backend.unwrap_or_default(),
            pool: text(pool),
            region: text(region),
        }),
        kind: key.kind.to_api().into(),
        percent: it.action.percent().map(|percent| u8::from(percent).into()),
        who: it.who.clone(),
        reason: it.reason.clone(),
        set_at: Some(timestamp(it.set_at)),
        until: it.until.map(|until| timestamp(until.wall)),
        absent_since: it.absent_since.map(|since| timestamp(since.wall)),
        local: key.is_local(),
    }
}

pub(super) fn override_messages(in_force: &OverridesInForce) -> Vec<v1::Override> {
    in_force.overrides.iter().map(override_message).collect()
}

pub(super) fn overrides_event(event: &OverridesEvent) -> v1::OverridesChange {
    v1::OverridesChange {
        revision: event.revision,
        set: event.set.iter().map(|(key, it)| override_message((key, it))).collect(),
        ended: event.ended.iter().map(Key::to_string).collect(),
        unstored: event.is_unstored,
    }
}

/// The kind of a request; `None`: it has none that is known.
pub(crate) fn override_kind(kind: i32) -> Option<Kind> {
    Kind::from_api(kind).ok().flatten()
}
