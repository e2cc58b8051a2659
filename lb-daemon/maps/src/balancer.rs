//! The balancer at work.

use super::{Attached, Component, DataplaneError, Options, WritableMaps, opener::Opener};

/// The balancer's program on its interfaces, and its maps.
#[derive(Debug)]
pub struct Dataplane {
    /// The program on its interfaces.
    pub attached: Attached,
    /// The maps: what they held before stands, and the counters go on.
    pub maps: WritableMaps,
}

impl Dataplane {
    /// Loads the balancer over its pinned maps and attaches it; a program that is there already is
    /// replaced without a gap.
    ///
    /// # Errors
    /// [`DataplaneError`]: what ran before runs on.
    pub fn open(options: &Options) -> Result<Self, DataplaneError> {
        let pins = Opener::new(&options.bpffs, Component::Balancer);
        let (attached, maps) =
            Attached::open(Component::Balancer, options, || WritableMaps::open(&pins))?;
        Ok(Self { attached, maps })
    }
}
