//! An explanation for people.

use super::{Chosen, Explanation};
use crate::output::{Grid, Report, fields};

impl Report for Explanation {
    fn table(&self) -> String {
        let mut head = vec![(
            "packet",
            format!("{} {} -> {}, {}", self.protocol, self.client, self.vip, self.packet),
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
        head.push(("verdict", self.verdict.into()));
        if let Some(Chosen { backend, region, next_hop, interface, .. }) = &self.choice {
            head.push(("backend", format!("{backend}, region {region}")));
            head.push(("next hop", format!("{next_hop} on interface {interface}")));
        }
        head.push(("why", self.why.clone()));
        let mut text = fields(&head);
        if !self.entries.is_empty() {
            text += "\n";
            text += &self.lists();
        }
        text
    }
}

impl Explanation {
    fn lists(&self) -> String {
        let mut grid = Grid::new(["REGION", "SLOT", "PLACE", "BACKEND", "STATE", "OUTCOME"]);
        for entry in &self.entries {
            grid.row([
                entry.region.clone(),
                entry.slot.map_or_else(|| "-".into(), |slot| slot.to_string()),
                entry.place.clone(),
                entry.backend.clone(),
                entry.state.into(),
                entry.outcome.clone(),
            ]);
        }
        grid.lines()
    }
}
