//! Attaching a program to interfaces by pinned links, or at tc's hook before Linux 6.6 by filters.

use std::{fs, io};

use aya::programs::{
    ProgramError, Xdp,
    links::{FdLink, LinkType},
    tc::TcError,
    xdp::XdpMode as Flags,
};
use nix::net::if_::if_nametoindex;

use super::{
    filter,
    hook::{self, AttachedMode, Attachment, Hook, XdpMode},
    occupant::{self, Occupant, describe},
    pinned::{self, remove_filter, remove_link},
    program::{self, Program},
};
use crate::{Pins, bpffs};

/// An interface with our program on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    pub index: u32,
    /// How the program is attached, as the kernel reported it; `None`: it no longer is.
    pub mode: Option<AttachedMode>,
}

/// Attaches a component's program to an interface, or puts it in the place of the one that is there by a
/// pin: no packet passes between the two. Says also whether there was no pin before.
///
/// # Errors
/// [`AttachError`]; the interface is as it was, unless what was pinned was of no use.
pub(super) fn attach(
    program: &mut Program<'_>,
    pins: &Pins,
    interface: &str,
    hook: Hook,
) -> Result<(Interface, bool), AttachError> {
    let attaching = Attaching { pins, interface, hook, index: index_of(interface)? };
    attaching.is_free()?;
    let own = program.id().map_err(|source| attaching.refused(source))?;
    let had = pins.has(interface);
    let attached = attaching.attach(program, own);
    if attached.is_err() && !had {
        let _already_failing = pinned::remove(pins, interface);
    }
    Ok((attached?, !had))
}

/// Whether a component may have an interface. A refusal comes before anything is made.
///
/// # Errors
/// [`AttachError`]: it is not there, or somebody else has it.
pub(super) fn may_have(pins: &Pins, interface: &str, hook: Hook) -> Result<(), AttachError> {
    Attaching { pins, interface, hook, index: index_of(interface)? }.is_free()
}

/// The interface's index.
pub(super) fn index_of(interface: &str) -> Result<u32, AttachError> {
    if_nametoindex(interface).map_err(|_| AttachError::NoInterface(interface.into()))
}

struct Attaching<'a> {
    pins: &'a Pins,
    interface: &'a str,
    hook: Hook,
    index: u32,
}

