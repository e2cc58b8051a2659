//! What is there after a fleet is gone.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_e2e::leftovers::{others, pinned_below};
use lb_tests::process::{PATIENCE, eventually};
use lb_tests::sandbox::Sandbox;

/// No process, no namespace, no data of etcd; and a fleet of the same name can be made again. What ends with the sandbox
/// itself, however that ends, has cases in `self_test`.
pub(super) fn nothing_is_left(sandbox: &Sandbox) -> Result<()> {
    for round in 0..2 {
        let plan = FleetPlan { balancers: 2, per_region: 1, etcd: 1, ..FleetPlan::STANDALONE };
        let fixture = FleetFixture::start(sandbox, "gone", plan)?;
        ensure!(namespaces()?.len() == 2 + 2 + 2 + 1, "round {round}: {:?}", namespaces()?);
        let table = fixture.fleet_table(1)?;
        let begin = "[fleet]\nname = \"edge\"\nbalancer = \"lb-2\"\naddress = \"10.0.2.2:7946\"\n\
                     etcd = [\"https://10.0.9.11:2379\"]\ntls-ca = \"/";
        ensure!(table.starts_with(begin), "{table}");
        let objects: Vec<_> =
            fixture.balancers.iter().flat_map(|it| pinned_below(&it.bpffs)).collect();
        ensure!(!objects.is_empty(), "round {round}: nothing is pinned");
        // One that is stopped is ended too.
        if let Some(etcd) = &fixture.etcd {
            etcd.freeze(0)?;
        }
        let data = fixture.fabric.etcd[0].node.directory().join("data-0");
        ensure!(data.is_dir(), "{}: no data", data.display());
        drop(fixture);
        eventually("all processes are gone", PATIENCE, || others().is_ok_and(|it| it.is_empty()))?;
        ensure!(namespaces()?.is_empty(), "round {round}: {:?}", namespaces()?);
        ensure!(!data.exists(), "{}: still there", data.display());
    }
    Ok(())
}

fn namespaces() -> Result<Vec<String>> {
    let directory = Path::new("/run/netns");
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}
