//! What the checks judge, read once from `/proc`, netlink and the pins, and what the daemons answered. Reading judges
//! nothing, and what cannot be read is missing.

mod daemon;
mod host;
mod installed;
mod maps;
mod network;
mod vip_probes;

use std::{collections::BTreeMap, fs, net::IpAddr, path::PathBuf};

use lb_maps::{Component, Pins};
use lb_net::NetError;

#[cfg(test)]
pub(crate) use self::{daemon::DaemonConfiguration, daemon::PoolBackend, network::NetworkCard};
pub(crate) use self::{
    daemon::{Condition, INTERFACE, IdleReason, PoolServices, unattached},
    host::{Host, Sysctls},
    installed::Unit,
    maps::{
        BalancerFacts, MapsProblem, MapsProblemKind, PinnedBackend, ReceiverFacts, SendingInterface,
    },
    network::Network,
    vip_probes::VipProbeResult,
};
pub use self::{
    daemon::{DaemonState, ReceiverState},
    installed::{Environment, InstalledComponent, PinOwner, spillwayd},
    vip_probes::{VipProbe, VipProbes},
};

/// All that is known of this host.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub(crate) host: Host,
    pub(crate) environment: Environment,
    /// The components with pins on this host.
    pub components: Vec<InstalledComponent>,
    /// The installed units for these pins.
    pub(crate) units: Vec<Unit>,
    /// Contents of the settings files of daemons and units; unreadable files are missing.
    pub(crate) settings: BTreeMap<PathBuf, String>,
    /// Directories of pins of other versions.
    pub(crate) other_pins: Vec<PathBuf>,
    /// `None`: no balancer is pinned, or its maps cannot be read.
    pub(crate) balancer: Option<BalancerFacts>,
    /// `None`: no receiver is pinned, or its maps cannot be read.
    pub(crate) receiver: Option<ReceiverFacts>,
    /// `None`: there is no balancer.
    pub(crate) daemon: Option<DaemonState>,
    /// `None`: no receiver is running.
    pub(crate) receiver_state: Option<ReceiverState>,
    /// `None`: VIP probes are disabled, or the balancer's daemon does not answer.
    pub(crate) vip_probes: Option<VipProbes>,
    pub(crate) network: Network,
    pub(crate) sysctls: Sysctls,
}

/// What the daemons of this host answered.
#[derive(Debug, Default)]
pub struct Answers {
    /// `None`: there is no balancer.
    pub daemon: Option<DaemonState>,
    /// `None`: no receiver is running.
    pub receiver: Option<ReceiverState>,
    /// `None`: VIP probes are disabled, or the balancer's daemon does not answer.
    pub vip_probes: Option<VipProbes>,
}

impl Environment {
    /// The components with pins on this host.
    pub fn components(&self) -> Vec<InstalledComponent> {
        let all = Component::ALL.into_iter();
        all.filter_map(|component| InstalledComponent::read(self, component)).collect()
    }
}

impl Facts {
    /// Reads everything that no daemon has to answer. `is_probing` also probes next hops.
    ///
    /// # Errors
    /// Netlink fails. Everything else that cannot be read is a fact.
    pub async fn gather(
        environment: Environment,
        mut components: Vec<InstalledComponent>,
        answers: Answers,
        is_probing: bool,
    ) -> Result<Self, NetError> {
        let (mut balancer, mut receiver) = (None, None);
        for installed in &mut components {
            let read = match installed.component {
                Component::Balancer => {
                    BalancerFacts::read(&environment.bpffs, &environment.state_directory)
                        .map(|read| balancer = Some(read))
                }
                Component::Receiver => {
                    ReceiverFacts::read(&environment.bpffs).map(|read| receiver = Some(read))
                }
            };
            installed.maps_problem = read.err();
        }
        let backends = balancer.iter().filter(|_| is_probing).flat_map(|b| &b.backends);
        let sending = balancer.iter().flat_map(|balancer| &balancer.interfaces);
        let sending = sending.map(|it| &*it.stats.interface);
        let (daemon, receiver_state) = (answers.daemon.as_ref(), answers.receiver.as_ref());
        let unattached =
            Component::ALL.map(|component| unattached(daemon, receiver_state, component));
        let unattached = unattached.iter().flatten().map(|(interface, _)| *interface);
        let network = Network::read(
            route_targets(balancer.as_ref(), receiver.as_ref()),
            &backends.map(|backend| backend.address).collect(),
            &components,
            sending.chain(unattached),
        )
        .await?;
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
            daemon: answers.daemon,
            receiver_state: answers.receiver,
            vip_probes: answers.vip_probes,
            components,
            environment,
        })
    }

    /// `None`: the component has no pins here.
    pub(crate) fn component(&self, component: Component) -> Option<&InstalledComponent> {
        self.components.iter().find(|installed| installed.component == component)
    }

    /// Whether this host has a balancer whose maps cannot be read.
    pub(crate) fn has_unreadable_balancer(&self) -> bool {
        self.balancer.is_none() && self.component(Component::Balancer).is_some()
    }

    pub(crate) fn unit(&self, component: Component) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.component == component)
    }

    pub(crate) fn pin_directory(&self, component: Component) -> PathBuf {
        Pins::new(&self.environment.bpffs, component).root().to_owned()
    }
}

/// The addresses whose routes matter.
fn route_targets(
    balancer: Option<&BalancerFacts>,
    receiver: Option<&ReceiverFacts>,
) -> Vec<IpAddr> {
    let backends = balancer.into_iter().flat_map(|b| b.backends.iter().map(|b| b.address));
    let of_tunnels = balancer.into_iter().flat_map(|b| b.backends.iter().filter_map(|b| b.source));
    let vips = balancer.into_iter().flat_map(|b| b.vips.iter().copied());
    let served = receiver.into_iter().flat_map(|r| r.vips.iter().copied());
    let prefix = balancer.into_iter().filter_map(|b| b.source_prefix);
    let sources = prefix.flat_map(|prefix| [prefix.first(), prefix.last()]).map(IpAddr::V4);
    let own = of_tunnels.chain(vips).chain(served).chain(sources);
    backends.chain(own).chain(network::CLIENTS).collect()
}
