//! Programs, links and pins: what stays over restarts, what a start refuses, and what `detach` removes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod layouts;
mod sizes;
mod slow_path;

use std::{
    collections::BTreeSet,
    net::IpAddr,
    num::NonZeroU16,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use aya::{
    maps::{Array, MapData, PerCpuArray},
    programs::links::{FdLink, PinnedLink},
};
use lb_common::abi::LAYOUT_VERSION;
use lb_e2e::harness::Case;
use lb_maps::{
    AllowLists, AttachedMode, Component, Dataplane, Detached, Options, PinnedMaps, Pins, Prefix,
    Receiver, ReceiverMaps, SizeSettings, XdpMode, detach,
};
use lb_tests::sandbox::Sandbox;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_restart_replaces_the_program_and_keeps_the_link", restart_keeps_the_link),
    Case::waits("the_slow_path_is_there_for_as_long_as_the_fast_one", slow_path::stays),
    Case::waits("auto_falls_back_and_native_refuses", modes),
    Case::waits("another_mode_or_name_is_attached_anew", attached_anew),
    Case::waits("a_foreign_program_is_left_alone", occupied),
    Case::waits("one_interface_has_one_role", one_role),
    Case::waits("one_daemon_at_a_time_has_the_pins", one_daemon),
    Case::waits("a_start_that_fails_leaves_no_link", failed_start),
    Case::waits("what_is_no_longer_listed_is_detached", no_longer_listed),
    Case::waits("detach_removes_all_and_says_what", detach_removes_all),
    Case::waits("detach_removes_the_pins_of_other_layouts", layouts::detach_removes_other_layouts),
    Case::waits("new_maps_are_as_large_as_asked_and_stay_so", sizes::stay),
    Case::waits("a_start_that_was_interrupted_goes_on_with_its_sizes", sizes::interrupted),
    Case::waits("pins_that_do_not_fit_each_other_are_refused", sizes::misfits),
    Case::waits("the_greatest_sizes_can_be_made_and_used", sizes::greatest),
    Case::waits("pins_of_another_layout_are_refused", other_layout),
    Case::waits("a_directory_that_is_no_bpf_file_system_is_refused", no_bpffs),
    Case::waits("a_receivers_lists_follow_its_options", receiver_lists),
];

fn ip(arguments: &str) -> Result<String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {arguments}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// A veth pair.
fn pair(a: &str, b: &str) -> Result<()> {
    ip(&format!("link add {a} type veth peer name {b}")).map(drop)
}

/// Mode (as `ip` prints it: 1 native, 2 generic) and program id that the kernel reports.
fn xdp(interface: &str) -> Result<Option<(u64, u64)>> {
    let links: serde_json::Value =
        serde_json::from_str(&ip(&format!("-details -json link show dev {interface}"))?)?;
    let xdp = &links[0]["xdp"];
    let program = xdp["prog"]["id"].as_u64();
    Ok(program.map(|program| (xdp["mode"].as_u64().unwrap_or(0), program)))
}

const NATIVE: u64 = 1;
const GENERIC: u64 = 2;

fn options(bpffs: &Path, interfaces: &[&str], mode: XdpMode) -> Options {
    let interfaces = interfaces.iter().map(|name| (*name).to_owned()).collect();
    Options {
        bpffs: bpffs.into(),
        interfaces,
        hook: mode.into(),
        sizes: SizeSettings::default(),
        objects: lb_programs::OBJECTS,
    }
}

fn refusal<T>(opened: Result<T, impl std::error::Error>) -> Result<String> {
    match opened {
        Ok(_) => bail!("was not refused"),
        Err(error) => Ok(error.to_string()),
    }
}

/// Ids of a pinned link and of its program.
fn link(bpffs: &Path, role: Component, interface: &str) -> Result<(u32, u32)> {
    let pin = Pins::new(bpffs, role).link(interface);
    let link = FdLink::from(PinnedLink::from_pin(pin)?).info()?;
    Ok((link.id(), link.program_id()))
}

