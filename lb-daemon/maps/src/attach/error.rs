use std::io;

use aya::programs::ProgramError;

use crate::{filter, occupant::Occupant};

/// Why a program could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such interface.
    #[error("{0}: no such interface")]
    NoInterface(String),
    /// The interface has the other component, or one of another layout.
    #[error(
        "{interface}: has the pins of {other} already, and one interface has one component: stop that \
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
    /// Somebody else's filter is where ours has to be.
    #[error(
        "{interface}: a tc filter of somebody else has the first place on ingress, priority {priority}: \
         move it behind ours, to a higher number; `tc filter show dev {interface} ingress` shows it",
        priority = filter::PRIORITY
    )]
    FirstFilter {
        /// The interface.
        interface: String,
        /// What the kernel answered.
        source: ProgramError,
    },
    /// A receiver's filter is there that has no pin of this BPF file system.
    #[error(
        "{interface}: another receiver's tc filter is attached, or one whose pins are gone; \
         `tc filter del dev {interface} ingress pref {priority} handle {handle:#x} bpf` takes it off",
        priority = filter::PRIORITY, handle = filter::HANDLE
    )]
    Unpinned {
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
