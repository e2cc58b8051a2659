//! The receiver's program at tc's hook and at XDP's: who else is there, what a change leaves, what goes when asked.
//! On this machine's kernel and, as the way to attach is another before Linux 6.6, on others.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use aya::{
    programs::{SchedClassifier, TcAttachType},
    util::KernelVersion,
};
use lb_maps::{
    AllowLists, AttachedMode, Component, Dataplane, Hook, Options, Pins, Receiver, SizeSettings,
    XdpMode, detach,
};

use lb_tests::sandbox::Sandbox;

/// The interface that programs are put on.
const INTERFACE: &str = "hook0";
const TC: Hook = Hook::Tc;
const XDP: Hook = Hook::Xdp(XdpMode::Native);

/// Puts a receiver on an interface, in every order.
///
/// # Errors
/// What is not as it should be.
pub fn at_tc(sandbox: &Sandbox) -> Result<()> {
    pair()?;
    let (ours, theirs) = (sandbox.bpffs("hook-ours")?, sandbox.bpffs("hook-theirs")?);
    somebody_elses(&theirs)?;
    let their_filter = programs()?;
    ensure!(their_filter.len() == 1, "{their_filter:?}");

    // From XDP to tc: what was there is taken off, and ours comes first.
    ensure!(mode(&open(&ours, XDP)?) == Some(AttachedMode::Native));
    let running = open(&ours, TC)?;
    ensure!(mode(&running) == Some(AttachedMode::Tc), "{:?}", mode(&running));
    ensure!(!has_xdp()?, "both programs are there");
    let first = own(&ours, &their_filter)?;
    // Nobody runs it, and it runs; the next daemon puts its own in the same place.
    drop(running);
    ensure!(own(&ours, &their_filter)? == first);
    drop(open(&ours, TC)?);
    ensure!(own(&ours, &their_filter)? != first, "the program is the old one");

    another_at_tc(&ours, &theirs, &their_filter)?;
    another_at_xdp(&ours, &theirs, &their_filter)?;
    cut_off(&ours)?;
    vanished(&ours)?;

    // And back. What others have there stays.
    somebody_elses(&theirs)?;
    let their_filter = programs()?.split_off(1);
    own(&ours, &their_filter)?;
    ensure!(mode(&open(&ours, XDP)?) == Some(AttachedMode::Native));
    ensure!(programs()? == their_filter && has_xdp()?);
    drop(open(&ours, TC)?);
    let detached = detach(&ours, Component::Receiver)?;
    ensure!(detached.interfaces == [INTERFACE], "{detached:?}");
    ensure!(programs()? == their_filter && !has_xdp()?);
    ensure!(std::fs::read_dir(&ours)?.count() == 0, "something is left under {ours:?}");

    let refused = Dataplane::open(&options(&ours, TC, &[INTERFACE]));
    let said = refused.err().context("a balancer at tc's hook")?.to_string();
    ensure!(said == "balancer object: holds no program for this hook", "{said}");
    ip(&format!("link delete dev {INTERFACE}"))
}

/// Somebody else wants to be first too.
fn another_at_tc(ours: &Path, theirs: &Path, their_filter: &[u32]) -> Result<()> {
    let before = programs()?;
    let opened = Receiver::open(&options(theirs, TC, &[INTERFACE]), &AllowLists::default());
    if has_links() {
        drop(opened?);
        ensure!(programs()?.ends_with(&before) && programs()?.len() == before.len() + 1);
        detach(theirs, Component::Receiver)?;
    } else {
        let Err(refused) = opened else { bail!("two filters in one place") };
        let command = "tc filter del dev hook0 ingress pref 1 handle 0x5b1 bpf";
        let expected = format!(
            "hook0: another receiver's tc filter is attached, or one whose pins are gone; \
             `{command}` takes it off"
        );
        ensure!(refused.to_string() == expected, "{refused}");
        ensure!(programs()? == before);
        // As a filter is found that has outlived its pin.
        run("tc", command.trim_start_matches("tc "))?;
        first_place_taken(ours, theirs)?;
        drop(open(ours, TC)?);
        return own(ours, their_filter).map(drop);
    }
    ensure!(programs()? == before);
    own(ours, their_filter).map(drop)
}

/// Somebody else's filter has the place that ours had.
fn first_place_taken(ours: &Path, theirs: &Path) -> Result<()> {
    let program = Pins::new(theirs, Component::Receiver).program();
    let place = format!("dev {INTERFACE} ingress protocol ip prio 1");
    run("tc", &format!("filter add {place} bpf da pinned {}", program.display()))?;
    let opened = Receiver::open(&options(ours, TC, &[INTERFACE]), &AllowLists::default());
    let Err(refused) = opened else { bail!("two kinds of filters in one place") };
    let start = "hook0: another tc filter has priority 1 on ingress, which spillwayd needs: ";
    ensure!(refused.to_string().starts_with(start), "{refused}");
    run("tc", &format!("filter del {place}")).map(drop)
}