impl Attaching<'_> {
    fn attach(&self, program: &mut Program<'_>, own: u32) -> Result<Interface, AttachError> {
        if !self.take_over(program, own)? {
            // What was pinned and of no use is gone, and what else is there shows now.
            self.is_free()?;
            self.create(program)?;
        }
        // Only now what our pin of another hook has there: packets meet one of the two at any time, and where
        // the kernel refuses, the other stays.
        self.remove(!self.hook.is_by_filters())?;
        self.finish(own)
    }

    /// Whether nobody else has the interface: another component, another layout, or a stranger.
    fn is_free(&self) -> Result<(), AttachError> {
        let interface = self.interface.to_owned();
        if let Some(other) = self.other_pins() {
            return Err(AttachError::OtherRole { interface, other });
        }
        // What our own pinned link has there is ours, or is seen to when that is taken over. tc's hook has
        // room for others too.
        if self.hook == Hook::Tc || self.is_pinned_here() {
            return Ok(());
        }
        match self.query()? {
            // One that was on its way to its place when a daemon ended; it goes before any is attached.
            Some(found) if pinned::program(&self.pins.next_link()) == Some(found.program) => Ok(()),
            Some(found) => {
                let occupant = occupant::describe_occupant(found.program);
                Err(AttachError::Occupied { interface, occupant })
            }
            None => Ok(()),
        }
    }

    /// Pins of the interface under another component or layout.
    fn other_pins(&self) -> Option<String> {
        let own = self.pins.root();
        let roots = fs::read_dir(own.parent()?).ok()?;
        let mut others = roots.filter_map(Result::ok).filter(|root| root.path() != own);
        others
            .find(|root| Pins::at(&root.path()).has(self.interface))
            .map(|root| root.file_name().to_string_lossy().into_owned())
    }

    /// Whether the interface has a pin for the wanted hook.
    fn is_pinned_here(&self) -> bool {
        if self.hook.is_by_filters() {
            return self.pins.filter(self.interface).exists();
        }
        let wanted = match self.hook {
            Hook::Xdp(_) => LinkType::Xdp,
            Hook::Tc => LinkType::Tcx,
        };
        pinned::kind(&self.pins.link(self.interface)) == Some(wanted)
    }

    /// Replaces the program that is there by a pin for the same hook; false where there is none, or it was
    /// of no use (its interface is gone or has another name, its mode is not allowed) and is gone now.
    fn take_over(&self, program: &mut Program<'_>, own: u32) -> Result<bool, AttachError> {
        if !self.is_pinned_here() {
            return Ok(false);
        }
        let replaced = self.replace(program);
        let now = self.now(own)?;
        if replaced.is_ok() && now.is_some_and(|now| self.is_wanted(now, own)) {
            return Ok(true);
        }
        let interface = self.interface;
        tracing::warn!(
            interface,
            attached = now.map(|now| now.mode.to_string()),
            "interface {interface}: the pinned link cannot be used; attaching again"
        );
        self.remove(self.hook.is_by_filters())?;
        Ok(false)
    }

    /// Takes off what is there by a filter, or by a link, with its pin; none is fine.
    fn remove(&self, filter: bool) -> Result<(), AttachError> {
        let removed = if filter {
            remove_filter(self.pins, self.interface)
        } else {
            remove_link(&self.pins.link(self.interface))
        };
        removed.map_err(|source| self.pin_error(source))
    }

    /// Puts the program in the place of the one that is there by a pin for the same hook.
    fn replace(&self, program: &mut Program<'_>) -> Result<(), ProgramError> {
        if !self.hook.is_by_filters() {
            return program.replace(&self.pins.link(self.interface));
        }
        let (pin, next) = (self.pins.filter(self.interface), self.pins.next_program());
        if !pin.exists() {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        }
        let _from_a_crash = fs::remove_file(&next);
        program.pin(&next)?;
        if let Program::Tc(program) = program {
            filter::replace(program, self.interface)?;
        }
        Ok(fs::rename(next, pin)?)
    }

    /// Attaches and pins, in place of a link for another hook.
    fn create(&self, program: &mut Program<'_>) -> Result<(), AttachError> {
        let link = match (program, self.hook) {
            (Program::Xdp(program), Hook::Xdp(mode)) => self.xdp_link(program, mode)?,
            (program, _) if self.hook.is_by_filters() => return self.filter(program),
            (Program::Tc(program), _) => {
                program::tcx_link(program, self.interface).map_err(|source| self.refused(source))?
            }
            (Program::Xdp(_), Hook::Tc) => {
                return Err(self.refused(ProgramError::UnexpectedProgramType));
            }
        };
        // The pin holds the link from here on; the daemon's end changes nothing.
        let (pin, next) = (self.pins.link(self.interface), self.pins.next_link());
        let placed = if pin.exists() {
            link.pin(&next).map_err(io::Error::other).and_then(|_| {
                let placed = remove_link(&pin).and_then(|()| fs::rename(&next, &pin));
                placed.inspect_err(|_| drop(remove_link(&next)))
            })
        } else {
            link.pin(&pin).map(drop).map_err(io::Error::other)
        };
        placed.map_err(|source| self.pin_error(source))
    }

    fn xdp_link(&self, program: &mut Xdp, mode: XdpMode) -> Result<FdLink, AttachError> {
        let native = match mode {
            XdpMode::Generic => None,
            XdpMode::Auto | XdpMode::Native => {
                Some(program::xdp_link(program, self.index, Flags::Driver))
            }
        };
        match native {
            Some(Ok(link)) => Ok(link),
            Some(Err(source)) if mode == XdpMode::Native => {
                Err(AttachError::NoNative { interface: self.interface.into(), source })
            }
            refused => {
                if let Some(Err(error)) = refused {
                    let interface = self.interface;
                    tracing::warn!(
                        interface,
                        error = lb_base::error_chain::message(&error),
                        "interface {interface}: no native XDP: falls back to generic XDP, which is slower and copies packets"
                    );
                }
                program::xdp_link(program, self.index, Flags::Skb)
                    .map_err(|source| self.refused(source))
            }
        }
    }

    /// Pins the program as the interface's, then puts it into a filter: a filter without a pin would be
    /// somebody else's.
    fn filter(&self, program: &mut Program<'_>) -> Result<(), AttachError> {
        let made = bpffs::make_directory(&self.pins.filters())
            .map_err(io::Error::other)
            .and_then(|()| program.pin(&self.pins.filter(self.interface)));
        made.map_err(|source| self.pin_error(source))?;
        let Program::Tc(program) = program else {
            return Err(self.refused(ProgramError::UnexpectedProgramType));
        };
        filter::create(program, self.interface).map_err(|source| {
            let _already_failing = fs::remove_file(self.pins.filter(self.interface));
            let number = match &source {
                ProgramError::TcError(TcError::NetlinkError(error)) => error.raw_os_error(),
                _ => None,
            };
            let interface = self.interface.to_owned();
            match number {
                Some(libc::EEXIST | libc::EINVAL) if filter::is_receivers(self.index) => {
                    AttachError::Unpinned { interface, source }
                }
                Some(libc::EEXIST | libc::EINVAL) => AttachError::FirstFilter { interface, source },
                _ => self.refused(source),
            }
        })
    }

    /// Asks the kernel what came of it.
    fn finish(&self, own: u32) -> Result<Interface, AttachError> {
        match self.now(own)? {
            Some(now) if self.is_wanted(now, own) => Ok(Interface {
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

    fn is_wanted(&self, now: Attachment, own: u32) -> bool {
        now.program == own && self.hook.allows(now.mode)
    }

    /// What is attached at the hook: by whom ever at XDP's, by our pin at tc's.
    fn now(&self, own: u32) -> Result<Option<Attachment>, AttachError> {
        if matches!(self.hook, Hook::Xdp(_)) {
            return self.query();
        }
        let now = pinned::at_tc(self.pins, self.interface, self.index);
        let is_own = |program: u32| (program == own).then_some(program);
        Ok(now.and_then(is_own).map(|program| Attachment { mode: AttachedMode::Tc, program }))
    }

    fn query(&self) -> Result<Option<Attachment>, AttachError> {
        hook::attachment(self.index)
            .map_err(|source| AttachError::Query { interface: self.interface.into(), source })
    }

    fn refused(&self, source: ProgramError) -> AttachError {
        AttachError::Refused { interface: self.interface.into(), source }
    }

    fn pin_error(&self, source: io::Error) -> AttachError {
        AttachError::Pin { interface: self.interface.into(), source }
    }
}

/// Why a program could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such interface.
    #[error("{0}: no such interface")]
    NoInterface(String),
    /// The interface has the program, but not a name that the settings know.
    #[error("{interface}: is called {now} now, and still has the packet program")]
    Renamed { interface: String, now: String },
    /// The interface has the other component, or one of another layout.
    #[error(
        "{interface}: already used by {other}, and an interface can have only one component: stop that \
         spillwayd and remove its pins with `spillway detach`"
    )]
    OtherRole {
        interface: String,
        /// Directory name of the other pins.
        other: String,
    },
    /// Somebody else's program is there.
    #[error(
        "{interface}: another XDP program is attached, {occupant}: remove it with the tool that \
         attached it, or with {removal}", removal = .occupant.removal(.interface)
    )]
    Occupied {
        interface: String,
        /// The program.
        occupant: Occupant,
    },
    /// The driver cannot run XDP programs.
    #[error(
        "{interface}: no native XDP (LRO, a large MTU and too few queues are the usual reasons; \
         `--xdp-mode generic` works with any driver)"
    )]
    NoNative { interface: String, source: ProgramError },
    /// Somebody else's filter is where ours has to be.
    #[error(
        "{interface}: another tc filter has priority {priority} on ingress, which spillwayd needs: \
         give that filter a higher number; `tc filter show dev {interface} ingress` shows it",
        priority = filter::PRIORITY
    )]
    FirstFilter { interface: String, source: ProgramError },
    /// A receiver's filter is there that has no pin of this BPF file system.
    #[error(
        "{interface}: another receiver's tc filter is attached, or one whose pins are gone; \
         `tc filter del dev {interface} ingress pref {priority} handle {handle:#x} bpf` takes it off",
        priority = filter::PRIORITY, handle = filter::HANDLE
    )]
    Unpinned { interface: String, source: ProgramError },
    /// The kernel refused.
    #[error("{interface}: cannot attach")]
    Refused { interface: String, source: ProgramError },
    /// A pin cannot be made, read or removed.
    #[error("{interface}: cannot use the pin of the link")]
    Pin { interface: String, source: io::Error },
    /// The kernel did not say what is attached.
    #[error("{interface}: cannot read what is attached")]
    Query { interface: String, source: io::Error },
    /// The kernel reports something else than was asked for.
    #[error("{interface}: attached, but the kernel reports {found}")]
    Unexpected {
        interface: String,
        /// What it reports.
        found: String,
    },
}
