use super::{Name, Rate};

/// What the operator wants of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminState {
    /// Takes traffic while it is healthy.
    #[default]
    Active,
    /// Takes nothing, and its open connections move.
    Disabled,
    /// Takes no new connections; its open ones stay while it lives.
    Drain,
}

impl AdminState {
    /// `active`, `disabled` or `drain`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Drain => "drain",
        }
    }
}

/// One real server of a pool; its address is its key there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Region it stands in.
    pub region: Name,
    /// Share relative to the others of its region; 0 takes none.
    pub weight: u32,
    /// What the operator asks for.
    pub admin_state: AdminState,
    /// Largest outer packet towards it, bytes; `None`: the interface's MTU.
    pub mtu: Option<u16>,
    /// New connections it takes a second in its pool, over all balancers; `None`: no limit of its
    /// own.
    pub max_connection_rate: Option<Rate>,
}
