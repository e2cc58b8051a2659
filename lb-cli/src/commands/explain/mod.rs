//! `spillway explain`: which backend a packet goes to, and why. Runs the packet program's own decision
//! over the pinned maps, here or in the daemon.

#[cfg(test)]
mod tests;

use lb_base::error_chain;
use lb_config::message::ApiEnum;
use lb_inspect::{
    explain::{self, Chosen, Explanation, Flow, RegionOutcome, kind_name},
    message,
    names::interface_words,
};
use lb_model::{Encapsulation, Protocol};
use spillway_proto::v1;

use crate::{
    arguments::{Options, one_of, parse_endpoint},
    client::{DaemonClient, block_on},
    failure::{Exit, Failure},
    origin,
    output::{Grid, Report, fields, print},
    pinned,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Source of the packet, such as 198.51.100.7:40000 or [2001:db8::7]:40000
    #[allow(rustdoc::broken_intra_doc_links, reason = "a help text shows brackets as they are")]
    client: String,
    /// Address and port of the service, such as 192.0.2.1:80 or [2001:db8:1::1]:80
    #[allow(rustdoc::broken_intra_doc_links, reason = "a help text shows brackets as they are")]
    vip: String,
    /// Transport protocol
    #[arg(long, value_parser = one_of::<Protocol>(), default_value = Protocol::Tcp.name())]
    protocol: Protocol,
    /// Assume a packet of an open connection instead of a SYN
    #[arg(long)]
    open: bool,
}

/// # Errors
/// The arguments are not a packet, the daemon does not answer, or the maps cannot be read.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { client, vip, protocol, open } = arguments;
    let flow = parse_flow(client, vip, *protocol, *open)?;
    let ask = async |daemon: &mut DaemonClient| {
        let answer = daemon.explain(request(arguments)).await?;
        message::explanation(&flow, answer).map_err(|unknown| {
            Failure::new(Exit::Failure, error_chain::message(&unknown))
                .hint("use the same version of spillway and spillwayd")
        })
    };
    let read = || {
        let (maps, names) = pinned::open(options)?;
        pinned::warn_of_namespace(&names);
        let explained = explain::explain_with(&maps, &names, &flow);
        let explained = explained.map_err(|error| pinned::maps_failure(&error))?;
        if explained.unserved.is_none() {
            return Ok(explained);
        }
        // Why a VIP's packets are dropped or left to the host is not in the maps. Without a daemon the rest is said.
        let told = block_on(async { ask(&mut DaemonClient::connect(options).await?).await });
        let told = told.ok().filter(|told| told.verdict == explained.verdict);
        Ok(told.unwrap_or(explained))
    };
    print(&origin::ask_or_read(options, ask, read)?, options.output)
}

fn request(arguments: &Arguments) -> v1::ExplainRequest {
    let Arguments { client, vip, protocol, open } = arguments;
    v1::ExplainRequest {
        client: client.clone(),
        vip: vip.clone(),
        protocol: protocol.to_api().into(),
        open: *open,
    }
}

/// # Errors
/// An endpoint is not an address with a port, the endpoints have different IP versions, or `open` goes
/// with UDP.
fn parse_flow(client: &str, vip: &str, protocol: Protocol, open: bool) -> Result<Flow, Failure> {
    let client = parse_endpoint("client", client)?;
    let vip = parse_endpoint("vip", vip)?;
    Flow::new(client, vip, protocol, open)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(error.hint()))
}

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
        if let Some((home, next)) = self.home.as_ref().zip(self.next.as_ref()) {
            let moves = if home == next { "the same" } else { "the remap moves it" };
            head.push(("home", format!("{home} now, {next} next ({moves})")));
        }
        if let Some(zone) = self.zone.filter(|zone| zone.looks_for_cells || self.cell.is_some()) {
            let check = if zone.looks_for_cells { "on" } else { "off" };
            head.push(("zone", format!("{} (displaced check {check})", zone.number)));
        }
        if let Some(cell) = &self.cell {
            let state = cell.state.name().replace('_', " ");
            let text = format!("{state}, at {}, {} s left", cell.backend, cell.seconds_left);
            head.push(("cell", text));
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
                || "in no region that the pool uses now".into(),
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
        if let Some(regions) = region_outcomes(self) {
            head.push(("regions", regions));
        }
        let mut text = fields(&head);
        if !self.entries.is_empty() {
            text += "\n";
            text += &candidates(self);
        }
        text
    }
}

/// The outcome in each region that was asked, unless the first region took the packet.
fn region_outcomes(explanation: &Explanation) -> Option<String> {
    let asked =
        explanation.regions.iter().filter(|region| region.outcome != RegionOutcome::NotAsked);
    let words: Vec<_> =
        asked.map(|region| format!("{} {}", region.region, region.outcome.words())).collect();
    let usual =
        explanation.regions.first().is_none_or(|region| region.outcome == RegionOutcome::Chosen);
    (!usual && !words.is_empty()).then(|| words.join("; "))
}

fn candidates(explanation: &Explanation) -> String {
    let mut grid = Grid::new(["REGION", "SLOT", "PLACE", "BACKEND", "ACCEPTS", "OUTCOME"]);
    for entry in &explanation.entries {
        grid.row([
            entry.region.clone(),
            entry.slot.map_or_else(|| "-".into(), |slot| slot.to_string()),
            entry.place.clone(),
            entry.backend.clone(),
            entry.accepts.to_string(),
            entry.outcome.clone(),
        ]);
    }
    grid.lines()
}
