//! A component at work: its object loaded, its maps pinned, its program on the interfaces.

pub(crate) mod answers;
mod detach;
pub(crate) mod filter;
mod hook;
mod interface;
mod occupant;
mod pinned;
mod program;
mod slow_path;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use aya::Ebpf;

use crate::{
    BpffsError, Component, LoadError, MapsError, MemberMaps, Objects, Pins, SizeSettings,
    WritableMaps,
    bpffs::{self, PinsLock},
    loader,
    opener::Opener,
};

pub use answers::remove_filters_for_answers;
pub use detach::{Detached, LockedPins, detach};
use hook::Attachment;
pub(crate) use hook::link_message;
pub use hook::{AttachedMode, Hook, XdpMode};
pub use interface::{AttachError, Interface};
pub use occupant::{Hold, Linked, Occupant, links, occupant};
use program::PinnedProgram;
pub(crate) use program::Program;
pub use slow_path::{SlowPathError, load_slow_path};

/// Where a component works and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The BPF file system for the pins.
    pub bpffs: PathBuf,
    /// Names of the interfaces.
    pub interfaces: Vec<String>,
    /// Where the program is attached to them.
    pub hook: Hook,
    /// The packet programs.
    pub objects: Objects,
    /// How much the maps of a balancer should hold.
    pub sizes: SizeSettings,
}

/// Why the packet path cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum DataplaneError {
    /// The pins' file system.
    #[error(transparent)]
    Bpffs(#[from] BpffsError),
    /// The object.
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// An interface.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The program cannot be pinned.
    #[error("{}", .path.display())]
    Pin {
        /// The pin.
        path: PathBuf,
        source: io::Error,
    },
}

/// A component's program on its interfaces. Dropping it changes nothing there; it lets another daemon
/// have the pins.
#[derive(Debug)]
pub struct Attached {
    pins: Pins,
    hook: Hook,
    interfaces: Mutex<Vec<Interface>>,
    /// Names of interfaces whose place another one has, and since when.
    replaced: Mutex<BTreeMap<String, Instant>>,
    _lock: PinsLock,
}

/// How long an interface keeps the program after another one has taken its place: interfaces that exchange their names
/// have others meanwhile.
const REPLACED_REST: Duration = Duration::from_secs(2);

/// What [`Attached::restore`] found.
#[derive(Debug, Default)]
pub struct Restored {
    /// The interfaces that have the program again.
    pub attached: Vec<Interface>,
    /// Those that have it not, or have no name by which the settings know them, by their place in [`Options::interfaces`].
    pub missing: Vec<(usize, AttachError)>,
}

impl Attached {
    /// Loads a component's object over its pinned maps and attaches it; `fill` runs in between, before
    /// the new program sees a packet. Interfaces that are no longer listed are detached.
    ///
    /// # Errors
    /// [`DataplaneError`]; links that this call made are gone then, and all pins where there were none
    /// before.
    pub(crate) fn open<T>(
        component: Component,
        options: &Options,
        fill: impl FnOnce() -> Result<T, MapsError>,
    ) -> Result<(Self, T), DataplaneError> {
        let pins = Pins::new(&options.bpffs, component);
        bpffs::prepare(&options.bpffs)?;
        let first = !pins.root().exists();
        let mut lock = None;
        if !first {
            lock = Some(prepare(&pins)?);
            pinned::follow_names(&pins)?;
        }
        for interface in &options.interfaces {
            interface::may_have(&pins, interface, options.hook)?;
        }
        let lock = lock.map_or_else(|| prepare(&pins), Ok)?;
        let make = || -> Result<_, DataplaneError> {
            let mut loaded =
                loader::load(&options.objects, component, options.hook, &pins, &options.sizes)?;
            let filled = fill()?;
            Ok((attach_all(&mut loaded, component, &pins, options)?, filled))
        };
        match make() {
            Ok((interfaces, filled)) => {
                let (hook, interfaces) = (options.hook, Mutex::new(interfaces));
                let replaced = Mutex::default();
                Ok((Self { pins, hook, interfaces, replaced, _lock: lock }, filled))
            }
            Err(error) => {
                // Maps without a program would look like a component at work.
                if first {
                    let _already_failing = detach::clear(&pins);
                    if component == Component::Balancer
                        && Pins::layouts(&options.bpffs, component).is_ok_and(|it| it.is_empty())
                    {
                        let _already_failing = detach::remove_flows(&options.bpffs);
                    }
                }
                Err(error)
            }
        }
    }

    /// The interfaces, each with what the kernel reports now.
    pub fn interfaces(&self) -> Vec<Interface> {
        let now = |interface: Interface| Interface {
            mode: self.attachment(&interface.name, interface.index).map(|it| it.mode),
            ..interface
        };
        let interfaces = self.known().clone();
        interfaces.into_iter().map(now).collect()
    }

    /// Indices of the interfaces; of one that is gone its last.
    pub fn indices(&self) -> BTreeSet<u32> {
        self.known().iter().map(|interface| interface.index).collect()
    }

    /// Looks at each interface, and attaches the program again where it is gone: the interface was removed and is back, or
    /// something took the program off. The maps stay, and the link is a new one under the same pin. `names` are the names
    /// that the interfaces of [`Options::interfaces`] have now; `None`: there is none by which the settings know it.
    ///
    /// # Errors
    /// Pins cannot be read or renamed.
    pub fn restore(&self, names: &[Option<String>]) -> Result<Restored, BpffsError> {
        pinned::follow_names(&self.pins)?;
        let mut restored = Restored::default();
        // Not in the loop's head, which would hold the lock for all of it.
        let interfaces = self.known().clone();
        for (place, (known, name)) in interfaces.iter().zip(names).enumerate() {
            match self.restore_one(known, name.as_deref()) {
                Ok((interface, was_gone)) => {
                    self.known()[place] = interface.clone();
                    restored.attached.extend(was_gone.then_some(interface));
                }
                Err(error) => {
                    if let AttachError::Renamed { now, .. } = &error {
                        self.known()[place].name.clone_from(now);
                    }
                    restored.missing.push((place, error));
                }
            }
        }
        self.remove_others()?;
        Ok(restored)
    }

