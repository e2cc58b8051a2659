//! Warnings in answers.

use std::fmt;

use lb_model::{Name, ObjectReference, removal_guard::Removal};

/// Most warnings for one reason.
pub(crate) const MOST_OF_ONE_REASON: usize = 20;

/// A consequence of a change that its author may not have intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub reason: WarningReason,
    /// What it is about, if that is one object.
    pub object: Option<ObjectReference>,
    /// A sentence.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningReason {
    /// A pool has no backend left for new connections.
    PoolUnserved,
    /// A pool that services have has no backends at all.
    PoolEmpty,
    /// Backends have a weight that is too small for a slot.
    WithoutSlots,
    /// No check of a pool with a tunnel goes through it.
    TunnelUnchecked,
    /// A remap ends before its settle time is over.
    RemapEnded,
    /// Backends of a pool with direct return are behind a gateway.
    BehindGateway,
    /// An override stays in force beside the change of what it is about.
    Overridden,
    PacketPathBehind,
    /// The configuration file reverts the change.
    FileDiffers,
    /// Fields that only one side knows are lost.
    Schema,
    /// The configuration before could not be used.
    UnusableBefore,
    /// An override has less effect than it asks for, or none.
    OverrideLimited,
    /// What an override asked for is asked for by something else too.
    StillStopped,
    /// The change is refused unless it is forced.
    ForceRequired,
}

impl Warning {
    /// A warning that is about no single object.
    pub fn new(reason: WarningReason, text: impl Into<String>) -> Self {
        Self { reason, object: None, text: text.into() }
    }

    pub(crate) fn pool_unserved(pool: &Name) -> Self {
        let text = format!("pool {pool} has no backend left for new connections");
        Self::about(ObjectReference::Pool(pool.clone()), WarningReason::PoolUnserved, text)
    }

    pub(crate) fn about(
        object: ObjectReference,
        reason: WarningReason,
        text: impl Into<String>,
    ) -> Self {
        Self { reason, object: Some(object), text: text.into() }
    }
}

/// That a change would be refused unless it is forced.
pub fn force_warnings(removals: &[Removal]) -> impl Iterator<Item = Warning> {
    removals.iter().take(MOST_OF_ONE_REASON).map(|removal| {
        let text = format!("{removal}: this needs --force");
        match removal.object() {
            Some(object) => Warning::about(object, WarningReason::ForceRequired, text),
            None => Warning::new(WarningReason::ForceRequired, text),
        }
    })
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
impl PartialEq<&str> for Warning {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

#[cfg(test)]
impl PartialEq<String> for Warning {
    fn eq(&self, text: &String) -> bool {
        self.text == *text
    }
}
