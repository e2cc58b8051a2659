//! The balancer's interface.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{Fixture, Health, configuration},
    harness,
};
use lb_tests::{
    daemon::answers::{self, reason},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::Fabric,
    traffic::Stream,
};
use spillway_proto::v1::BackendState;

use super::{PATIENT, no_problem, streams, wait_for_condition, wait_for_no_condition};

const SUBJECT: &str = "interface eth0";
/// Largest packet of the fabric's links.
const MTU: u32 = 1600;

/// Makes the link to the router again, whose end at the balancer is called so.
fn make_link(fabric: &Fabric, end: &str) -> Result<()> {
    let Fabric { net, balancer, router, .. } = fabric;
    net.link(balancer, end, router, "balancer", MTU)?;
    net.pass_all(router, "balancer")?;
    router.ip("address add 10.0.0.1/24 dev balancer\naddress add fd00::1/64 dev balancer nodad")
}

/// Gives the balancer its addresses and routes again, and the router those of the VIPs.
fn configure(fabric: &Fabric) -> Result<()> {
    configure_balancer(fabric)?;
    for tunnel in lb_e2e::fixture::Tunnel::ALL {
        fabric.route_vip(tunnel.vip())?;
    }
    fabric.net.ready()
}

fn configure_balancer(fabric: &Fabric) -> Result<()> {
    let (v4, v6) = (Fabric::BALANCER_V4, Fabric::BALANCER_V6);
    fabric.balancer.ip(&format!(
        "address replace {v4}/24 dev eth0\naddress replace {v6}/64 dev eth0 nodad\n\
         route replace default via {}\nroute replace default via fd00::1",
        Fabric::GATEWAY_V4
    ))
}

/// Waits until the program is on the interface.
fn wait_for_program(fixture: &Fixture) -> Result<()> {
    until("the program is on the interface", PATIENCE, || {
        let status = fixture.balancer.status()?;
        Ok(status.interfaces.iter().all(|it| it.mode == "native").then_some(()))
    })
}

fn until_logged(fixture: &mut Fixture, words: &str) -> Result<()> {
    until(words, PATIENCE, || {
        let running = fixture.balancer.running().context("it does not run")?;
        Ok(running.output().contains(words).then_some(()))
    })
}

pub(super) fn made_again(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "made-again", PATIENT)?;
    let streams = streams(&fixture)?;
    let before = fixture.balancer.packets("transmitted")?;
    for round in 0..2 {
        fixture.fabric.balancer.ip("link del eth0")?;
        wait_for_condition(&fixture, SUBJECT, "gone, and its packets with it")?;
        let status = fixture.balancer.status()?;
        ensure!(status.interfaces[0].mode.is_empty(), "{:?}", status.interfaces);
        until_logged(&mut fixture, "reports NOT_SERVING: interface eth0")?;
        let begun = Instant::now();
        make_link(&fixture.fabric, "eth0")?;
        configure(&fixture.fabric)?;
        wait_for_program(&fixture)?;
        harness::note(format!("round {round}: attached again after {:.2?}", begun.elapsed()));
        wait_for_no_condition(&fixture)?;
        Stream::all_go_on(&streams).context("after the interface was made again")?;
        // The same maps, and the same pin.
        ensure!(fixture.balancer.packets("transmitted")? > before, "the counters began anew");
        until_logged(&mut fixture, "the packet program was gone, and is attached again (native)")?;
    }
    Stream::finish_all(streams)?;
    fixture.wait_up(&[])?;
    no_problem(&fixture)?;
    // What is pinned is what is there: the next daemon takes it over, and nothing is left when it is detached.
    fixture.balancer.kill()?;
    fixture.balancer.start()?;
    wait_for_program(&fixture)?;
    fixture.balancer.stop()?;
    fixture.balancer.cli(&["detach", "--yes"])?;
    let link = &fixture.fabric.balancer.ip_json("link show dev eth0")?[0];
    ensure!(link["xdp"].is_null(), "{link}");
    Ok(())
}

/// Checks fail while the balancer has no interface. That is not the backends' fault, however often it happens.
pub(super) fn holds_nothing_down(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "if-no-hold", Health::QUICK)?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let off = "hold_down = \"0s\"";
    ensure!(text.contains(off), "{text}");
    fixture.balancer.apply(&text.replace(off, "hold_down = \"120s\""))?;
    for round in 0..3 {
        fixture.fabric.balancer.ip("link del eth0")?;
        wait_for_states(&fixture, |state| state == BackendState::Unreachable)
            .with_context(|| format!("round {round}"))?;
        make_link(&fixture.fabric, "eth0")?;
        configure(&fixture.fabric)?;
        wait_for_states(&fixture, |state| state == BackendState::Up)
            .with_context(|| format!("round {round}"))?;
    }
    no_problem(&fixture)
}

fn wait_for_states(fixture: &Fixture, is: impl Fn(BackendState) -> bool) -> Result<()> {
    let mut last = Vec::new();
    until("the states of all backends", PATIENCE, || {
        let status = fixture.balancer.status()?;
        last = status.backends.iter().map(|it| (it.state(), reason(it).to_owned())).collect();
        Ok(last.iter().all(|(state, _)| is(*state)).then_some(()))
    })
    .with_context(|| format!("{last:?}"))
}

