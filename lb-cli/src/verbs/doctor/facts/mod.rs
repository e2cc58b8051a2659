//! What the checks judge: read once, from `/proc`, netlink, the pins and the daemon. Reading judges
//! nothing, and what cannot be read is missing.

mod balancer;
mod control;
mod daemon;
mod holder;
mod host;
mod network;
mod role;
mod services;
mod sysctls;
mod tunnels;
mod unit;

use std::{collections::BTreeMap, fs, net::IpAddr, path::PathBuf};

pub(super) use balancer::{Backend, Balancer};
pub(super) use control::Control;
pub(super) use daemon::Daemon;
#[cfg(test)]
pub(super) use daemon::Told;
pub(super) use holder::Holder;
pub(super) use host::Host;
#[cfg(test)]
pub(super) use network::Card;
pub(super) use network::Network;
pub(super) use role::{Broken, Installed, Kind, Receiver};
#[cfg(test)]
pub(super) use services::Member;
pub(super) use services::{Idle, Served};
pub(super) use sysctls::Sysctls;
pub(super) use tunnels::{Outcome, Tunnels, Way};
pub(super) use unit::Unit;

use crate::{arguments::Options, failure::Failure};
use lb_daemon::dataplane::{Pins, Role};

/// All that is known of this host.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The kernel and this program's rights.
    pub(super) host: Host,
    /// Where things are, as the command line says.
    pub(super) places: Places,
    /// The roles that have pins here.
    pub(super) roles: Vec<Installed>,
    /// The units that are installed for these pins.
    pub(super) units: Vec<Unit>,
    /// What the settings files of daemons and units hold; those that cannot be read are missing.
    pub(super) settings: BTreeMap<PathBuf, String>,
    /// Directories of pins that another version made.
    pub(super) other_pins: Vec<PathBuf>,
    /// What the balancer's maps say; `None`: no balancer is pinned, or it cannot be read.
    pub(super) balancer: Option<Balancer>,
    /// What the receiver's maps say; `None`: no receiver is pinned, or it cannot be read.
    pub(super) receiver: Option<Receiver>,
    /// What the balancer's daemon says; `None`: there is no balancer.
    pub(super) daemon: Option<Daemon>,
    /// What the receiver's daemon says; `None`: there is none.
    pub(super) control: Option<Control>,
    /// What comes of packets to its backends; `None`: nobody tried, or its daemon does not answer.
    pub(super) tunnels: Option<Tunnels>,
    /// Interfaces, addresses, routes, neighbours.
    pub(super) network: Network,
    /// Kernel parameters of this network namespace.
    pub(super) sysctls: Sysctls,
}

/// Where things are.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) bpffs: PathBuf,
    pub(super) state_directory: PathBuf,
    pub(super) socket: PathBuf,
    /// The daemon's program: beside this one, or else by its name.
    pub(super) spillwayd: String,
    /// Largest IP packet that clients send, bytes.
    pub(super) client_mtu: u32,
}

impl Facts {
    /// Reads it all; where `is_probing` next hops are asked for, and packets sent to the backends.
    ///
    /// # Errors
    /// Netlink fails. Everything else that cannot be read is a fact.
    pub(super) fn gather(
        options: &Options,
        client_mtu: u32,
        is_probing: bool,
    ) -> Result<Self, Failure> {
        let places = Places {
            bpffs: options.bpffs.clone(),
            state_directory: options.state_dir().to_owned(),
            socket: options.socket().to_owned(),
            spillwayd: spillwayd(),
            client_mtu,
        };
        let mut roles: Vec<_> =
            Role::ALL.into_iter().filter_map(|role| Installed::read(&places, role)).collect();
        let (mut balancer, mut receiver, mut daemon, mut tunnels) = (None, None, None, None);
        for installed in &mut roles {
            let read = match installed.role {
                Role::Balancer => {
                    let asked = daemon.insert(Daemon::ask(options)?);
                    if is_probing && matches!(asked, Daemon::Answers { .. }) {
                        tunnels = Some(Tunnels::try_all(options, client_mtu)?);
                    }
                    Balancer::read(&places).map(|read| balancer = Some(read))
                }
                Role::Receiver => Receiver::read(&places).map(|read| receiver = Some(read)),
            };
            installed.broken = read.err();
        }
        let holder = roles.iter().find(|installed| installed.role == Role::Receiver);
        let holder = holder.and_then(|installed| installed.holder.as_ref());
        let control = holder.map(Control::ask).transpose()?;
        let backends = balancer.iter().filter(|_| is_probing).flat_map(|b| &b.backends);
        let network = Network::look(
            asked_ways(balancer.as_ref(), receiver.as_ref()),
            &backends.map(|backend| backend.address).collect(),
            &roles,
        )?;
        let sysctls = Sysctls::read(network.devices().map(|device| &device.interface.name));
        let units: Vec<_> =
            Role::ALL.into_iter().filter_map(|role| Unit::of(&places, role)).collect();
        let holders = roles.iter().filter_map(|installed| installed.holder.as_ref());
        let files = holders.filter_map(Holder::settings);
        let files = files.chain(units.iter().filter_map(|unit| unit.settings.clone()));
        Ok(Self {
            settings: files
                .filter_map(|file| fs::read_to_string(&file).ok().map(|text| (file, text)))
                .collect(),
            units,
            host: Host::read(&places),
            other_pins: role::others(&places),
            sysctls,
            network,
            balancer,
            receiver,
            daemon,
            control,
            tunnels,
            roles,
            places,
        })
    }

    /// The pins of a role.
    pub(super) fn role(&self, role: Role) -> Option<&Installed> {
        self.roles.iter().find(|installed| installed.role == role)
    }

    /// Whether a balancer is here whose VIPs cannot be told.
    pub(super) fn unread_balancer(&self) -> bool {
        self.balancer.is_none() && self.role(Role::Balancer).is_some()
    }

    /// The unit of a role.
    pub(super) fn unit(&self, role: Role) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.role == role)
    }

    /// The directory of a role's pins.
    pub(super) fn pins(&self, role: Role) -> PathBuf {
        Pins::new(&self.places.bpffs, role).root().to_owned()
    }
}

/// The addresses whose ways matter.
fn asked_ways(balancer: Option<&Balancer>, receiver: Option<&Receiver>) -> Vec<IpAddr> {
    let backends = balancer.into_iter().flat_map(|b| b.backends.iter().map(|b| b.address));
    let vips = balancer.into_iter().flat_map(|b| b.vips.iter().copied());
    let served = receiver.into_iter().flat_map(|r| r.vips.iter().copied());
    backends.chain(vips).chain(served).chain(network::CLIENTS).collect()
}

fn spillwayd() -> String {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("spillwayd"));
    match beside.filter(|path| path.is_file()) {
        Some(path) => path.display().to_string(),
        None => "spillwayd".into(),
    }
}
