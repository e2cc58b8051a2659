//! The doctor finds faults on the way to backends, and on them, by VIP probes through the tunnels.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use lb_tests::capture::Capture;
use lb_tests::daemon::{Balancer, Receiver};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, Node, REGIONS};

use super::{document, host::DoctorHost, set_up};

/// What the kernel lets a veth take beyond its MTU, bytes: room for a VLAN's tag (`is_skb_forwardable`).
const TAG: u64 = 4;

pub(crate) fn through_tunnels(sandbox: &Sandbox) -> Result<()> {
    let (fabric, binaries) = set_up(sandbox, "reach")?;
    let sources = [Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()];
    let vips = [Fabric::VIP_V4.into(), Fabric::VIP_V6.into()];
    let receiver = |node: &Node, from: &[_]| Receiver::start(sandbox, &binaries, node, from, &vips);
    let [near, far] = &fabric.backends[..] else { anyhow::bail!("two backends") };
    let mut receivers = [receiver(&near.node, &sources)?, receiver(&far.node, &sources)?];
    let node = &fabric.balancer;
    let mut balancer = Balancer::started(sandbox, &binaries, node, REGIONS[0])?;
    let text = document(&fabric);
    balancer.apply(&text)?;

    // Who is not to send anything makes nothing to send it by.
    DoctorHost::unprobing(node, &binaries, &balancer).until_wrong(&[])?;
    ensure!(!is_there(node)?, "a link for probes that nobody asked for");

    // All is well, and large packets have gone out.
    let host = DoctorHost::balancing(node, &binaries, &balancer);
    let capture = Capture::start(node, "eth0", "")?;
    host.until_wrong(&[])?;
    let well = "VIPs answer through the tunnel, also to packets of 1500 bytes";
    ensure!(lines(&host)? == [format!("4 backends: {well}")], "{:?}", lines(&host)?);
    let frames = capture.stop()?;
    frames.assert_faultless()?;
    let v4 = "ip.proto == 4 && ip.len == 1520 && icmp.type == 8";
    let v6 = "ipv6.nxt == 41 && ipv6.plen == 1500 && icmpv6.type == 128";
    for filter in [v4, v6] {
        ensure!(frames.count(filter)? >= 2, "{filter}: both backends are asked");
    }
    ensure!(is_there(node)?, "no link");

    // In GUE.
    balancer.cli(&["pool", "update", "v4", "--encapsulation", "gue"])?;
    let capture = Capture::start(node, "eth0", "")?;
    host.until_wrong(&[])?;
    let frames = capture.stop()?;
    ensure!(frames.count("udp.dstport == 6080 && ip.len == 1532")? >= 2, "no GUE");
    balancer.apply(&text)?;

    // A VIP that a backend does not have.
    let vip = Fabric::VIP_V4.to_string();
    near.node.ip(&format!("address del {vip}/32 dev lo"))?;
    let wrong = host.until_wrong(&[("tunnels", "problem", &vip)])?;
    let own = near.v4.to_string();
    let found = format!("no answer through the tunnel from {own}, but the host is up");
    ensure!(wrong[0].found == found, "{wrong:?}");
    let add = wrong[0].mend.get(1).context("a second command")?;
    // It is meant for the backend, which has no sshd here.
    let add = add.strip_prefix(&format!("ssh {own} ")).context("a command for the backend")?;
    near.node.run("sh", ["-c", add])?;
    host.until_wrong(&[])?;

    // A receiver that does not let this balancer in.
    receivers[0].running.kill()?;
    receivers[0] = receiver(&near.node, &[Fabric::GATEWAY_V4.into(), sources[1]])?;
    let wrong = host.until_wrong(&[("tunnels", "problem", &vip)])?;
    let why = &wrong[0].why;
    ensure!(why.contains("it does not allow this balancer (10.0.0.2)"), "{why}");
    receivers[0].running.kill()?;
    receivers[0] = receiver(&near.node, &sources)?;
    host.until_wrong(&[])?;

    // A host that is away, and no health check sees it.
    far.unplug()?;
    let wrong = host.until_wrong(&[("tunnels", "problem", &*format!("{} and 1 more", far.v4))])?;
    let away = "the host does not answer, in or outside the tunnel, but it gets new connections";
    ensure!(wrong[0].found == away, "{wrong:?}");
    // The operator who has it so knows.
    for own in [far.v4.to_string(), far.v6.to_string()] {
        balancer.cli(&["backend", "drain", &own])?;
    }
    host.until_wrong(&[])?;
    let away = format!("{} and 1 more: the host does not answer", far.v4);
    ensure!(lines(&host)?.iter().any(|line| line.starts_with(&away)), "{:?}", lines(&host)?);
    for own in [far.v4.to_string(), far.v6.to_string()] {
        balancer.cli(&["backend", "enable", &own])?;
    }
    far.plug_in()?;
    host.until_wrong(&[])?;

    // A daemon that may send no echo requests looks for no large packets, which is no order; as on a stock Debian.
    let groups = "net.ipv4.ping_group_range";
    node.sysctls(&[(groups, "1 0")])?;
    let all = format!("{} and 3 more", near.v4);
    let wrong = host.until_wrong(&[("tunnels", "warning", &all)])?;
    let found = &wrong[0].found;
    ensure!(found.contains("large packets could not be tested"), "{found}");
    host.mend(&wrong[0])?;
    ensure!(lines(&host)? == [format!("4 backends: {well}")], "{:?}", lines(&host)?);

    // A firewall that drops echo requests is no VIP that is missing: nobody serves there, but it says so.
    far.node.sysctls(&[("net.ipv4.icmp_echo_ignore_all", "1")])?;
    host.until_wrong(&[])?;
    let why = format!(
        "{}: VIPs answer through the tunnel, but large packets could not be tested: echo requests are not \
         answered",
        far.v4
    );
    ensure!(lines(&host)?.contains(&why), "{:?}", lines(&host)?);
    far.node.sysctls(&[("net.ipv4.icmp_echo_ignore_all", "0")])?;

    // A VIP may be an address of the balancer too.
    node.ip(&format!("address add {vip}/32 dev lo"))?;
    host.until_wrong(&[])?;
    ensure!(lines(&host)? == [format!("4 backends: {well}")], "{:?}", lines(&host)?);
    node.ip(&format!("address del {vip}/32 dev lo"))?;

    narrow(&host, &balancer, near)?;

    // What was made for probes goes with the daemon, also while nobody answers one.
    ensure!(is_there(node)?, "no link any more");
    for (there, vip) in [near, far].into_iter().flat_map(|it| vips.map(|vip| (it, vip))) {
        let bits = if vip.is_ipv4() { 32 } else { 128 };
        there.node.ip(&format!("address del {vip}/{bits} dev lo"))?;
    }
    std::thread::scope(|scope| {
        let before = probes(&mut balancer);
        let asking = scope.spawn(|| host.ask());
        let begun =
            until("a probe", PATIENCE, || Ok((probes(&mut balancer) > before).then_some(())));
        begun.with_context(|| balancer.running().map(|it| it.output()).unwrap_or_default())?;
        balancer.stop()?;
        ensure!(!is_there(node)?, "the link stays");
        let (answer, _) = asking.join().map_err(|_| anyhow::anyhow!("the doctor's thread"))??;
        let is_well = answer.of_check("tunnels").all(|it| it.level == "ok");
        ensure!(is_well, "a fault of who did not end: {answer:?}");
        Ok(())
    })
}