fn restart_keeps_the_link(sandbox: &Sandbox) -> Result<()> {
    pair("ra", "rb.100")?;
    let bpffs = sandbox.bpffs("restart")?;
    let options = options(&bpffs, &["ra", "rb.100"], XdpMode::Native);
    let before = {
        let running = Dataplane::open(&options)?;
        let modes: Vec<_> =
            running.attached.interfaces().into_iter().map(|i| (i.name, i.mode)).collect();
        let native = Some(AttachedMode::Native);
        ensure!(modes == [("ra".into(), native), ("rb.100".into(), native)], "{modes:?}");
        ["ra", "rb.100"].map(|name| link(&bpffs, Component::Balancer, name).unwrap())
    };
    for (name, (_, program)) in ["ra", "rb.100"].iter().zip(before) {
        ensure!(xdp(name)? == Some((NATIVE, program.into())), "nobody runs it, and it runs");
    }
    let _running = Dataplane::open(&options)?;
    for (name, (id, program)) in ["ra", "rb.100"].iter().zip(before) {
        let (id_now, program_now) = link(&bpffs, Component::Balancer, name)?;
        ensure!(id_now == id, "{name}: the link is another, so there was a gap");
        ensure!(program_now != program, "{name}: the program is the old one");
        ensure!(xdp(name)? == Some((NATIVE, program_now.into())));
    }
    Ok(())
}

fn modes(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("modes")?;
    let native = Dataplane::open(&options(&bpffs, &["lo"], XdpMode::Native));
    let said = refusal(native)?;
    ensure!(said.starts_with("lo: no native XDP ("), "{said}");
    ensure!(xdp("lo")?.is_none());
    let fallen_back = Dataplane::open(&options(&bpffs, &["lo"], XdpMode::Auto))?;
    let [interface] = &fallen_back.attached.interfaces()[..] else { bail!("one interface") };
    ensure!(interface.mode == Some(AttachedMode::Generic));
    ensure!(xdp("lo")?.context("nothing attached")?.0 == GENERIC);
    drop(fallen_back);
    detach(&bpffs, Component::Balancer)?;
    ensure!(xdp("lo")?.is_none());
    Ok(())
}

fn attached_anew(sandbox: &Sandbox) -> Result<()> {
    pair("na", "nb")?;
    let bpffs = sandbox.bpffs("anew")?;
    drop(Dataplane::open(&options(&bpffs, &["na"], XdpMode::Auto))?);
    ensure!(xdp("na")?.context("nothing attached")?.0 == NATIVE);
    drop(Dataplane::open(&options(&bpffs, &["na"], XdpMode::Generic))?);
    ensure!(xdp("na")?.context("nothing attached")?.0 == GENERIC);
    // What was allowed before is kept.
    drop(Dataplane::open(&options(&bpffs, &["na"], XdpMode::Auto))?);
    ensure!(xdp("na")?.context("nothing attached")?.0 == GENERIC);
    // The name goes to another interface: the program goes with the name.
    ip("link set dev na name nc")?;
    ip("link set dev nb name na")?;
    drop(Dataplane::open(&options(&bpffs, &["na"], XdpMode::Auto))?);
    ensure!(xdp("na")?.context("nothing attached")?.0 == NATIVE);
    ensure!(xdp("nc")?.is_none());
    // The interface is made anew under the same name.
    ip("link delete dev na")?;
    pair("na", "nb")?;
    drop(Dataplane::open(&options(&bpffs, &["na"], XdpMode::Auto))?);
    ensure!(xdp("na")?.context("nothing attached")?.0 == NATIVE);
    Ok(())
}

fn occupied(sandbox: &Sandbox) -> Result<()> {
    pair("oa", "ob")?;
    let theirs = sandbox.bpffs("theirs")?;
    drop(Dataplane::open(&options(&theirs, &[], XdpMode::Auto))?);
    let program = Pins::new(&theirs, Component::Balancer).program();
    ip(&format!("link set dev oa xdpdrv pinned {}", program.display()))?;
    let before = xdp("oa")?.context("nothing attached")?;

    let bpffs = sandbox.bpffs("ours")?;
    let said = refusal(Dataplane::open(&options(&bpffs, &["oa"], XdpMode::Auto)))?;
    let expected = format!(
        "oa: another XDP program is attached, balancer (id {}): remove it with the tool \
         that attached it, or with `ip link set dev oa xdp off`",
        before.1
    );
    ensure!(said == expected, "{said}");
    ensure!(xdp("oa")? == Some(before));
    // The way out that it names is one.
    ip("link set dev oa xdp off")?;
    drop(Dataplane::open(&options(&bpffs, &["oa"], XdpMode::Auto))?);

    // What a link holds only the link lets go.
    detach(&bpffs, Component::Balancer)?;
    drop(Dataplane::open(&options(&theirs, &["oa"], XdpMode::Auto))?);
    let before = xdp("oa")?.context("nothing attached")?;
    let said = refusal(Dataplane::open(&options(&bpffs, &["oa"], XdpMode::Auto)))?;
    let start = format!(
        "oa: another XDP program is attached, balancer (id {}): remove it with the tool that attached it, or with `bpftool link detach id ",
        before.1
    );
    let link = said.strip_prefix(&start).and_then(|rest| rest.split_once('`'));
    let (link, rest) = link.with_context(|| said.clone())?;
    ensure!(rest == ", since a link holds it", "{said}");
    ensure!(!Pins::new(&bpffs, Component::Balancer).root().exists(), "a refusal leaves pins");
    let detached = Command::new("bpftool").args(["link", "detach", "id", link]).output()?;
    ensure!(detached.status.success() && xdp("oa")?.is_none(), "{detached:?}");
    Dataplane::open(&options(&bpffs, &["oa"], XdpMode::Auto))?;
    Ok(())
}

