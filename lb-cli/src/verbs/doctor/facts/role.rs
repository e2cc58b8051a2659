use std::{
    collections::BTreeSet,
    fs,
    net::IpAddr,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use lb_common::abi::verdict::Verdict;
use lb_daemon::{
    causes,
    dataplane::{Linked, MapsError, Pins, ReceiverMaps, Role, links},
};

use super::{Holder, Places};

/// A role with pins of this version.
#[derive(Clone, Debug)]
pub(in super::super) struct Installed {
    pub(in super::super) role: Role,
    /// Its interfaces.
    pub(in super::super) links: Vec<Linked>,
    /// Its daemon; `None`: none runs.
    pub(in super::super) holder: Option<Holder>,
    /// Why its maps cannot be read; `None`: they can.
    pub(in super::super) broken: Option<Broken>,
}

/// Maps that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Broken {
    pub(in super::super) kind: Kind,
    pub(in super::super) why: String,
}

/// What that comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    /// We may not.
    Denied,
    /// One of them is not there.
    Incomplete,
    /// They changed each time they were read.
    Changing,
    /// They are of another build, or the kernel refuses.
    Unreadable,
}

impl From<&MapsError> for Broken {
    fn from(error: &MapsError) -> Self {
        let kind = match error {
            MapsError::Permission { .. } => Kind::Denied,
            MapsError::Missing { .. } => Kind::Incomplete,
            MapsError::Changing { .. } => Kind::Changing,
            _ => Kind::Unreadable,
        };
        Self { kind, why: causes::of(error) }
    }
}

/// What a receiver lets through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Receiver {
    /// Prefixes that tunnels may come from, as `10.0.0.2/32`.
    pub(in super::super) sources: Vec<String>,
    /// VIPs that this host serves.
    pub(in super::super) vips: Vec<IpAddr>,
    /// Addresses where tunnels end.
    pub(in super::super) endpoints: BTreeSet<IpAddr>,
    /// Balancers' packets so far in tunnels to other addresses, if there were more just now.
    pub(in super::super) not_local: Option<u64>,
}

/// Longest wait for one more packet of those that there were.
const WATCHED: Duration = Duration::from_secs(2);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

impl Installed {
    /// The pins of a role, where it has any.
    pub(super) fn read(places: &Places, role: Role) -> Option<Self> {
        let pins = Pins::new(&places.bpffs, role);
        pins.root().is_dir().then(|| Self {
            role,
            links: links(&pins).unwrap_or_default(),
            holder: Holder::of(pins.root()),
            broken: None,
        })
    }

    /// Names of its interfaces.
    pub(in super::super) fn names(&self) -> Vec<String> {
        self.links.iter().map(|link| link.name.clone()).collect()
    }
}

impl Receiver {
    /// # Errors
    /// The maps cannot be read.
    pub(super) fn read(places: &Places) -> Result<Self, Broken> {
        let maps = ReceiverMaps::open(&places.bpffs).map_err(|error| Broken::from(&error))?;
        let allowed = maps.allowed().map_err(|error| Broken::from(&error))?;
        Ok(Self {
            sources: allowed.sources.iter().map(ToString::to_string).collect(),
            vips: allowed.vips.into_iter().collect(),
            endpoints: allowed.endpoints,
            not_local: not_local(&maps).map_err(|error| Broken::from(&error))?,
        })
    }
}

/// Looks at a counter that only grows for a while, for what it has from long ago says nothing.
fn not_local(maps: &ReceiverMaps) -> Result<Option<u64>, MapsError> {
    let count = || -> Result<u64, MapsError> {
        let verdicts = maps.verdicts()?.into_iter();
        let own = verdicts.filter(|(verdict, _)| *verdict == Verdict::TunnelNotLocal);
        Ok(own.map(|(_, counter)| counter.packets).sum())
    };
    let (first, begun) = (count()?, Instant::now());
    while first > 0 && begun.elapsed() < WATCHED {
        thread::park_timeout(PAUSE);
        let now = count()?;
        if now > first {
            return Ok(Some(now));
        }
    }
    Ok(None)
}

/// Directories of pins under the BPF file system that this version does not know.
pub(super) fn others(places: &Places) -> Vec<PathBuf> {
    let own: Vec<_> = Role::ALL.map(|role| Pins::new(&places.bpffs, role).root().to_owned()).into();
    let Ok(there) = fs::read_dir(places.bpffs.join("spillway")) else { return Vec::new() };
    let mut others: Vec<_> = there
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !own.contains(path))
        .collect();
    others.sort();
    others
}