/// Where the way takes less than this host sends, and drops the rest without a word; the command is pasted.
fn narrow(
    host: &DoctorHost,
    balancer: &Balancer,
    near: &lb_tests::topology::Backend,
) -> Result<()> {
    near.node.ip("link set eth0 mtu 1400")?;
    let backends = format!("{} and 1 more", near.v4);
    let wrong = host.until_wrong(&[("tunnels", "warning", &backends)])?;
    let takes = 1400 + TAG;
    let found = format!(
        "packets of 1500 bytes do not arrive through the tunnel, small ones do (path MTU {takes} with the tunnel)"
    );
    ensure!(wrong[0].found == found, "{wrong:?}");
    let commands = &wrong[0].mend;
    ensure!(commands.len() == 2, "{commands:?}");
    for command in commands {
        let mut shell = balancer.shell(command);
        let status = shell.stdout(Stdio::null()).status()?;
        ensure!(status.success(), "{command}: {status}");
    }
    host.until_wrong(&[])?;
    let said = "2 backends: small packets arrive through the tunnel; see `mtu` for large ones";
    ensure!(lines(host)?.iter().any(|line| line == said), "{:?}", lines(host)?);
    Ok(())
}

/// Probes that the daemon has begun.
fn probes(balancer: &mut Balancer) -> usize {
    let said = balancer.running().map(|running| running.output()).unwrap_or_default();
    said.matches("VIP probe began: ").count()
}

/// What the doctor says of tunnels that is in order.
fn lines(host: &DoctorHost) -> Result<Vec<String>> {
    let (answer, _) = host.ask()?;
    let said = answer.of_check("tunnels").filter(|it| it.level == "ok");
    Ok(said.map(|it| format!("{}: {}", it.subject, it.found)).collect())
}

/// Whether there is the link of probes.
fn is_there(node: &Node) -> Result<bool> {
    let links = node.ip_json("link show")?;
    let links = links.as_array().context("links")?;
    Ok(links.iter().any(|link| link["ifname"] == "spillway0"))
}