fn one_role(sandbox: &Sandbox) -> Result<()> {
    pair("ia", "ib")?;
    let bpffs = sandbox.bpffs("role")?;
    let options = options(&bpffs, &["ia"], XdpMode::Auto);
    drop(Dataplane::open(&options)?);
    let before = xdp("ia")?;
    let said = refusal(Receiver::open(&options, &AllowLists::default()))?;
    let expected = "ia: already used by balancer-v7, and an interface can have only one component: stop \
                    that spillwayd and remove its pins with `spillway detach`";
    ensure!(said == expected, "{said}");
    ensure!(xdp("ia")? == before);
    let receiver = Pins::new(&bpffs, Component::Receiver);
    ensure!(!receiver.root().exists(), "what was refused looks like a role at work");
    // Loopback has no driver: this one is refused when all is loaded already.
    let hook = XdpMode::Native.into();
    let lo = Options { interfaces: vec!["lo".into()], hook, ..options.clone() };
    let said = refusal(Receiver::open(&lo, &AllowLists::default()))?;
    ensure!(said.starts_with("lo: no native XDP"), "{said}");
    ensure!(!receiver.root().exists(), "what was refused looks like a role at work");
    detach(&bpffs, Component::Balancer)?;
    drop(Receiver::open(&options, &AllowLists::default())?);
    let said = refusal(Dataplane::open(&options))?;
    ensure!(said == expected.replace("balancer-v7", "receiver-v7"), "{said}");
    Ok(())
}

fn one_daemon(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("lock")?;
    let options = options(&bpffs, &[], XdpMode::Auto);
    let expected = format!(
        "{}: in use by another spillwayd: stop it first, or give this one another --bpffs",
        Pins::new(&bpffs, Component::Balancer).root().display()
    );
    let first = Dataplane::open(&options)?;
    ensure!(refusal(Dataplane::open(&options))? == expected);
    ensure!(refusal(detach(&bpffs, Component::Balancer))? == expected);
    let other_role = Receiver::open(&options, &AllowLists::default())?;
    drop(first);
    drop(Dataplane::open(&options)?);
    drop(other_role);
    Ok(())
}

fn failed_start(sandbox: &Sandbox) -> Result<()> {
    pair("fa", "fb")?;
    let bpffs = sandbox.bpffs("failed")?;
    drop(Dataplane::open(&options(&bpffs, &["fb"], XdpMode::Auto))?);
    let before = link(&bpffs, Component::Balancer, "fb")?;
    let opened = Dataplane::open(&options(&bpffs, &["fb", "fa", "nowhere"], XdpMode::Auto));
    ensure!(refusal(opened)? == "nowhere: no such interface");
    ensure!(xdp("fa")?.is_none(), "a link that the failed start made is left");
    ensure!(link(&bpffs, Component::Balancer, "fb")?.0 == before.0, "the link from before is gone");
    ensure!(xdp("fb")?.is_some());
    Ok(())
}

fn no_longer_listed(sandbox: &Sandbox) -> Result<()> {
    pair("la", "lb")?;
    let bpffs = sandbox.bpffs("listed")?;
    drop(Dataplane::open(&options(&bpffs, &["la", "lb"], XdpMode::Auto))?);
    drop(Dataplane::open(&options(&bpffs, &["lb"], XdpMode::Auto))?);
    ensure!(xdp("la")?.is_none());
    ensure!(xdp("lb")?.is_some());
    Ok(())
}

