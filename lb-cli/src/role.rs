//! Whose programs are meant.

use lb_daemon::dataplane;

/// What a daemon does on its interfaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    /// Sends packets of services to backends
    #[default]
    Balancer,
    /// Takes packets out of their tunnels, on a backend
    Receiver,
}

impl From<Role> for dataplane::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Balancer => Self::Balancer,
            Role::Receiver => Self::Receiver,
        }
    }
}
