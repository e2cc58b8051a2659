//! Pins that a daemon with another layout of its maps has left are told apart and removed.

use std::path::Path;

use anyhow::{Result, ensure};
use aya::maps::{Array, MapData};
use lb_common::abi::LAYOUT_VERSION;
use lb_maps::{
    AllowLists, Component, Dataplane, Detached, LockedPins, Pins, Receiver, XdpMode, detach,
};
use lb_tests::sandbox::Sandbox;
use nix::fcntl::{Flock, FlockArg};

use super::{options, pair, refusal, xdp};

/// What a daemon of another version left: as ours, in a directory of that layout's name.
fn left_by_another_version(bpffs: &Path, role: Component, layout: u32) -> Result<Pins> {
    let (own, other) = (Pins::new(bpffs, role), Pins::with_layout(bpffs, role, layout));
    std::fs::rename(own.root(), other.root())?;
    // A place that this version has no name for.
    let more = other.root().join("later/deeper");
    std::fs::create_dir_all(&more)?;
    Array::<MapData, u64>::create(1, 0)?.pin(more.join("MORE"))?;
    Ok(other)
}

pub(super) fn detach_removes_other_layouts(sandbox: &Sandbox) -> Result<()> {
    pair("va", "vb")?;
    pair("vc", "vd")?;
    let bpffs = sandbox.bpffs("layouts")?;
    drop(Dataplane::open(&options(&bpffs, &["va", "vb"], XdpMode::Auto))?);
    let old = LAYOUT_VERSION + 6;
    let left = left_by_another_version(&bpffs, Component::Balancer, old)?;
    let said = refusal(Dataplane::open(&options(&bpffs, &["va"], XdpMode::Auto)))?;
    ensure!(said.starts_with(&format!("va: already used by balancer-v{old}")), "{said}");
    // Of the other role, which is not asked about.
    drop(Receiver::open(&options(&bpffs, &["vc"], XdpMode::Auto), &AllowLists::default())?);
    left_by_another_version(&bpffs, Component::Receiver, old)?;

    // While a daemon of either layout runs, nothing goes.
    let running = std::fs::File::open(left.root())?;
    let lock = Flock::lock(running, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error)?;
    let in_use = |pins: &Pins| format!("{}: in use by another spillwayd: ", pins.root().display());
    let said = refusal(detach(&bpffs, Component::Balancer))?;
    ensure!(said.starts_with(&in_use(&left)), "{said}");
    drop(lock);
    let running = Dataplane::open(&options(&bpffs, &["vd"], XdpMode::Auto))?;
    let own = Pins::new(&bpffs, Component::Balancer);
    let said = refusal(detach(&bpffs, Component::Balancer))?;
    ensure!(said.starts_with(&in_use(&own)), "{said}");
    ensure!(xdp("va")?.is_some() && xdp("vd")?.is_some(), "a refusal has detached something");

    // Only one of them; the daemon of the other goes on.
    ensure!(
        LockedPins::lock(&bpffs, Component::Balancer, &[old + 1])?.remove()? == Detached::default()
    );
    let detached = LockedPins::lock(&bpffs, Component::Balancer, &[old])?.remove()?;
    let interfaces = vec!["va".into(), "vb".into()];
    ensure!(detached == Detached { layouts: vec![old], interfaces, maps: 13 }, "{detached:?}");
    ensure!(xdp("va")?.is_none() && xdp("vb")?.is_none() && xdp("vd")?.is_some());
    ensure!(!left.root().exists(), "pins are left");
    drop(running);

    // All of them.
    let older = left_by_another_version(&bpffs, Component::Balancer, old)?;
    drop(Dataplane::open(&options(&bpffs, &["va"], XdpMode::Auto))?);
    let detached = detach(&bpffs, Component::Balancer)?;
    let (layouts, interfaces) = (vec![LAYOUT_VERSION, old], vec!["va".into(), "vd".into()]);
    ensure!(detached == Detached { layouts, interfaces, maps: 27 }, "{detached:?}");
    ensure!(xdp("va")?.is_none() && xdp("vd")?.is_none());
    ensure!(!older.root().exists() && !own.root().exists(), "pins are left");
    ensure!(xdp("vc")?.is_some(), "the other role was detached too");
    detach(&bpffs, Component::Receiver)?;
    ensure!(xdp("vc")?.is_none());
    ensure!(std::fs::read_dir(&bpffs)?.count() == 0, "something is left under {bpffs:?}");
    Ok(())
}