/// Somebody else has XDP: who wants to change to it is refused, and keeps what there is.
fn another_at_xdp(ours: &Path, theirs: &Path, their_filter: &[u32]) -> Result<()> {
    let before = own(ours, their_filter)?;
    drop(open(theirs, XDP)?);
    let Err(refused) = open(ours, XDP) else { bail!("two programs at XDP") };
    let said = refused.to_string();
    ensure!(said.starts_with("hook0: another XDP program is attached, receiver (id "), "{said}");
    ensure!(said.contains("): remove it with the tool that attached it, or with "), "{said}");
    ensure!(own(ours, their_filter)? == before, "ours is not what it was: {said}");
    detach(theirs, Component::Receiver).map(drop).map_err(Into::into)
}

/// A daemon that was killed between two pins left a link that has not come to its place.
fn cut_off(ours: &Path) -> Result<()> {
    let pins = Pins::new(ours, Component::Receiver);
    let next = pins.root().join("link-next");
    for hook in [XDP, TC] {
        drop(open(ours, XDP)?);
        std::fs::rename(pins.link(INTERFACE), &next)?;
        let running = open(ours, hook)?;
        ensure!(mode(&running).is_some() && has_xdp()? == (hook == XDP), "{hook:?}");
        ensure!(!next.exists(), "{hook:?}: it is still there");
    }
    Ok(())
}

/// The interface goes, and another of its name comes.
fn vanished(ours: &Path) -> Result<()> {
    let running = open(ours, TC)?;
    ip(&format!("link delete dev {INTERFACE}"))?;
    ensure!(mode(&running).is_none(), "attached to what is gone");
    pair()?;
    ensure!(mode(&running).is_none(), "attached to what is new");
    drop(running);
    let running = open(ours, TC)?;
    ensure!(mode(&running) == Some(AttachedMode::Tc));
    own(ours, &[]).map(drop)
}

/// The id of our program, which has to be before these and no others.
fn own(ours: &Path, others: &[u32]) -> Result<u32> {
    let all = programs()?;
    let pin = Pins::new(ours, Component::Receiver).program();
    let id = SchedClassifier::from_pin(pin)?.info()?.id();
    ensure!(all.split_first() == Some((&id, others)), "{all:?}, expected {id} and {others:?}");
    Ok(id)
}

/// Puts a program into a filter of the interface, as people do.
fn somebody_elses(theirs: &Path) -> Result<()> {
    drop(Receiver::open(&options(theirs, TC, &[]), &AllowLists::default())?);
    let program = Pins::new(theirs, Component::Receiver).program();
    if !run("tc", &format!("qdisc show dev {INTERFACE}"))?.contains("clsact") {
        run("tc", &format!("qdisc add dev {INTERFACE} clsact"))?;
    }
    let filter = format!("filter add dev {INTERFACE} ingress prio 5 bpf da pinned");
    run("tc", &format!("{filter} {}", program.display())).map(drop)
}

fn open(bpffs: &Path, hook: Hook) -> Result<Receiver> {
    Ok(Receiver::open(&options(bpffs, hook, &[INTERFACE]), &AllowLists::default())?)
}

fn options(bpffs: &Path, hook: Hook, interfaces: &[&str]) -> Options {
    let interfaces = interfaces.iter().map(|name| (*name).to_owned()).collect();
    Options {
        bpffs: bpffs.into(),
        interfaces,
        hook,
        sizes: SizeSettings::default(),
        objects: lb_programs::OBJECTS,
    }
}

fn mode(receiver: &Receiver) -> Option<AttachedMode> {
    receiver.attached.interfaces()[0].mode
}

/// Whether the kernel has links for tc.
fn has_links() -> bool {
    KernelVersion::current().is_ok_and(|running| running >= KernelVersion::new(6, 6, 0))
}

/// Ids of the programs that a packet meets at tc's hook, in their order: links first, then filters.
fn programs() -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    if has_links() {
        let (_, programs) = SchedClassifier::query_tcx(INTERFACE, TcAttachType::Ingress)?;
        ids.extend(programs.iter().map(aya::programs::ProgramInfo::id));
    }
    let shown = run("tc", &format!("-json filter show dev {INTERFACE} ingress"))?;
    let filters: serde_json::Value = serde_json::from_str(&shown)?;
    let programs = filters.as_array().into_iter().flatten();
    let number = |filter: &serde_json::Value| filter["options"]["prog"]["id"].as_u64();
    for id in programs.filter_map(number) {
        ids.push(u32::try_from(id)?);
    }
    Ok(ids)
}

fn has_xdp() -> Result<bool> {
    let shown = run("ip", &format!("-json link show dev {INTERFACE}"))?;
    let links: serde_json::Value = serde_json::from_str(&shown)?;
    Ok(links[0]["xdp"]["prog"]["id"].is_u64())
}

fn pair() -> Result<()> {
    ip(&format!("link add {INTERFACE} type veth peer name hook1"))
}

fn ip(arguments: &str) -> Result<()> {
    run("ip", arguments).map(drop)
}

fn run(program: &str, arguments: &str) -> Result<String> {
    let output = Command::new(program).args(arguments.split_whitespace()).output();
    let output = output.with_context(|| program.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}
