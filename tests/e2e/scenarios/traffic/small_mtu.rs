//! A condition reports routes to backends that leave less than IPv6's minimum MTU in the tunnel, and ends with them.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;

pub(crate) fn an_mtu_too_small_for_ipv6_is_a_condition(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "least", Health::QUICK)?;
    ensure!(conditions(&fixture)?.is_empty(), "{:?}", conditions(&fixture)?);

    // No route of IPv6 can have less than 1280 bytes.
    let routes = [
        ("v4", "10.1.0.0/24 via 10.0.0.1", 1270, "10.1.0.11", "ip6in4-tcp-7", 1300),
        ("v6", "fd00:1::/64 via fd00::1", 1310, "fd00:1::11", "ip6ip6-tcp-7", 1320),
    ];
    for (_, route, mtu, ..) in routes {
        fixture.fabric.balancer.ip(&format!("route add {route} mtu {mtu}"))?;
    }
    let said = routes.map(|(pool, _, mtu, first, service, least)| {
        format!(
            "pool {pool}: the path to {first} carries {mtu} bytes, but IPv6 service {service} needs {least} \
             for the IPv6 minimum MTU and its tunnel: raise its MTU, and those of the paths to 2 more backends"
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
    wait_for(&fixture, &[])
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
    let conditions = fixture.balancer.status()?.conditions.into_iter();
    Ok(conditions.map(|it| format!("{}: {}", it.subject, it.text)).collect())
}
