//! What is printed of a lab: its network, its files, and commands to try.

use lb_tests::topology::{Fabric, REGIONS};

use crate::UpArguments;
use crate::files::Place;
use crate::network::Network;
use crate::settings::socket;

/// Where a command's explanation stands, if the command is not longer.
const COLUMN: usize = 72;

/// The text for a lab. `sudo`: the reader is not root.
pub(crate) fn text(place: &Place, network: &Network, arguments: UpArguments, sudo: bool) -> String {
    let mut lines = map(network);
    let (folder, first) = (place.folder.display(), network.balancers[0].name());
    lines.push(String::new());
    lines.push(format!(
        "files: {folder}/NODE has logs, settings, *.pid and sockets; {folder}/web.toml is in force"
    ));
    for balancer in network.balancers.iter().skip(1) {
        let (name, socket) = (balancer.name(), socket(place, balancer.name()));
        lines.push(format!("{name}: spillway --socket {} …", socket.display()));
    }
    let root = if sudo { "sudo " } else { "" };
    let enter = format!("{root}ip netns exec {} bash", place.namespace("client"));
    lines.push(format!("a shell on a node, such as the client: {enter}"));
    lines.push(String::new());
    lines.push("to try, in this order or any other:".into());
    let commands = commands(place, network, first, root);
    lines.extend(commands.iter().map(|(command, what)| format!("  {command:<COLUMN$}  # {what}")));
    if arguments.balancers > 1 {
        let status = "spillway fleet status";
        lines.push(format!("  {status:<COLUMN$}  # the balancers, and how they share capacities"));
    }
    lines.push(format!(
        "  {:<COLUMN$}  # what was killed and unplugged comes back",
        "cargo xtask lab repair"
    ));
    lines.push(format!("  {:<COLUMN$}  # all of it goes", "cargo xtask lab down"));
    lines.join("\n")
}

/// The file that a shell reads first: where the commands are, and which balancer they ask.
pub(crate) fn environment(bin_dir: &str, place: &Place, balancer: &str) -> String {
    let quoted = format!("'{}'", bin_dir.replace('\'', r"'\''"));
    let socket = socket(place, balancer);
    format!("export PATH={quoted}:\"$PATH\"\nexport SPILLWAY_SOCKET={}\n", socket.display())
}

fn map(network: &Network) -> Vec<String> {
    let balancers = network.balancers.iter().map(|it| format!("{} {}", it.name(), it.v4));
    let balancers: Vec<_> = balancers.collect();
    let client = format!("client {} ── router ── ", Fabric::CLIENT_V4);
    let indent = " ".repeat(client.chars().count() - 4);
    let mut lines = vec![format!("{client}{}", balancers.join(", "))];
    let last = network.backends.last().map(|it| it.region);
    for region in REGIONS {
        let backends = network.backends.iter().filter(|it| it.region == region);
        let backends: Vec<_> = backends.map(|it| format!("{} {}", it.name(), it.v4)).collect();
        if !backends.is_empty() {
            let corner = if last == Some(region) { '└' } else { '├' };
            lines.push(format!("{indent}{corner}── region {region}: {}", backends.join(", ")));
        }
    }
    lines.push(format!(
        "http://{}/ is the service: pool web, checked through the tunnel",
        Fabric::VIP_V4
    ));
    lines
}

fn commands(
    place: &Place,
    network: &Network,
    balancer: &str,
    root: &str,
) -> Vec<(String, &'static str)> {
    let folder = place.folder.display();
    let (vip, client) = (Fabric::VIP_V4, Fabric::CLIENT_V4);
    let inside = |node: &str| format!("{root}ip netns exec {}", place.namespace(node));
    let [first, second] = [0, 1].map(|number| &network.backends[number]);
    let bpf = place.bpf().join(balancer);
    vec![
        (
            format!(". {folder}/env"),
            "in each shell: where the commands and the balancer's socket are",
        ),
        (
            format!("{} curl -s 'http://{vip}/?[1-8]'", inside("client")),
            "eight connections: backends answer with their names",
        ),
        ("spillway status".into(), "services, backends, and why each is up or down"),
        (
            format!("spillway explain {client}:40000 {vip}:80"),
            "which backend gets a connection, and why",
        ),
        (
            format!("spillway apply -f {folder}/web.toml"),
            "edit the file first; --dry-run only says what would change",
        ),
        (format!("spillway backend drain {} --for 10m", second.v4), "no new connections for it"),
        (format!("spillway backend undrain {}", second.v4), "it gets them again"),
        (
            format!("{root}kill $(cat {folder}/{}/webserver.pid)", first.name()),
            "its check fails, and others get its connections",
        ),
        (
            "spillway capture -w lab.pcapng --duration 2s".into(),
            "packets before and after, with verdict and backend",
        ),
        ("spillway top".into(), "what happens now, live; q ends it"),
        (
            format!(
                "{} \"$(command -v spillway)\" doctor --bpffs {}",
                inside(balancer),
                bpf.display()
            ),
            "what is wrong with the balancer's host",
        ),
    ]
}
