//! A component's loaded program, for one of the two hooks.

use std::{io, path::Path};

use aya::programs::{
    LinkOrder, ProgramError, SchedClassifier, TcAttachType, Xdp,
    links::{FdLink, PinnedLink},
    tc::{SchedClassifierLink, TcAttachOptions},
    xdp::{XdpLink, XdpMode as Flags},
};

use super::hook::Hook;
use crate::Pins;

/// A program and the hook that it is for.
#[derive(Debug)]
pub(crate) enum Program<'e> {
    /// In the driver, or where the stack has that of drivers that cannot.
    Xdp(&'e mut Xdp),
    /// In the stack, with what the stack knows of a packet.
    Tc(&'e mut SchedClassifier),
}

impl Program<'_> {
    /// Has the kernel take it in.
    ///
    /// # Errors
    /// What the kernel answers, with the verifier's log.
    pub(crate) fn load(&mut self) -> Result<(), ProgramError> {
        match self {
            Self::Xdp(program) => program.load(),
            Self::Tc(program) => program.load(),
        }
    }

    /// The kernel's number of it.
    ///
    /// # Errors
    /// It is not loaded.
    pub(crate) fn id(&self) -> Result<u32, ProgramError> {
        let info = match self {
            Self::Xdp(program) => program.info(),
            Self::Tc(program) => program.info(),
        };
        info.map(|info| info.id())
    }

    /// Pins it.
    ///
    /// # Errors
    /// What the kernel answers.
    pub(super) fn pin(&mut self, path: &Path) -> io::Result<()> {
        match self {
            Self::Xdp(program) => program.pin(path),
            Self::Tc(program) => program.pin(path),
        }
        .map_err(io::Error::other)
    }

    /// Puts it in the place of the program that a pinned link has; the link is of the same hook.
    ///
    /// # Errors
    /// What the kernel answers; the link is another hook's.
    pub(super) fn replace(&mut self, pin: &Path) -> Result<(), ProgramError> {
        let link = FdLink::from(PinnedLink::from_pin(pin).map_err(other)?);
        match self {
            Self::Xdp(program) => {
                let link = program.attach_to_link(XdpLink::try_from(link).map_err(other)?)?;
                program.take_link(link).map(drop)
            }
            Self::Tc(program) => {
                let link = SchedClassifierLink::try_from(link).map_err(other)?;
                let link = program.attach_to_link(link)?;
                program.take_link(link).map(drop)
            }
        }
    }
}

/// The program that a component has pinned.
#[derive(Debug)]
pub(super) enum PinnedProgram {
    Xdp(Xdp),
    Tc(SchedClassifier),
}

impl PinnedProgram {
    /// # Errors
    /// There is none for this hook.
    pub(super) fn open(pins: &Pins, hook: Hook) -> Result<Self, ProgramError> {
        let path = pins.program();
        Ok(match hook {
            Hook::Xdp(_) => {
                Self::Xdp(Xdp::from_pin(path, aya_obj::programs::XdpAttachType::Interface)?)
            }
            Hook::Tc => Self::Tc(SchedClassifier::from_pin(path)?),
        })
    }

    pub(super) fn program(&mut self) -> Program<'_> {
        match self {
            Self::Xdp(program) => Program::Xdp(program),
            Self::Tc(program) => Program::Tc(program),
        }
    }
}

/// Attaches an XDP program by a link.
///
/// # Errors
/// What the kernel answers.
pub(super) fn xdp_link(
    program: &mut Xdp,
    index: u32,
    flags: Flags,
) -> Result<FdLink, ProgramError> {
    let link = program.attach_to_if_index(index, flags)?;
    program.take_link(link)?.try_into().map_err(other)
}

/// Attaches a tc program by a link, before those that are there (Linux 6.6).
///
/// # Errors
/// What the kernel answers.
pub(super) fn tcx_link(
    program: &mut SchedClassifier,
    interface: &str,
) -> Result<FdLink, ProgramError> {
    let first = TcAttachOptions::TcxOrder(LinkOrder::first());
    let link = program.attach_with_options(interface, TcAttachType::Ingress, first)?;
    program.take_link(link)?.try_into().map_err(other)
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> ProgramError {
    ProgramError::IOError(io::Error::other(error))
}