/// Down and up, and to another namespace and back.
pub(super) fn away(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "if-away", PATIENT)?;
    let streams = streams(&fixture)?;
    let Fabric { balancer, client, .. } = &fixture.fabric;
    balancer.ip("link set eth0 down")?;
    until("no next hop", PATIENCE, || {
        let status = fixture.balancer.status()?;
        Ok(status.backends.iter().all(|it| !it.next_hop_resolved).then_some(()))
    })?;
    balancer.ip("link set eth0 up")?;
    configure_balancer(&fixture.fabric)?;
    Stream::all_go_on(&streams).context("after down and up")?;

    balancer.ip(&format!("link set eth0 name lent0 netns {}", client.namespace()))?;
    wait_for_condition(&fixture, SUBJECT, "gone, and its packets with it")?;
    client.ip(&format!("link set lent0 name eth0 netns {}", balancer.namespace()))?;
    balancer.ip("link set eth0 up")?;
    configure_balancer(&fixture.fabric)?;
    wait_for_program(&fixture)?;
    wait_for_no_condition(&fixture)?;
    Stream::all_go_on(&streams).context("after its return")?;
    Stream::finish_all(streams)?;
    no_problem(&fixture)
}

pub(super) fn taken_off(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "taken-off", PATIENT)?;
    let streams = streams(&fixture)?;
    let balancer = fixture.fabric.balancer.clone();
    let program = |fixture: &Fixture| -> Result<u64> {
        let link = &fixture.fabric.balancer.ip_json("link show dev eth0")?[0];
        link["xdp"]["prog"]["id"].as_u64().with_context(|| format!("no program: {link}"))
    };
    let own = program(&fixture)?;
    let pin = fixture.balancer.pins().link("eth0");
    for _ in 0..2 {
        balancer.run("bpftool", ["link", "detach", "pinned", &pin.display().to_string()])?;
        let begun = Instant::now();
        until("the program is back", PATIENCE, || Ok(program(&fixture).is_ok().then_some(())))?;
        harness::note(format!("taken off: back after {:.2?}", begun.elapsed()));
        ensure!(program(&fixture)? == own, "it is another program");
        Stream::all_go_on(&streams).context("after the program was taken off")?;
    }
    until_logged(
        &mut fixture,
        "interface eth0: the packet program was gone, and is attached again",
    )?;
    Stream::finish_all(streams)?;
    wait_for_no_condition(&fixture)?;
    no_problem(&fixture)
}

/// An interface of the name that is there with the program of somebody else.
pub(super) fn another_program(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "if-occupied", PATIENT)?;
    let balancer = &fixture.fabric.balancer;
    balancer.ip("link del eth0")?;
    wait_for_condition(&fixture, SUBJECT, "gone, and its packets with it")?;
    make_link(&fixture.fabric, "next0")?;
    fixture.fabric.net.pass_all(balancer, "next0")?;
    balancer.ip("link set next0 down\nlink set next0 name eth0\nlink set eth0 up")?;
    let words = "the packet program is not attached, tried again twice a second: another XDP program is attached";
    wait_for_condition(&fixture, SUBJECT, words)?;
    // Its pin is gone, but a new daemon would refuse to start.
    let output = fixture.balancer.try_cli(&["doctor", "--no-probes"], None)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let problems = text.lines().filter(|line| line.starts_with("problem ")).collect::<Vec<_>>();
    ensure!(problems.iter().any(|it| it.contains("interface eth0")), "{text}");
    ensure!(text.contains("ip link set dev eth0 xdp off"), "{text}");
    ensure!(!text.contains("kill ") && !text.contains("have no interface"), "{text}");
    let status = fixture.balancer.status()?;
    ensure!(answers::condition(&status, SUBJECT).is_some_and(|it| it.contains("pass")), "its name");
    balancer.ip("link set eth0 xdp off")?;
    wait_for_program(&fixture)?;
    configure(&fixture.fabric)?;
    wait_for_no_condition(&fixture)?;
    let streams = streams(&fixture)?;
    Stream::finish_all(streams)
}

/// The names of the interfaces that status shows, with the mode of the program there.
fn shown(fixture: &Fixture) -> Result<Vec<(String, String)>> {
    let interfaces = fixture.balancer.status()?.interfaces;
    Ok(interfaces.into_iter().map(|it| (it.name, it.mode)).collect())
}

fn native(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).into(), "native".into())).collect()
}

