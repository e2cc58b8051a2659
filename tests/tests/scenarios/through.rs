//! Checks through the tunnel: what is checked is what clients use.

use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use lb_tests::capture::Capture;
use lb_tests::daemon::{Binaries, Receiver};
use lb_tests::harness::Case;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::scene::{Health, Scene, Tunnel, configuration};
use lb_tests::topology::{Fabric, Node};
use lb_tests::traffic::Curl;

pub(crate) const CASES: &[Case] =
    &[Case::waits("checks_go_as_clients_packets_do", checks_go_as_clients_packets_do)];

fn checks_go_as_clients_packets_do(sandbox: &Sandbox) -> Result<()> {
    let mut scene = Scene::idle(sandbox, "through")?;
    let text = configuration(&scene.fabric, Health::QUICK).text();
    let name = "[[health_check]]\nname = \"page\"\n";
    let text = text.replace(name, &format!("{name}via = \"tunnel\"\n"));
    // A page that is logged.
    scene.balancer.apply(&text.replace("/healthz", "/"))?;
    scene.wait_up(&[])?;

    // Each backend is asked by each VIP, and nobody by its own address.
    let number = scene.number("eu1")?;
    let node = scene.fabric.backends[number].node.clone();
    let capture = Capture::start(&scene.fabric.balancer, "eth0", "")?;
    wait_asked(&scene)?;
    let frames = capture.stop()?;
    frames.assert_faultless()?;
    for tunnel in Tunnel::ALL {
        ensure!(frames.count(&tunnel.filter())? > 0, "{}: no tunnel", tunnel.vip());
    }
    let own = scene.fabric.backends[number].v4.into();
    ensure!(scene.logged(own)?[number] == 0, "somebody asked {own} itself");

    // A VIP that a backend does not have: its own address would have said that all is well.
    let vip = Tunnel::Ipip.vip();
    node.ip(&format!("address del {vip}/32 dev lo"))?;
    let why = format!("check page of {vip}: no connection within 300 ms, but the host answers");
    wait_why(&scene, own, &why)?;
    let url = format!("http://{own}/healthz");
    Curl::new(&scene.fabric.client).get(&url).context("the server itself answers")?;
    node.ip(&format!("address add {vip}/32 dev lo"))?;
    scene.wait_up(&[])?;

    // A receiver that does not let it in.
    let binaries = Binaries::find()?;
    let sources = [Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()];
    let vips = Tunnel::ALL.map(Tunnel::vip);
    scene.receivers[number].running.kill()?;
    scene.receivers[number] = Receiver::start(sandbox, &binaries, &node, &sources, &vips[1..])?;
    wait_why(&scene, own, &why)?;
    scene.receivers[number].running.kill()?;
    scene.receivers[number] = Receiver::start(sandbox, &binaries, &node, &sources, &vips)?;
    scene.wait_up(&[])?;

    // Another form of tunnel.
    for pool in ["v4", "v6"] {
        scene.balancer.cli(&["pool", "update", pool, "--encapsulation", "gue"])?;
    }
    let capture = Capture::start(&scene.fabric.balancer, "eth0", "")?;
    wait_asked(&scene)?;
    let frames = capture.stop()?;
    for outer in ["ip.proto == 17", "ipv6.nxt == 17"] {
        let gue =
            format!("{outer} && udp.dstport == 6080 && udp.checksum == 0 && udp.srcport >= 49152");
        ensure!(frames.count(&gue)? > 0, "{outer}: no GUE");
    }
    scene.wait_up(&[])?;

    // An address of the balancer's own cannot be asked for elsewhere.
    let balancer = scene.fabric.balancer.clone();
    balancer.ip(&format!("address add {vip}/32 dev lo"))?;
    let why = format!(
        "check page of {vip}: no way through the tunnel: {vip} is an address of this host, so it cannot ask \
         others for it"
    );
    wait_why(&scene, own, &why)?;
    balancer.ip(&format!("address del {vip}/32 dev lo"))?;
    scene.wait_up(&[])?;

    // Whoever takes the link away, or what leads there, gets no check to pass that should not.
    for taken in ["link del spillway0", "rule del pref 50"] {
        balancer.ip(taken)?;
        let words = "no way through the tunnel: what is sent by checks is led elsewhere";
        wait_why(&scene, own, words).with_context(|| taken)?;
        scene.wait_up(&[]).with_context(|| taken)?;
    }

    // A daemon that was killed leaves the link, and the next one makes it anew; one that stops takes it away.
    scene.balancer.kill()?;
    ensure!(probe_links(&balancer)? == 1, "killed: no link is left");
    scene.balancer.cli(&["detach"])?;
    let left = (probe_links(&balancer)?, rules(&balancer)?);
    ensure!(left == (0, 0), "detached: links and rules {left:?}");
    scene.balancer.start()?;
    wait_asked(&scene)?;
    scene.balancer.kill()?;
    scene.balancer.start()?;
    wait_asked(&scene)?;
    scene.wait_up(&[])?;
    ensure!(probe_links(&balancer)? == 1 && rules(&balancer)? == 4, "two rules of each IP version");
    scene.balancer.stop()?;
    let left = (probe_links(&balancer)?, rules(&balancer)?);
    ensure!(left == (0, 0), "stopped: links and rules {left:?}");
    Ok(())
}

/// Waits until each backend has been asked for each VIP, several times from now.
fn wait_asked(scene: &Scene) -> Result<()> {
    let before = asked(scene)?;
    until("all are asked", PATIENCE, || {
        let now = asked(scene)?;
        Ok(now.iter().zip(&before).all(|(now, before)| *now > before + 2).then_some(()))
    })
}

/// Requests to all VIPs, by backend and VIP.
fn asked(scene: &Scene) -> Result<Vec<u64>> {
    let each = Tunnel::ALL.map(|tunnel| scene.logged(tunnel.vip()));
    Ok(each.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// Waits until a backend is out for a reason with these words.
fn wait_why(scene: &Scene, backend: IpAddr, words: &str) -> Result<()> {
    let mut last = String::new();
    until("the backend is out", PATIENCE, || {
        let status = scene.balancer.ask(&["status"])?;
        let backends = status["backends"].as_array().context("backends")?;
        let backend = backends.iter().find(|it| it["address"] == backend.to_string());
        let backend = backend.context("no such backend")?;
        last = format!("{}: {}", backend["state"], backend["reason"]);
        Ok((backend["state"] == "unfit" && last.contains(words)).then_some(()))
    })
    .with_context(|| format!("{last}, not {words}"))
}

/// How many links of checks there are.
fn probe_links(node: &Node) -> Result<usize> {
    let links = node.ip_json("link show")?;
    let links = links.as_array().context("links")?;
    Ok(links.iter().filter(|link| link["ifname"] == "spillway0").count())
}

/// How many rules lead there.
fn rules(node: &Node) -> Result<usize> {
    let mut count = 0;
    for version in ["-4", "-6"] {
        let rules = node.ip_json(&format!("{version} rule show"))?;
        let rules = rules.as_array().context("rules")?;
        count += rules.iter().filter(|rule| rule["fwmark"] == "0x5b000000").count();
    }
    Ok(count)
}
