//! Where a program is to be attached, and how.

use aya::util::KernelVersion;

use super::AttachedMode;

/// Where a program is to be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// At the driver's, before the stack has a packet.
    Xdp(XdpMode),
    /// At tc's, where the stack has it: the receiver's program only.
    Tc,
}

impl From<XdpMode> for Hook {
    fn from(mode: XdpMode) -> Self {
        Self::Xdp(mode)
    }
}

impl Hook {
    /// Whether what is attached so was asked for.
    pub(super) fn allows(self, mode: AttachedMode) -> bool {
        match self {
            Self::Xdp(xdp) => xdp.allows(mode),
            Self::Tc => mode == AttachedMode::Tc,
        }
    }

    /// Whether programs are there by filters: the kernel has no links for it.
    pub(super) fn is_by_filters(self) -> bool {
        let since = KernelVersion::new(6, 6, 0);
        self == Self::Tc && KernelVersion::current().is_ok_and(|running| running < since)
    }
}

/// How an XDP program is to be attached.
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
