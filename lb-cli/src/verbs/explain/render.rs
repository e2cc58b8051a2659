//! An explanation for people.

use lb_daemon::{
    explain::{Chosen, Explanation, RegionOutcome, kind_name},
    model::Encapsulation,
    names::interface_words,
};

use crate::output::{Grid, Report, fields};

impl Report for Explanation {
    fn table(&self) -> String {
        let mut head = vec![(
            "packet",
            format!(
                "{} {} -> {}, {}",
                self.protocol,
                self.client,
                self.vip,
                kind_name(self.packet)
            ),
        )];
        if let Some(service) = &self.service {
            head.push((
                "service",
                format!("{}, pool {}, affinity {}", service.name, service.pool, service.affinity),
            ));
        }
        if let Some((slot, hash)) = self.slot.as_ref().zip(self.hash.as_ref()) {
            head.push(("slot", format!("{} of {} (hash {hash})", slot.number, slot.of)));
        }
        head.push(("verdict", self.verdict.to_string()));
        if let Some(Chosen {
            backend,
            region,
            next_hop,
            interface,
            interface_name,
            encapsulation,
            gue_port,
            ..
        }) = &self.choice
        {
            let region = region.as_ref().map_or_else(
                || "in no region that the pool asks now".into(),
                |region| format!("region {region}"),
            );
            head.push(("backend", format!("{backend}, {region}")));
            match (encapsulation, gue_port) {
                (Encapsulation::Direct, _) => head.push(("in", "no tunnel (direct return)".into())),
                (_, Some(port)) => head.push(("in", format!("GUE to UDP port {port}"))),
                _ => {}
            }
            let out = interface_words(interface_name.clone(), *interface);
            head.push(("next hop", format!("{next_hop} on {out}")));
        }
        head.push(("why", self.why.clone()));
        if let Some(regions) = regions(self) {
            head.push(("regions", regions));
        }
        let mut text = fields(&head);
        if !self.entries.is_empty() {
            text += "\n";
            text += &lists(self);
        }
        text
    }
}

/// What was made of each region that was asked, unless the first has the packet like any other.
fn regions(explanation: &Explanation) -> Option<String> {
    let asked =
        explanation.regions.iter().filter(|region| region.outcome != RegionOutcome::NotAsked);
    let words: Vec<_> =
        asked.map(|region| format!("{} {}", region.region, region.outcome.words())).collect();
    let usual =
        explanation.regions.first().is_none_or(|region| region.outcome == RegionOutcome::Chosen);
    (!usual && !words.is_empty()).then(|| words.join("; "))
}

fn lists(explanation: &Explanation) -> String {
    let mut grid = Grid::new(["REGION", "SLOT", "PLACE", "BACKEND", "STATE", "OUTCOME"]);
    for entry in &explanation.entries {
        grid.row([
            entry.region.clone(),
            entry.slot.map_or_else(|| "-".into(), |slot| slot.to_string()),
            entry.place.clone(),
            entry.backend.clone(),
            entry.state.to_string(),
            entry.outcome.clone(),
        ]);
    }
    grid.lines()
}