/// The program stays where it is, and the next start finds it by the new name.
pub(super) fn renamed(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "if-renamed", PATIENT)?;
    let streams = streams(&fixture)?;
    let balancer = fixture.fabric.balancer.clone();
    let before = fixture.balancer.packets("transmitted")?;
    balancer.ip("link set eth0 name wan0")?;
    wait_for_condition(&fixture, SUBJECT, "is called wan0 now")?;
    ensure!(shown(&fixture)? == native(&["wan0"]), "{:?}", shown(&fixture)?);
    Stream::all_go_on(&streams).context("under another name")?;
    no_problem(&fixture)?;
    balancer.ip("link set wan0 name eth0")?;
    wait_for_no_condition(&fixture)?;
    ensure!(shown(&fixture)? == native(&["eth0"]), "{:?}", shown(&fixture)?);

    // While a daemon runs, and while none does.
    for (first, dead) in [("wan1", false), ("wan2", true)] {
        if dead {
            fixture.balancer.kill()?;
        }
        balancer.ip(&format!("link set {} name {first}", fixture.balancer.interface))?;
        if !dead {
            wait_for_condition(&fixture, SUBJECT, "is called wan1 now")?;
            fixture.balancer.kill()?;
        }
        fixture.balancer.interface = first.into();
        fixture.balancer.start()?;
        ensure!(shown(&fixture)? == native(&[first]), "{:?}", shown(&fixture)?);
        Stream::all_go_on(&streams).with_context(|| format!("as {first}"))?;
        let pins: Vec<_> = std::fs::read_dir(fixture.balancer.pins().links())?
            .map(|pin| Ok(pin?.file_name()))
            .collect::<Result<_>>()?;
        ensure!(pins == [first], "{pins:?}");
    }
    ensure!(fixture.balancer.packets("transmitted")? > before, "the counters began anew");
    wait_for_no_condition(&fixture)?;
    Stream::finish_all(streams)?;
    // Another one of the name in the settings takes its place, and the first one loses the program.
    balancer.ip("link set wan2 name old0")?;
    wait_for_condition(&fixture, "interface wan2", "is called old0 now")?;
    let Fabric { net, router, .. } = &fixture.fabric;
    net.link(&balancer, "wan2", router, "second", MTU)?;
    wait_for_no_condition(&fixture)?;
    until("the first one is without it", PATIENCE, || {
        let link = &balancer.ip_json("link show dev old0")?[0];
        Ok(link["xdp"].is_null().then_some(()))
    })
}

/// Two interfaces exchange their names, while a daemon runs and while none does.
pub(super) fn exchanged(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "if-exchange", PATIENT)?;
    let Fabric { net, balancer, router, .. } = &fixture.fabric;
    net.link(balancer, "eth1", router, "second", MTU)?;
    net.pass_all(router, "second")?;
    let balancer = balancer.clone();
    let exchange = || {
        balancer.ip("link set eth0 name aside\nlink set eth1 name eth0\nlink set aside name eth1")
    };
    fixture.balancer.stop()?;
    fixture.balancer.interface = "eth0,eth1".into();
    fixture.balancer.start()?;
    let streams = streams(&fixture)?;
    let both = native(&["eth0", "eth1"]);
    ensure!(shown(&fixture)? == both, "{:?}", shown(&fixture)?);
    for dead in [false, true, true, false] {
        if dead {
            fixture.balancer.kill()?;
        }
        exchange()?;
        Stream::all_go_on(&streams).context("they are exchanged")?;
        if !dead {
            fixture.balancer.kill()?;
        }
        fixture.balancer.start()?;
        wait_for_no_condition(&fixture)?;
        ensure!(shown(&fixture)? == both, "{:?}", shown(&fixture)?);
        Stream::all_go_on(&streams).context("after a start")?;
    }
    let output = fixture.balancer.running().context("it does not run")?.output();
    ensure!(!output.contains("attached again"), "{output}");
    Stream::finish_all(streams)?;
    no_problem(&fixture)
}

/// The settings have another name than the kernel (`altname`), and the interface comes back under another one of the
/// kernel's.
pub(super) fn by_its_other_name(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "if-altname", PATIENT)?;
    let balancer = fixture.fabric.balancer.clone();
    let long = "enp129s0f0np0carrier";
    let name = |own: &str| balancer.ip(&format!("link property add dev {own} altname {long}"));
    name("eth0")?;
    fixture.balancer.stop()?;
    fixture.balancer.interface = long.into();
    fixture.balancer.start()?;
    let streams = streams(&fixture)?;
    // Renamed, it is the same one to the settings.
    balancer.ip("link set eth0 name eth5")?;
    until("the new name is shown", PATIENCE, || {
        Ok((shown(&fixture)? == native(&["eth5"])).then_some(()))
    })?;
    wait_for_no_condition(&fixture)?;
    Stream::all_go_on(&streams).context("under another name")?;
    balancer.ip("link del eth5")?;
    let subject = format!("interface {long}");
    wait_for_condition(&fixture, &subject, "gone, and its packets with it")?;
    make_link(&fixture.fabric, "eth0")?;
    name("eth0")?;
    configure(&fixture.fabric)?;
    wait_for_no_condition(&fixture)?;
    ensure!(shown(&fixture)? == native(&["eth0"]), "{:?}", shown(&fixture)?);
    Stream::all_go_on(&streams).context("after its return")?;
    Stream::finish_all(streams)?;
    no_problem(&fixture)
}
