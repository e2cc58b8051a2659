//! A path with less room than IPv6's minimum MTU is a condition, and so is its end.

use std::net::UdpSocket;

use anyhow::{Context as _, Result, ensure};
use lb_tests::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;

pub(crate) fn a_path_mtu_too_small_for_ipv6_is_a_condition(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "least", Health::QUICK)?;
    ensure!(conditions(&fixture)?.is_empty(), "{:?}", conditions(&fixture)?);

    // By routes: of IPv6 none can be narrower than its least packet.
    let routes = [
        ("v4", "10.1.0.0/24 via 10.0.0.1", 1270, "10.1.0.11", "ip6in4-tcp-7", 1300),
        ("v6", "fd00:1::/64 via fd00::1", 1310, "fd00:1::11", "ip6ip6-tcp-7", 1320),
    ];
    for (_, route, mtu, ..) in routes {
        fixture.fabric.balancer.ip(&format!("route add {route} mtu {mtu}"))?;
    }
    let said = routes.map(|(pool, _, mtu, first, service, least)| {
        format!(
            "pool {pool}: the way to {first} carries {mtu} bytes, and IPv6 service {service} needs {least}, \
             for IPv6's least packet and its tunnel: raise its MTU, and those of the ways to 2 more backends"
        )
    });
    wait_for(&fixture, &said)?;
    // Lines are broken between words.
    let text = fixture.balancer.cli(&["status"])?;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in &said {
        ensure!(words.contains(&format!("condition {line} (since ")), "{line}: not in {text}");
    }
    for (_, route, ..) in routes {
        fixture.fabric.balancer.ip(&format!("route del {route}"))?;
    }
    wait_for(&fixture, &[])?;

    // By what a router says to the balancer of a packet that is too large for the way.
    fixture.fabric.router.ip("link set eu mtu 1290")?;
    let socket = fixture.fabric.client.enter(|| -> std::io::Result<_> {
        let socket = UdpSocket::bind((Fabric::CLIENT_V6, 0))?;
        socket.connect(Tunnel::Ip6In4.endpoint(ECHO))?;
        Ok(socket)
    })??;
    until("the balancer is told", PATIENCE, || {
        // The client may have been told too, and then refuses to send one so large.
        let _ = socket.send(&[0; 1300]);
        let found = conditions(&fixture)?;
        let carries = "carries 1290 bytes, and IPv6 service ip6in4-tcp-7 needs 1300";
        Ok(found.iter().any(|it| it.starts_with("pool v4: ") && it.contains(carries)).then_some(()))
    })
}

/// Waits until these are the conditions.
fn wait_for(fixture: &Fixture, said: &[String]) -> Result<()> {
    let result = until("the conditions are these", PATIENCE, || {
        Ok((conditions(fixture)? == said).then_some(()))
    });
    result.with_context(|| format!("{said:?}, not {:?}", conditions(fixture)))
}

/// What `spillway status` calls wrong: subject and cause.
fn conditions(fixture: &Fixture) -> Result<Vec<String>> {
    let status = fixture.balancer.ask(&["status"])?;
    let conditions = status["conditions"].as_array().with_context(|| format!("{status}"))?;
    let of = |name: &str, condition: &serde_json::Value| {
        condition[name].as_str().unwrap_or_default().to_owned()
    };
    Ok(conditions.iter().map(|it| format!("{}: {}", of("subject", it), of("cause", it))).collect())
}
