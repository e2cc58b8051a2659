//! Attaching a program to interfaces by pinned links.

use std::{fs, io, path::Path};

use aya::programs::{
    ProgramError, Xdp,
    links::{FdLink, PinnedLink},
    xdp::{XdpLink, XdpMode as Flags},
};
use nix::net::if_::if_nametoindex;

use super::{
    Pins,
    link_state::{self, AttachedMode, Attachment},
    occupant::{self, Occupant, describe},
    raw,
};

/// How a program is to be attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, or in the stack where the driver cannot, with a warning.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the stack.
    Generic,
}

impl XdpMode {
    const fn allows(self, mode: AttachedMode) -> bool {
        match self {
            Self::Auto => matches!(mode, AttachedMode::Native | AttachedMode::Generic),
            Self::Native => matches!(mode, AttachedMode::Native),
            Self::Generic => matches!(mode, AttachedMode::Generic),
        }
    }
}

/// An interface with our program on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Index.
    pub index: u32,
    /// How the program is attached, as the kernel reported it; `None`: it no longer is.
    pub mode: Option<AttachedMode>,
}

/// Why a program could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such interface.
    #[error("{0}: no such interface")]
    NoInterface(String),
    /// The interface has the other role, or one of another layout.
    #[error(
        "{interface}: has the pins of {other} already, and one interface has one role: stop that \
         spillwayd and remove its pins with `spillway detach`"
    )]
    OtherRole {
        /// The interface.
        interface: String,
        /// Directory name of the other pins.
        other: String,
    },
    /// Somebody else's program is there.
    #[error(
        "{interface}: XDP program {occupant} of somebody else is attached: remove it with the tool \
         that put it there, or with {removal}", removal = .occupant.removal(.interface)
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The program.
        occupant: Occupant,
    },
    /// The driver cannot run XDP programs.
    #[error(
        "{interface}: no native XDP (LRO, a large MTU and too few queues are the usual reasons; \
         `--xdp-mode generic` works with any driver)"
    )]
    NoNative {
        /// The interface.
        interface: String,
        /// What the kernel answered.
        source: ProgramError,
    },
    /// The kernel refused.
    #[error("{interface}: cannot attach")]
    Refused {
        /// The interface.
        interface: String,
        /// What the kernel answered.
        source: ProgramError,
    },
    /// A pin cannot be made, read or removed.
    #[error("{interface}: link pin")]
    Pin {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel did not say what is attached.
    #[error("{interface}: cannot ask what is attached")]
    Query {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel reports something else than was asked for.
    #[error("{interface}: attached, but the kernel reports {found}")]
    Unexpected {
        /// The interface.
        interface: String,
        /// What it reports.
        found: String,
    },
}

/// Attaches a role's program to an interface, or puts it in the place of the one that the pinned
/// link has: no packet passes between the two. Says also whether the link is a new one.
///
/// # Errors
/// [`AttachError`]; the interface is as it was, unless the pinned link was of no use.
pub(super) fn attach(
    program: &mut Xdp,
    pins: &Pins,
    interface: &str,
    mode: XdpMode,
) -> Result<(Interface, bool), AttachError> {
    let attaching = Attaching { pins, interface, mode, index: index_of(interface)? };
    attaching.is_free()?;
    let own = program.info().map(|info| info.id()).map_err(|source| attaching.refused(source))?;
    if attaching.take_over(program, own)? {
        return Ok((attaching.finish(own)?, false));
    }
    // A pinned link that was of no use is gone, and what else is there shows now.
    attaching.is_free()?;
    attaching.create(program)?;
    Ok((attaching.finish(own)?, true))
}

/// Whether a role may have an interface. A refusal comes before anything is made.
///
/// # Errors
/// [`AttachError`]: it is not there, or somebody else has it.
pub(super) fn may_have(pins: &Pins, interface: &str, mode: XdpMode) -> Result<(), AttachError> {
    Attaching { pins, interface, mode, index: index_of(interface)? }.is_free()
}

/// The interface's index.
fn index_of(interface: &str) -> Result<u32, AttachError> {
    if_nametoindex(interface).map_err(|_| AttachError::NoInterface(interface.into()))
}

struct Attaching<'a> {
    pins: &'a Pins,
    interface: &'a str,
    mode: XdpMode,
    index: u32,
}