    /// The interface, and whether the program was gone from it.
    fn restore_one(
        &self,
        known: &Interface,
        name: Option<&str>,
    ) -> Result<(Interface, bool), AttachError> {
        let Some(name) = name else {
            let interface = known.name.clone();
            let is_on = |now: &String| self.attachment(now, known.index).is_some();
            return Err(match pinned::name_of(known.index).filter(is_on) {
                Some(now) => AttachError::Renamed { interface, now },
                None => AttachError::NoInterface(interface),
            });
        };
        let index = interface::index_of(name)?;
        if let Some(Attachment { mode, .. }) = self.attachment(name, index) {
            return Ok((Interface { name: name.into(), index, mode: Some(mode) }, false));
        }
        let refused = |source| AttachError::Refused { interface: name.into(), source };
        let mut program = PinnedProgram::open(&self.pins, self.hook).map_err(refused)?;
        let attached = interface::attach(&mut program.program(), &self.pins, name, self.hook);
        attached.map(|(interface, _)| (interface, true))
    }

    /// Our program on an interface by a pin of its name.
    fn attachment(&self, interface: &str, index: u32) -> Option<Attachment> {
        let own = pinned::own_program(&self.pins);
        let is_own = |now: &Attachment| own.is_none_or(|own| now.program == own);
        pinned::attached(&self.pins, interface, index).filter(is_own)
    }

    /// Takes the program off interfaces whose place another one has: one that was renamed, when its name is back.
    fn remove_others(&self) -> Result<(), BpffsError> {
        let mut others = detach::attached(&self.pins)?;
        others.retain(|name| self.known().iter().all(|known| known.name != *name));
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.retain(|name, _| others.contains(name));
        for name in others {
            let since = *replaced.entry(name.clone()).or_insert_with(Instant::now);
            let is_gone = !self.pins.filter(&name).exists()
                && pinned::index_here(&self.pins.link(&name)).is_none();
            if is_gone || since.elapsed() >= REPLACED_REST {
                tracing::warn!(
                    interface = name,
                    "interface {name}: detached, because another one has its place"
                );
                pinned::remove(&self.pins, &name)?;
            }
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Vec<Interface>> {
        self.interfaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn prepare(pins: &Pins) -> Result<PinsLock, BpffsError> {
    bpffs::make_directory(&pins.maps())?;
    bpffs::make_directory(&pins.links())?;
    PinsLock::take(pins)
}

fn attach_all(
    loaded: &mut Ebpf,
    component: Component,
    pins: &Pins,
    options: &Options,
) -> Result<Vec<Interface>, DataplaneError> {
    if component == Component::Balancer {
        let id = loader::program(loaded, component, options.hook)?.id();
        let id = id.map_err(|source| LoadError::Program { component, source })?;
        slow_path::pin(loaded, pins, id)?;
    }
    let mut program = loader::program(loaded, component, options.hook)?;
    let (mut interfaces, mut created) = (Vec::new(), Vec::new());
    pinned::remove_unplaced(pins)?;
    for name in &options.interfaces {
        match interface::attach(&mut program, pins, name, options.hook) {
            Ok((interface, new)) => {
                created.extend(new.then_some(name));
                interfaces.push(interface);
            }
            Err(error) => {
                for name in created {
                    let _already_failing = pinned::remove(pins, name);
                }
                return Err(error.into());
            }
        }
    }
    for name in detach::attached(pins)? {
        if !options.interfaces.contains(&name) {
            tracing::info!(
                interface = name,
                "interface {name}: detached, because it is no longer listed"
            );
            pinned::remove(pins, &name)?;
        }
    }
    pin_program(&mut program, pins)?;
    Ok(interfaces)
}

/// Pins the program for people and tests to find; the links do not need it.
fn pin_program(program: &mut Program<'_>, pins: &Pins) -> Result<(), DataplaneError> {
    let (path, next) = (pins.program(), pins.next_program());
    let _from_a_crash = fs::remove_file(&next);
    program
        .pin(&next)
        .and_then(|()| fs::rename(&next, &path))
        .map_err(|source| DataplaneError::Pin { path, source })
}

/// The balancer's program on its interfaces, and its maps.
#[derive(Debug)]
pub struct Dataplane {
    /// The program on its interfaces.
    pub attached: Attached,
    /// The maps: what they held before stands, and the counters go on.
    pub maps: WritableMaps,
    /// The same maps, for the one who writes member words.
    pub member_maps: MemberMaps,
}

impl Dataplane {
    /// Loads the balancer over its pinned maps and attaches it; a program that is there already is
    /// replaced without a gap.
    ///
    /// # Errors
    /// [`DataplaneError`]: what ran before runs on.
    pub fn open(options: &Options) -> Result<Self, DataplaneError> {
        let (attached, (mut maps, member_maps)) =
            Attached::open(Component::Balancer, options, || {
                let pins = Opener::new(&options.bpffs, Component::Balancer)?;
                Ok((WritableMaps::open(&pins)?, MemberMaps::open(&pins)?))
            })?;
        maps.wait_for_readers()?;
        slow_path::remove_unused(&attached.pins)?;
        Ok(Self { attached, maps, member_maps })
    }
}
