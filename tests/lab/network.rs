//! The network: the standard one, or with several balancers that of a fleet.

use anyhow::Result;
use lb_tests::sandbox;
use lb_tests::topology::{Backend, Fabric, FleetFabric, Host, Topology};

use crate::UpArguments;
use crate::files::{HostRecord, Place};

/// Backends of each region.
const PER_REGION: u8 = 2;

/// What there is of the network to start programs on.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) balancers: Vec<Host>,
    pub(crate) backends: Vec<Backend>,
    /// The host of etcd; none unless there are several balancers.
    pub(crate) etcd: Vec<Host>,
    /// All of it; it goes when this goes.
    net: Topology,
}

impl Network {
    /// Builds it. Its nodes' folders are in the folder of the lab.
    pub(crate) fn build(place: &Place, arguments: UpArguments) -> Result<Self> {
        let network = Self::lay_out(place, arguments)?;
        for balancer in &network.balancers {
            // As the package does: without it the daemon cannot ping backends, and the doctor warns of that.
            balancer.node.sysctls(&[("net.ipv4.ping_group_range", "0 2147483647")])?;
        }
        Ok(network)
    }

    fn lay_out(place: &Place, arguments: UpArguments) -> Result<Self> {
        let (host, regions) = (sandbox::on_the_host(), usize::from(arguments.regions));
        if arguments.balancers == 1 {
            let fabric = Fabric::with_regions(&host, &place.name, regions, PER_REGION)?;
            let Fabric { net, balancer, backends, .. } = fabric;
            let (v4, v6) = (Fabric::BALANCER_V4, Fabric::BALANCER_V6);
            let balancers = vec![Host { node: balancer, v4, v6 }];
            return Ok(Self { balancers, backends, etcd: Vec::new(), net });
        }
        let balancers = usize::from(arguments.balancers);
        let size = (regions, PER_REGION);
        let fabric = FleetFabric::with_regions(&host, &place.name, balancers, size, 1)?;
        let FleetFabric { net, balancers, backends, etcd, .. } = fabric;
        Ok(Self { balancers, backends, etcd, net })
    }

    /// The hosts whose cables may be pulled.
    pub(crate) fn hosts(&self) -> Vec<HostRecord> {
        let backends = self.backends.iter().map(|it| (it.name(), it.v4, it.v6));
        let others = self.balancers.iter().chain(&self.etcd);
        let all = others.map(|it| (it.name(), it.v4, it.v6)).chain(backends);
        all.map(|(node, v4, v6)| HostRecord { node: node.into(), v4, v6 }).collect()
    }

    /// Leaves it behind.
    pub(crate) fn keep(self) {
        self.net.keep();
    }
}
