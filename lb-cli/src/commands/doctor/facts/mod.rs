//! What the checks judge, read once from `/proc`, netlink, the pins and the daemon. Reading judges nothing, and
//! what cannot be read is missing.

mod daemon;
mod host;
mod installed;
mod maps;
mod network;
mod vip_probes;

use std::{collections::BTreeMap, fs, net::IpAddr, path::PathBuf};

use lb_maps::{Component, Pins};

#[cfg(test)]
pub(super) use self::{daemon::DaemonConfiguration, daemon::PoolBackend, network::NetworkCard};
pub(super) use self::{
    daemon::{Condition, DaemonState, IdleReason, PoolServices, ReceiverState},
    host::{Host, Sysctls},
    installed::{Environment, InstalledComponent, PinOwner, Unit},
    maps::{
        BalancerFacts, MapsProblem, MapsProblemKind, PinnedBackend, ReceiverFacts, SendingInterface,
    },
    network::Network,
    vip_probes::{VipProbe, VipProbeResult, VipProbes},
};
use crate::{arguments::Options, failure::Failure};

/// All that is known of this host.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) host: Host,
    pub(super) environment: Environment,
    /// The components with pins on this host.
    pub(super) components: Vec<InstalledComponent>,
    /// The installed units for these pins.
    pub(super) units: Vec<Unit>,
    /// Contents of the settings files of daemons and units; unreadable files are missing.
    pub(super) settings: BTreeMap<PathBuf, String>,
    /// Directories of pins of other versions.
    pub(super) other_pins: Vec<PathBuf>,
    /// `None`: no balancer is pinned, or its maps cannot be read.
    pub(super) balancer: Option<BalancerFacts>,
    /// `None`: no receiver is pinned, or its maps cannot be read.
    pub(super) receiver: Option<ReceiverFacts>,
    /// `None`: there is no balancer.
    pub(super) daemon: Option<DaemonState>,
    /// `None`: no receiver is running.
    pub(super) receiver_state: Option<ReceiverState>,
    /// `None`: VIP probes are disabled, or the balancer's daemon does not answer.
    pub(super) vip_probes: Option<VipProbes>,
    pub(super) network: Network,
    pub(super) sysctls: Sysctls,
}

impl Facts {
    /// Reads everything. `is_probing` also probes next hops and sends packets to the backends.
    ///
    /// # Errors
    /// Netlink fails. Everything else that cannot be read is a fact.
    pub(super) fn gather(
        options: &Options,
        client_mtu: u32,
        is_probing: bool,
    ) -> Result<Self, Failure> {
        let environment = Environment {
            bpffs: options.bpffs.clone(),
            state_directory: options.state_dir().to_owned(),
            socket: options.socket().to_owned(),
            spillwayd: installed::spillwayd(),
            client_mtu,
        };
        let mut components: Vec<_> = Component::ALL
            .into_iter()
            .filter_map(|component| InstalledComponent::read(&environment, component))
            .collect();
        let (mut balancer, mut receiver, mut daemon, mut vip_probes) = (None, None, None, None);
        for installed in &mut components {
            let read = match installed.component {
                Component::Balancer => {
                    let asked = daemon.insert(DaemonState::ask(options)?);
                    if is_probing && matches!(asked, DaemonState::Answers { .. }) {
                        vip_probes = Some(VipProbes::run(options, client_mtu)?);
                    }
                    BalancerFacts::read(&environment.bpffs, &environment.state_directory)
                        .map(|read| balancer = Some(read))
                }
                Component::Receiver => {
                    ReceiverFacts::read(&environment.bpffs).map(|read| receiver = Some(read))
                }
            };
            installed.maps_problem = read.err();
        }
        let owner = components.iter().find(|installed| installed.component == Component::Receiver);
        let owner = owner.and_then(|installed| installed.owner.as_ref());
        let receiver_state = owner.map(ReceiverState::ask).transpose()?;
        let backends = balancer.iter().filter(|_| is_probing).flat_map(|b| &b.backends);
        let network = Network::read(
            route_targets(balancer.as_ref(), receiver.as_ref()),
            &backends.map(|backend| backend.address).collect(),
            &components,
            balancer.iter().flat_map(|balancer| &balancer.interfaces),
        )?;
        let sysctls = Sysctls::read(network.devices().map(|device| &device.interface.name));
        let units: Vec<_> = Component::ALL
            .into_iter()
            .filter_map(|component| Unit::find(&environment, component))
            .collect();
        let holders = components.iter().filter_map(|installed| installed.owner.as_ref());
        let files = holders.filter_map(PinOwner::settings);
        let files = files.chain(units.iter().filter_map(|unit| unit.settings.clone()));
        Ok(Self {
            settings: files
                .filter_map(|file| fs::read_to_string(&file).ok().map(|text| (file, text)))
                .collect(),
            units,
            host: Host::read(&environment.bpffs),
            other_pins: installed::other_pins(&environment),
            sysctls,
            network,
            balancer,
            receiver,
            daemon,
            receiver_state,
            vip_probes,
            components,
            environment,
        })
    }

    /// `None`: the component has no pins here.
    pub(super) fn component(&self, component: Component) -> Option<&InstalledComponent> {
        self.components.iter().find(|installed| installed.component == component)
    }

    /// Whether this host has a balancer whose maps cannot be read.
    pub(super) fn has_unreadable_balancer(&self) -> bool {
        self.balancer.is_none() && self.component(Component::Balancer).is_some()
    }

    pub(super) fn unit(&self, component: Component) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.component == component)
    }

    pub(super) fn pin_directory(&self, component: Component) -> PathBuf {
        Pins::new(&self.environment.bpffs, component).root().to_owned()
    }
}

/// The addresses whose routes matter.
fn route_targets(
    balancer: Option<&BalancerFacts>,
    receiver: Option<&ReceiverFacts>,
) -> Vec<IpAddr> {
    let backends = balancer.into_iter().flat_map(|b| b.backends.iter().map(|b| b.address));
    let vips = balancer.into_iter().flat_map(|b| b.vips.iter().copied());
    let served = receiver.into_iter().flat_map(|r| r.vips.iter().copied());
    let prefix = balancer.into_iter().filter_map(|b| b.source_prefix);
    let sources = prefix.flat_map(|prefix| [prefix.first(), prefix.last()]).map(IpAddr::V4);
    backends.chain(vips).chain(served).chain(sources).chain(network::CLIENTS).collect()
}
