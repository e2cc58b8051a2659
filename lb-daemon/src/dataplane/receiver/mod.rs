//! The receiver at work: its program, and what it lets through.

mod maps;
mod prefix;

use std::{collections::BTreeSet, net::IpAddr, num::NonZeroU16};

pub use maps::ReceiverMaps;
pub use prefix::{Prefix, PrefixError};

use super::{Attached, DataplaneError, Options, Role};

/// What a receiver lets through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowLists {
    /// Where balancers send from.
    pub sources: BTreeSet<Prefix>,
    /// The VIPs that this host serves.
    pub vips: BTreeSet<IpAddr>,
    /// UDP port where GUE ends; `None`: nowhere.
    pub gue_port: Option<NonZeroU16>,
}

/// The receiver's program on its interfaces.
#[derive(Debug)]
pub struct Receiver {
    /// The program on its interfaces.
    pub attached: Attached,
    /// Its maps.
    pub maps: ReceiverMaps,
}

impl Receiver {
    /// Loads the receiver over its pinned maps, makes them equal the lists, and attaches it. What
    /// is allowed before and after is allowed all the time.
    ///
    /// # Errors
    /// [`DataplaneError`]: what ran before runs on.
    pub fn open(options: &Options, allowed: &AllowLists) -> Result<Self, DataplaneError> {
        let (attached, maps) = Attached::open(Role::Receiver, options, || {
            let mut maps = ReceiverMaps::open(&options.bpffs)?;
            maps.fill(allowed)?;
            Ok(maps)
        })?;
        Ok(Self { attached, maps })
    }
}