fn detach_removes_all(sandbox: &Sandbox) -> Result<()> {
    pair("da", "db.7")?;
    let bpffs = sandbox.bpffs("detach")?;
    drop(Dataplane::open(&options(&bpffs, &["da", "db.7"], XdpMode::Auto))?);
    PinnedMaps::open(&bpffs)?;
    let detached = detach(&bpffs, Component::Balancer)?;
    let interfaces = vec!["da".into(), "db.7".into()];
    let expected = Detached { layouts: vec![LAYOUT_VERSION], interfaces, maps: 14 };
    ensure!(detached == expected, "{detached:?}");
    // At once, not some time later: the next program can be attached.
    ensure!(xdp("da")?.is_none() && xdp("db.7")?.is_none());
    ensure!(std::fs::read_dir(&bpffs)?.count() == 0, "something is left under {bpffs:?}");
    ensure!(detach(&bpffs, Component::Balancer)? == Detached::default());
    let said = refusal(PinnedMaps::open(&bpffs))?;
    let pin = Pins::new(&bpffs, Component::Balancer).map("ARRAYS");
    ensure!(said.starts_with(&format!("{}: no such pin: ", pin.display())), "{said}");
    Ok(())
}

fn other_layout(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("layout")?;
    let pin = Pins::new(&bpffs, Component::Balancer).map("SERVICE_COUNTERS");
    std::fs::create_dir_all(pin.parent().unwrap())?;
    let other = PerCpuArray::<MapData, [u8; 64]>::create(4_097, 0)?;
    other.pin(&pin)?;
    let said = refusal(Dataplane::open(&options(&bpffs, &[], XdpMode::Auto)))?;
    let expected = format!(
        "{}: has key and value of 4 and 64 bytes, expected 4 and 24: another build of spillwayd \
         made it; remove its pins with `spillway detach`",
        pin.display()
    );
    ensure!(said == expected, "{said}");
    // Arrays of another build say no sizes, or cannot be read at all.
    for (flags, has) in [
        (1 << 10, "sizes that no settings make"),
        (0, "memory that cannot be mapped, expected BPF_F_MMAPABLE"),
    ] {
        detach(&bpffs, Component::Balancer)?;
        let pin = Pins::new(&bpffs, Component::Balancer).map("ARRAYS");
        std::fs::create_dir_all(pin.parent().unwrap())?;
        Array::<MapData, [u8; 64]>::create(1, flags)?.pin(&pin)?;
        let said = refusal(Dataplane::open(&options(&bpffs, &[], XdpMode::Auto)))?;
        let expected = format!(
            "{}: has {has}: another build of spillwayd made it; remove its pins with `spillway \
             detach`",
            pin.display()
        );
        ensure!(said == expected, "{said}");
    }
    detach(&bpffs, Component::Balancer)?;
    Dataplane::open(&options(&bpffs, &[], XdpMode::Auto))?;
    Ok(())
}

fn no_bpffs(sandbox: &Sandbox) -> Result<()> {
    let directory: PathBuf = sandbox.directory("plain")?;
    let said = refusal(Dataplane::open(&options(&directory, &[], XdpMode::Auto)))?;
    let path = directory.display();
    let expected =
        format!("{path}: not a BPF file system: mount one with `mount -t bpf bpf {path}`");
    ensure!(said == expected, "{said}");
    Ok(())
}

fn receiver_lists(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("receiver")?;
    let options = options(&bpffs, &[], XdpMode::Auto);
    let lists = |sources: &[&str], vips: &[&str], endpoints: &[&str]| AllowLists {
        sources: sources.iter().map(|text| text.parse::<Prefix>().unwrap()).collect(),
        vips: vips.iter().map(|text| text.parse::<IpAddr>().unwrap()).collect::<BTreeSet<_>>(),
        endpoints: endpoints.iter().map(|text| text.parse().unwrap()).collect(),
        gue_port: NonZeroU16::new(vips.len() as u16),
    };
    for lists in [
        lists(
            &["192.0.2.1/32", "198.51.100.0/24", "2001:db8::/32"],
            &["203.0.113.1", "::5"],
            &["10.0.0.1"],
        ),
        // What was a VIP may become an endpoint, and the other way round.
        lists(&["192.0.2.1/32"], &["203.0.113.1", "10.0.0.1"], &["::5", "fd00::1"]),
        lists(&["192.0.2.1/32", "198.51.0.0/16"], &["203.0.113.1", "203.0.113.2"], &["fd00::1"]),
        lists(&[], &[], &[]),
        lists(&["0.0.0.0/0"], &["2001:db8::1"], &["10.0.0.1", "10.0.0.2"]),
    ] {
        let receiver = Receiver::open(&options, &lists)?;
        ensure!(ReceiverMaps::open(&bpffs)?.allowed()? == lists);
        ensure!(receiver.maps.verdicts()?.iter().all(|(_, counter)| counter.packets == 0));
    }
    ensure!(detach(&bpffs, Component::Receiver)?.maps == 5);
    Ok(())
}
