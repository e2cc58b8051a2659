use super::Name;

/// What the operator wants of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantedState {
    /// Takes traffic while it is healthy.
    #[default]
    Active,
    /// Takes nothing.
    Disabled,
}

/// One real server of a pool; its address is its key there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Region it stands in.
    pub region: Name,
    /// Share relative to the others of its region; 0 takes none.
    pub weight: u32,
    /// What the operator wants of it.
    pub wanted: WantedState,
    /// Largest outer packet towards it, bytes; `None`: the interface's MTU.
    pub mtu: Option<u16>,
}