impl Attaching<'_> {
    /// Whether nobody else has the interface: another role, another layout, or a stranger.
    fn is_free(&self) -> Result<(), AttachError> {
        let interface = self.interface.to_owned();
        if let Some(other) = self.other_pins() {
            return Err(AttachError::OtherRole { interface, other });
        }
        // What our own pinned link has there is ours, or is seen to when that is taken over.
        if self.pins.link(self.interface).exists() {
            return Ok(());
        }
        match self.query()? {
            Some(found) => {
                let occupant = occupant::of(found.program);
                Err(AttachError::Occupied { interface, occupant })
            }
            None => Ok(()),
        }
    }

    /// Pins of the interface under another role or layout.
    fn other_pins(&self) -> Option<String> {
        let own = self.pins.root();
        let roots = fs::read_dir(own.parent()?).ok()?;
        let mut others = roots.filter_map(Result::ok).filter(|root| root.path() != own);
        others
            .find(|root| Pins::at(&root.path()).link(self.interface).exists())
            .map(|root| root.file_name().to_string_lossy().into_owned())
    }

    /// Replaces the program of the pinned link; false where there is no link, or it was of no use
    /// (its interface is gone or has another name, or its mode is not allowed) and is gone now.
    fn take_over(&self, program: &mut Xdp, own: u32) -> Result<bool, AttachError> {
        let pin = self.pins.link(self.interface);
        if !pin.exists() {
            return Ok(false);
        }
        let replaced = replace(program, &pin);
        let now = self.query()?;
        let fits = now.is_some_and(|now| now.program == own && self.mode.allows(now.mode));
        if replaced.is_ok() && fits {
            return Ok(true);
        }
        tracing::warn!(
            interface = self.interface,
            attached = now.map(|now| now.mode.to_string()),
            "the pinned link does not serve this interface as wanted; attaching anew"
        );
        remove_link(&pin).map_err(|source| self.pin_error(source))?;
        Ok(false)
    }

    /// Attaches and pins.
    fn create(&self, program: &mut Xdp) -> Result<(), AttachError> {
        let native = match self.mode {
            XdpMode::Generic => None,
            XdpMode::Auto | XdpMode::Native => {
                Some(program.attach_to_if_index(self.index, Flags::Driver))
            }
        };
        let link = match native {
            Some(Ok(link)) => link,
            Some(Err(source)) if self.mode == XdpMode::Native => {
                return Err(AttachError::NoNative { interface: self.interface.into(), source });
            }
            refused => {
                if let Some(Err(error)) = refused {
                    tracing::warn!(
                        interface = self.interface,
                        error = crate::causes::of(&error),
                        "no native XDP, falling back to generic: slower, and packets are copied"
                    );
                }
                program
                    .attach_to_if_index(self.index, Flags::Skb)
                    .map_err(|source| self.refused(source))?
            }
        };
        let link = program.take_link(link).map_err(|source| self.refused(source))?;
        let link: FdLink =
            link.try_into().map_err(|error| self.pin_error(io::Error::other(error)))?;
        // The pin holds the link from here on; the daemon's end changes nothing.
        let pinned = link.pin(self.pins.link(self.interface));
        pinned.map(drop).map_err(|error| self.pin_error(io::Error::other(error)))
    }

    /// Asks the kernel what came of it.
    fn finish(&self, own: u32) -> Result<Interface, AttachError> {
        match self.query()? {
            Some(now) if now.program == own && self.mode.allows(now.mode) => Ok(Interface {
                name: self.interface.into(),
                index: self.index,
                mode: Some(now.mode),
            }),
            other => Err(AttachError::Unexpected {
                interface: self.interface.into(),
                found: other.map_or("nothing".into(), |now| {
                    format!("program {} in {} mode", describe(now.program), now.mode)
                }),
            }),
        }
    }

    fn query(&self) -> Result<Option<Attachment>, AttachError> {
        link_state::attachment(self.index)
            .map_err(|source| AttachError::Query { interface: self.interface.into(), source })
    }

    fn refused(&self, source: ProgramError) -> AttachError {
        AttachError::Refused { interface: self.interface.into(), source }
    }

    fn pin_error(&self, source: io::Error) -> AttachError {
        AttachError::Pin { interface: self.interface.into(), source }
    }
}

/// Puts a program in the place of the one that a pinned link has.
fn replace(program: &mut Xdp, pin: &Path) -> Result<(), ProgramError> {
    let link = PinnedLink::from_pin(pin).map_err(other)?;
    let link = XdpLink::try_from(FdLink::from(link)).map_err(other)?;
    let link = program.attach_to_link(link)?;
    program.take_link(link).map(drop)
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> ProgramError {
    ProgramError::IOError(io::Error::other(error))
}

/// Detaches a pinned link and removes its pin.
pub(super) fn remove_link(pin: &Path) -> io::Result<()> {
    let detached = raw::open_link(pin).and_then(raw::detach_link);
    fs::remove_file(pin)?;
    match detached {
        // The interface is gone, and the link's program with it.
        Err(error) if error.raw_os_error() != Some(libc::ENOLINK) => Err(error),
        _ => Ok(()),
    }
}

/// How an interface's program is attached now, if it is one that `role` pinned.
pub(super) fn mode_now(pins: &Pins, interface: &Interface) -> Option<AttachedMode> {
    let pinned = PinnedLink::from_pin(pins.link(&interface.name)).ok()?;
    let program = FdLink::from(pinned).info().ok()?.program_id();
    let now = link_state::attachment(interface.index).ok()??;
    (now.program == program).then_some(now.mode)
}
