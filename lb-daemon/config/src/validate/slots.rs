//! Slots that a message leaves open. Only the generation in force says what a pool keeps, and other calls may change
//! that generation until their turn comes, so the state loop settles these numbers.

use std::{borrow::Cow, collections::BTreeMap};

use lb_model::{Configuration, Name, Pool, bounds, slots};
use spillway_proto::v1;

use super::{
    invalid::{Invalid, ObjectPath},
    values,
};

/// Pools that a hint names.
const MAX_NAMED_POOLS: usize = 8;

/// A valid configuration in which pools may leave their slots open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Open slots are chosen from the backends.
    configuration: Configuration,
    open: Vec<Open>,
}

/// A pool without a number of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    name: Name,
    /// Its place in the message.
    index: usize,
    /// Whether the number in force counts: `slots` is unset, and not 0.
    keeps: bool,
}

/// Several balancers need the same numbers, and the request leaves some open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invalid}")]
pub struct OpenSlots {
    /// Names the first of these pools.
    pub invalid: Invalid,
    /// Which numbers to set.
    pub hint: String,
}

/// Slots of the tables of pools, by name.
pub type SlotsByPool = BTreeMap<Name, u32>;

impl Requested {
    pub(super) fn new(message: &v1::Configuration, configuration: Configuration) -> Self {
        let pools = message.pools.iter().enumerate();
        let open = pools.filter(|(_, pool)| pool.slots.unwrap_or_default() == 0);
        let open = open.filter_map(|(index, pool)| {
            Some(Open { name: Name::new(&pool.name).ok()?, index, keeps: pool.slots.is_none() })
        });
        Self { configuration, open: open.collect() }
    }

    /// Open slots are chosen from the backends.
    pub(crate) fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// The configuration with all numbers. `in_force` has those of the generation in force.
    ///
    /// # Errors
    /// With these numbers the configuration is invalid.
    pub fn resolve(self, in_force: &SlotsByPool) -> Result<Configuration, Invalid> {
        if self.open.is_empty() {
            return Ok(self.configuration);
        }
        Ok(self.resolved(in_force)?.into_owned())
    }

    /// As [`Self::resolve`].
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn resolved(&self, in_force: &SlotsByPool) -> Result<Cow<'_, Configuration>, Invalid> {
        let (mut invalid, mut configuration) =
            (Invalid::default(), Cow::Borrowed(&self.configuration));
        for open in &self.open {
            let Some(pool) = self.configuration.pools.get(&open.name) else { continue };
            let number = open.number(pool, in_force);
            if number != pool.slots
                && let Some(pool) = configuration.to_mut().pool_mut(&open.name)
            {
                pool.slots = number;
            }
            invalid.value(has_room(&open.path(), pool, number, open.keeps));
        }
        invalid.or(configuration)
    }

    /// Refuses open slots if there are several balancers: what they keep depends on their history.
    ///
    /// # Errors
    /// Some pool has no number.
    pub fn require_slots(&self, in_force: &SlotsByPool) -> Result<(), OpenSlots> {
        let balancers = self.configuration.balancers.get();
        let [first, others @ ..] = &*self.open else { return Ok(()) };
        if balancers == 1 {
            return Ok(());
        }
        let more = match others.len() {
            0 => String::new(),
            1 => "; 1 more pool has none".into(),
            others => format!("; {others} more pools have none"),
        };
        let cause = format!("must be a number, the same on all {balancers} balancers{more}");
        let pools = self.open.iter().take(MAX_NAMED_POOLS).filter_map(|open| {
            let number = open.number(self.configuration.pools.get(&open.name)?, in_force);
            Some(format!("slots = {number} in pool {}", open.name))
        });
        let pools = pools.collect::<Vec<_>>().join(", ");
        let unnamed = match self.open.len().saturating_sub(MAX_NAMED_POOLS) {
            0 => String::new(),
            others => format!(", and the slots of {others} more"),
        };
        let hint = format!(
            "set {pools}{unnamed}, in the configuration of all balancers: this one has these numbers in force, or would \
             choose them; `spillway export` prints all that are in force"
        );
        Err(OpenSlots { invalid: first.path().invalid("slots", cause), hint })
    }
}

/// Without open slots.
impl From<Configuration> for Requested {
    fn from(configuration: Configuration) -> Self {
        Self { configuration, open: Vec::new() }
    }
}

impl Open {
    /// `pool` has the chosen number.
    fn number(&self, pool: &Pool, in_force: &SlotsByPool) -> u32 {
        let kept = if self.keeps { in_force.get(&self.name) } else { None };
        kept.copied().unwrap_or(pool.slots)
    }

    fn path(&self) -> ObjectPath {
        ObjectPath::default().child("pools", self.index, self.name.as_str())
    }
}

/// The slots of a configuration's pools.
pub fn slots_by_pool(configuration: &Configuration) -> SlotsByPool {
    configuration.pools.iter().map(|(name, pool)| (name.clone(), pool.slots)).collect()
}

/// The slots of a message's pools, where they are valid.
pub fn slots_of_message(message: &v1::Configuration) -> SlotsByPool {
    let valid = |pool: &v1::Pool| {
        let number = read(&ObjectPath::default(), pool.slots).ok().flatten()?;
        Some((Name::new(&pool.name).ok()?, number))
    };
    message.pools.iter().filter_map(valid).collect()
}

/// The number of a message; `None`: it is left open.
pub(super) fn read(at: &ObjectPath, slots: Option<u32>) -> Result<Option<u32>, Invalid> {
    let Some(slots) = slots.filter(|slots| *slots != 0) else { return Ok(None) };
    let slots: u32 = values::within(at, "slots", slots, bounds::SLOTS)?;
    match (2..).take_while(|d| d * d <= slots).find(|d| slots.is_multiple_of(*d)) {
        None => Ok(Some(slots)),
        Some(divisor) => {
            let cause = format!("{slots} is not a prime: {divisor} divides it");
            Err(at.invalid("slots", cause))
        }
    }
}

/// Writes a pool's number, or the one to choose for it.
pub(super) fn set(at: &ObjectPath, pool: &mut Pool, number: Option<u32>) -> Result<(), Invalid> {
    match number {
        Some(number) => {
            has_room(at, pool, number, false)?;
            pool.slots = number;
        }
        // Checked once it is known whether the pool keeps another number.
        None => pool.slots = slots::choose(pool),
    }
    Ok(())
}

/// Each region needs more slots than it has backends.
fn has_room(at: &ObjectPath, pool: &Pool, slots: u32, kept: bool) -> Result<(), Invalid> {
    let mut backends: BTreeMap<&Name, u32> = BTreeMap::new();
    for backend in pool.backends.values() {
        *backends.entry(&backend.region).or_default() += 1;
    }
    let Some((region, count)) = backends.into_iter().find(|(_, count)| *count >= slots) else {
        return Ok(());
    };
    let how = match kept {
        true => "; set another number, or 0 to have one chosen",
        false => "",
    };
    let cause = format!("{slots} must be more than the {count} backends in region {region:?}{how}");
    Err(at.invalid("slots", cause))
}
