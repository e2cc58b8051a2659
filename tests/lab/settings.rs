//! The files that programs of a lab read: as those of a host, but with paths of the lab.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use lb_tests::topology::{Fabric, FleetFabric, Host, REGIONS};

use crate::files::Place;
use crate::network::Network;
use crate::programs::Program;

/// Where etcd listens on its host.
const ETCD_PORT: u16 = 2379;

/// Fixed, so that a connection from one port of the client goes to the same backend in every lab.
const HASH_KEY: &str = "000102030405060708090a0b0c0d0e0f";

/// The programs of a lab in the order in which they are started. Their settings are written.
pub(crate) fn programs(
    place: &Place,
    network: &Network,
    bin_dir: &Path,
    user: Option<u32>,
) -> Result<Vec<Program>> {
    let mut programs: Vec<_> = network.etcd.iter().map(|host| etcd(place, host)).collect();
    let daemon = bin_dir.join("spillwayd");
    let nodes = network.balancers.iter().map(Host::name);
    for node in nodes.chain(network.backends.iter().map(|backend| backend.name())) {
        let pins = place.bpf().join(node);
        fs::create_dir(&pins).with_context(|| pins.display().to_string())?;
    }
    for host in &network.balancers {
        let file =
            write(place, host.name(), "balancer.toml", &balancer(place, network, host, user))?;
        programs.push(spillwayd(&daemon, host.name(), "balancer", &file));
    }
    for backend in &network.backends {
        let node = backend.name();
        let file = write(place, node, "receiver.toml", &receiver(place, network, node))?;
        programs.push(spillwayd(&daemon, node, "receiver", &file));
        let log = place.node_folder(node).join("requests.log").display().to_string();
        let program = bin_dir.join("webserver").display().to_string();
        let words = ["--name", node, "--work-us", "1000", "--at-a-time", "16", "--log", &log];
        let command = std::iter::once(program.as_str()).chain(words);
        programs.push(Program::new(node, "webserver", command));
    }
    Ok(programs)
}

/// Where the socket of a balancer is.
pub(crate) fn socket(place: &Place, balancer: &str) -> PathBuf {
    place.node_folder(balancer).join("spillwayd.sock")
}

/// The configuration that a lab begins with.
pub(crate) fn configuration(network: &Network) -> String {
    let regions: Vec<_> = REGIONS
        .into_iter()
        .filter(|region| network.backends.iter().any(|backend| backend.region == *region))
        .collect();
    let mut text = format!("hash_key = \"{HASH_KEY}\"\n\n");
    for region in regions {
        text += &format!("[[region]]\nname = \"{region}\"\n\n");
    }
    text += "[[health_check]]\nname = \"web\"\nport = 80\nvia = \"tunnel\"\n\
             http = { path = \"/healthz\" }\n\n[[pool]]\nname = \"web\"\nhealth_checks = [\"web\"]\n\n";
    for backend in &network.backends {
        let (address, region) = (backend.v4, backend.region);
        text += &format!("[[pool.backend]]\naddress = \"{address}\"\nregion = \"{region}\"\n\n");
    }
    let vip = Fabric::VIP_V4;
    text + &format!(
        "[[service]]\nname = \"web\"\naddress = \"{vip}\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"\n"
    )
}

/// Writes a file of a node, and returns its path.
pub(crate) fn write(place: &Place, node: &str, name: &str, text: &str) -> Result<PathBuf> {
    let path = place.node_folder(node).join(name);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(path)
}

fn spillwayd(program: &Path, node: &str, component: &str, settings: &Path) -> Program {
    let (program, settings) = (program.display(), settings.display());
    let words = [program.to_string(), component.into(), "--config".into(), settings.to_string()];
    Program::new(node, component, words)
}

fn balancer(place: &Place, network: &Network, host: &Host, user: Option<u32>) -> String {
    let node = host.name();
    let folder = place.node_folder(node);
    let mut text = format!(
        "interface = [\"eth0\"]\nregion = \"{}\"\nsocket = {:?}\nstate-dir = {:?}\nbpffs = {:?}\n",
        REGIONS[0],
        socket(place, node),
        folder.join("state"),
        place.bpf().join(node),
    );
    // Writing to a string cannot fail.
    if let Some(user) = user {
        let _ = writeln!(text, "socket-owner = \"{user}\"");
    }
    for etcd in &network.etcd {
        let _ = write!(
            text,
            "\n[fleet]\nname = \"{}\"\nbalancer = \"{node}\"\naddress = \"{}:{}\"\n\
             etcd = [\"http://{}:{ETCD_PORT}\"]\ninsecure = true\n",
            place.name,
            host.v4,
            FleetFabric::PEER_PORT,
            etcd.v4,
        );
    }
    text
}

fn receiver(place: &Place, network: &Network, node: &str) -> String {
    let sources: Vec<_> = network.balancers.iter().map(|host| host.v4.to_string()).collect();
    format!(
        "interface = [\"eth0\"]\nallow-source = {sources:?}\nvip = [\"{}\"]\nsocket = {:?}\nbpffs = {:?}\n",
        Fabric::VIP_V4,
        place.node_folder(node).join("receiver.sock"),
        place.bpf().join(node),
    )
}

fn etcd(place: &Place, host: &Host) -> Program {
    let (name, client) = (host.name(), format!("http://{}:{ETCD_PORT}", host.v4));
    let peer = format!("http://{}:2380", host.v4);
    let data = place.node_folder(name).join("data");
    let command = [
        "etcd".to_owned(),
        format!("--name={name}"),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster={name}={peer}"),
    ];
    Program::new(name, "etcd", command)
}
