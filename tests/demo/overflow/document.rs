//! What the balancer is told.

use std::fmt::Write as _;

use lb_tests::topology::{Fabric, REGIONS};

/// The configuration file. `capacities` are new connections a second of each region that takes part,
/// nearest first; a region without one has no limit.
pub(crate) fn document(fabric: &Fabric, capacities: &[Option<f64>]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, fabric, capacities);
    text
}

fn write(out: &mut String, fabric: &Fabric, capacities: &[Option<f64>]) -> std::fmt::Result {
    let regions = &REGIONS[..capacities.len()];
    for (number, region) in regions.iter().enumerate() {
        let others: Vec<_> = regions.iter().skip(number + 1).collect();
        writeln!(out, "[[region]]\nname = \"{region}\"\noverflow_to = {others:?}\n")?;
    }
    writeln!(
        out,
        "[[health_check]]\nname = \"alive\"\nport = 80\nvia = \"tunnel\"\ninterval = \"200ms\"\nfall = 5\n\
         http = {{ path = \"/healthz\" }}\n\n[[pool]]\nname = \"web\"\nhealth_checks = [\"alive\"]\n"
    )?;
    for (region, capacity) in regions.iter().zip(capacities) {
        if let Some(capacity) = capacity {
            writeln!(out, "[[pool.group]]\nregion = \"{region}\"\ncapacity = \"{capacity}/s\"\n")?;
        }
        for backend in fabric.region_backends(region) {
            let address = backend.v4;
            writeln!(out, "[[pool.backend]]\naddress = \"{address}\"\nregion = \"{region}\"\n")?;
        }
    }
    writeln!(
        out,
        "[[service]]\nname = \"web\"\naddress = \"{}\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"",
        Fabric::VIP_V4
    )
}
