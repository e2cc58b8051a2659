//! Networks of namespaces: nodes, links, one standard fabric, and one with many balancers.
//!
//! Every link end has transmit checksums computed by the sender (`tx off`), because a frame enters
//! XDP as it was handed over, and GRO on with a size of 1: what a peer redirects arrives only at an
//! end with NAPI, which GRO switches on, and merged frames would not be the frames that were sent.
//! An end whose peer answers by `XDP_TX` needs more: [`Topology::pass_all`].

mod backend;
mod fabric;
mod fleet_fabric;
mod node;
mod object;
mod parts;
mod slow_link;
mod tags;

use anyhow::{Context as _, Result, ensure};

pub use backend::{Backend, REGIONS};
pub use fabric::Fabric;
pub use fleet_fabric::{Cut, FleetFabric};
pub use node::Node;
pub use parts::Host;
pub use slow_link::SlowLink;

use crate::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
};

/// A network; its namespaces go when it goes.
#[derive(Debug)]
pub struct Topology {
    sandbox: Sandbox,
    name: String,
    nodes: Vec<Node>,
}

impl Topology {
    /// An empty network. `name` sets its namespaces apart from those of other networks.
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub fn new(sandbox: &Sandbox, name: &str) -> Result<Self> {
        sandbox.directory(name).with_context(|| format!("topology {name}: make a directory"))?;
        Ok(Self { sandbox: sandbox.clone(), name: name.into(), nodes: Vec::new() })
    }

    /// Adds a node: a namespace with `lo` up, IPv6 addresses usable at once and no path filter.
    ///
    /// # Errors
    /// When the namespace cannot be made.
    pub fn node(&mut self, name: &str) -> Result<Node> {
        let directory = self.sandbox.directory(&format!("{}/{name}", self.name))?;
        let node = Node::create(&format!("{}-{name}", self.name), name, directory)?;
        self.nodes.push(node.clone());
        Ok(node)
    }

    /// All nodes, in the order they were added.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Joins two nodes by a veth pair and sets it up.
    ///
    /// # Errors
    /// When the pair cannot be made.
    pub fn link(&self, a: &Node, a_end: &str, b: &Node, b_end: &str, mtu: u32) -> Result<()> {
        a.ip(&format!(
            "link add {a_end} mtu {mtu} type veth peer name {b_end} mtu {mtu} netns {}",
            b.namespace()
        ))?;
        for (node, end) in [(a, a_end), (b, b_end)] {
            node.run("ethtool", ["-K", end, "tx", "off", "gro", "on"])?;
            node.ip(&format!("link set {end} gro_max_size 1\nlink set {end} up"))?;
        }
        Ok(())
    }

    /// Takes a network card of a [whole system](crate::sandbox::whole_system) into a node and sets it up.
    ///
    /// # Errors
    /// When there is no such card.
    pub fn adopt(&self, card: &str, node: &Node) -> Result<()> {
        let into = ["link", "set", card, "netns", node.namespace()];
        let output = std::process::Command::new("ip").args(into).output().context("start ip")?;
        ensure!(output.status.success(), "{card} of {}: {output:?}", node.name());
        node.ip(&format!("link set {card} up"))
    }

    /// Makes an end fit to receive what its peer sends back by `XDP_TX`: gives it a packet program
    /// that passes every packet.
    ///
    /// # Errors
    /// When it has a program already.
    pub fn pass_all(&self, node: &Node, end: &str) -> Result<()> {
        object::attach_pass(node, end)
            .with_context(|| format!("{end} of {}: pass all", node.name()))
    }

    /// Has an end drop every frame, both ways, though the link stays up: for the other side the host behind it is gone, as
    /// one is behind a switch.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn block(&self, node: &Node, end: &str) -> Result<()> {
        object::attach_drop(node, end).with_context(|| format!("{end} of {}: block", node.name()))
    }

    /// Undoes [`Self::block`].
    ///
    /// # Errors
    /// When the end is not blocked.
    pub fn unblock(&self, node: &Node, end: &str) -> Result<()> {
        node.run("tc", ["qdisc", "delete", "dev", end, "clsact"]).map(drop)
    }

    /// Has one end of a link put VLAN tags on packets to the VIPs of a fabric, `[EtherType, TCI]` from the outermost,
    /// in the place of those of an earlier call, and take off up to two of what comes back.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn tag_vips(
        &self,
        (from, end): (&Node, &str),
        (to, other): (&Node, &str),
        tags: &[[u16; 2]],
    ) -> Result<()> {
        self.tags_in_frames(from, end)?;
        self.tags_in_frames(to, other)?;
        tags::attach(from, end, tags).with_context(|| format!("{end} of {}: tags", from.name()))
    }

    /// Has an end's tags, customers' and providers', stand in the frame, where packet programs see them, and not
    /// beside it.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn tags_in_frames(&self, node: &Node, end: &str) -> Result<()> {
        let tags = ["txvlan", "rxvlan", "tx-vlan-stag-hw-insert", "rx-vlan-stag-hw-parse"];
        let off = tags.into_iter().flat_map(|tag| [tag, "off"]);
        node.run("ethtool", ["-K", end].into_iter().chain(off)).map(drop)
    }

    /// Leaves it behind: its namespaces, and what runs in them, stay when this process ends.
    pub fn keep(self) {
        std::mem::forget(self);
    }

    /// Waits until every link is up and every address may be used.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub fn ready(&self) -> Result<()> {
        for node in &self.nodes {
            until(&format!("links of {}", node.name()), PATIENCE, || {
                Ok(node.is_ready()?.then_some(()))
            })?;
        }
        Ok(())
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.remove();
        }
    }
}
