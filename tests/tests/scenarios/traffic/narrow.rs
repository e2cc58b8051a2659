//! Ways that have no room for IPv6's least packet are shown, and so is their end.

use std::net::UdpSocket;

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::scene::{ECHO, Health, Scene, Tunnel};
use lb_tests::topology::Fabric;

pub(crate) fn a_way_too_narrow_for_ipv6_is_a_trouble(sandbox: &Sandbox) -> Result<()> {
    let scene = Scene::start(sandbox, "least", Health::QUICK)?;
    ensure!(troubles(&scene)?.is_empty(), "{:?}", troubles(&scene)?);

    // By routes: of IPv6 none can be narrower than its least packet.
    let routes = [
        ("v4", "10.1.0.0/24 via 10.0.0.1", 1270, "10.1.0.11", "ip6in4-tcp-7", 1300),
        ("v6", "fd00:1::/64 via fd00::1", 1310, "fd00:1::11", "ip6ip6-tcp-7", 1320),
    ];
    for (_, route, mtu, ..) in routes {
        scene.fabric.balancer.ip(&format!("route add {route} mtu {mtu}"))?;
    }
    let said = routes.map(|(pool, _, mtu, first, service, least)| {
        format!(
            "pool {pool}: the way to {first} carries {mtu} bytes, and IPv6 service {service} needs {least}, \
             for IPv6's least packet and its tunnel: raise its MTU, and those of the ways to 2 more backends"
        )
    });
    wait_for(&scene, &said)?;
    // Lines are broken between words.
    let text = scene.balancer.cli(&["status"])?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in &said {
        ensure!(words.contains(&format!("trouble {line} (since ")), "{line}: not in {text}");
    }
    for (_, route, ..) in routes {
        scene.fabric.balancer.ip(&format!("route del {route}"))?;
    }
    wait_for(&scene, &[])?;

    // By what a router says to the balancer of a packet that is too large for the way.
    scene.fabric.router.ip("link set eu mtu 1290")?;
    let socket = scene.fabric.client.enter(|| -> std::io::Result<_> {
        let socket = UdpSocket::bind((Fabric::CLIENT_V6, 0))?;
        socket.connect(Tunnel::Ip6In4.endpoint(ECHO))?;
        Ok(socket)
    })??;
    until("the balancer is told", PATIENCE, || {
        // The client may have been told too, and then refuses to send one so large.
        let _ = socket.send(&[0; 1300]);
        let found = troubles(&scene)?;
        let carries = "carries 1290 bytes, and IPv6 service ip6in4-tcp-7 needs 1300";
        Ok(found.iter().any(|it| it.starts_with("pool v4: ") && it.contains(carries)).then_some(()))
    })
}

/// Waits until these are the troubles.
fn wait_for(scene: &Scene, said: &[String]) -> Result<()> {
    let result =
        until("the troubles are these", PATIENCE, || Ok((troubles(scene)? == said).then_some(())));
    result.with_context(|| format!("{said:?}, not {:?}", troubles(scene)))
}

/// What `spillway status` calls wrong: subject and cause.
fn troubles(scene: &Scene) -> Result<Vec<String>> {
    let status = scene.balancer.ask(&["status"])?;
    let troubles = status["troubles"].as_array().with_context(|| format!("{status}"))?;
    let of = |name: &str, trouble: &serde_json::Value| {
        trouble[name].as_str().unwrap_or_default().to_owned()
    };
    Ok(troubles.iter().map(|it| format!("{}: {}", of("subject", it), of("cause", it))).collect())
}
