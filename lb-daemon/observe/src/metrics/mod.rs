//! Metrics in the OpenMetrics text format.
//!
//! Counters of the packet path are read at each request ([`lb_inspect::stats`]); counters of this process are in [`Live`].
//! `catalogue` defines each name once. Tests compare the exposition, docs/metrics.md, the dashboard and the alert rules
//! with it.

mod balancer;
mod catalogue;
mod definition;
mod fleet;
mod groups;
mod interfaces;
mod live;
mod receiver;
mod sheet;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc, time::SystemTime};

pub use prometheus_client::metrics::counter::Counter;
use prometheus_client::{collector::Collector, encoding::text, registry::Registry};

pub use balancer::Facts;
pub use catalogue::ALL;
pub use definition::{Base, Definition, Kind, PREFIX};
pub use fleet::FleetFacts;
pub use live::Live;
pub use receiver::ReceiverFacts;

use catalogue::{
    BUILD, CERTIFICATE_NOT_AFTER, CERTIFICATE_NOT_BEFORE, HTTP_REFUSED, STARTED_AT, VERDICT_BYTES,
    VERDICT_PACKETS,
};
use lb_inspect::stats::VerdictStats;
use lb_maps::{self, Component};
use lb_secure::tls::{Validities, Validity};
use sheet::{Sheet, Value};

/// Media type of the exposition.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A balancer's exposition.
///
/// # Errors
/// Never: text is written to memory.
pub fn balancer_exposition(facts: Arc<Facts>) -> Result<String, fmt::Error> {
    exposition(balancer::Balancer(facts))
}

/// A receiver's exposition.
///
/// # Errors
/// Never: text is written to memory.
pub fn receiver_exposition(facts: ReceiverFacts) -> Result<String, fmt::Error> {
    exposition(facts)
}

fn exposition(collector: impl Collector) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(collector));
    let mut exposition = String::new();
    text::encode(&mut exposition, &registry)?;
    Ok(exposition)
}

fn verdicts(sheet: &mut Sheet<'_>, component: &str, verdicts: &[VerdictStats]) -> fmt::Result {
    let packets = verdicts.iter().map(|v| ([component, &*v.verdict, &*v.action], v.packets.into()));
    sheet.family(&VERDICT_PACKETS, packets)?;
    let bytes = verdicts.iter().map(|v| ([component, &*v.verdict, &*v.action], v.bytes.into()));
    sheet.family(&VERDICT_BYTES, bytes)
}

/// The certificates that the daemon knows, and the requests over HTTP without a token.
fn credentials(sheet: &mut Sheet<'_>, validities: Validities, refused: u64) -> fmt::Result {
    let Validities { server, authority, http } = validities;
    let known = [("server", server), ("authority", authority), ("http", http)];
    let each = |time: fn(&Validity) -> SystemTime| {
        let known = known.into_iter();
        known.filter_map(move |(name, known)| Some(([name], live::seconds(time(&known?)).into())))
    };
    sheet.family(&CERTIFICATE_NOT_BEFORE, each(|it| it.not_before))?;
    sheet.family(&CERTIFICATE_NOT_AFTER, each(|it| it.not_after))?;
    sheet.one(&HTTP_REFUSED, refused.into())
}

fn build(
    sheet: &mut Sheet<'_>,
    component: Component,
    region: &str,
    started: SystemTime,
    packet_program: Option<u64>,
) -> fmt::Result {
    let name = component.to_string();
    sheet.family(&STARTED_AT, [([name.as_str()], live::seconds(started).into())])?;
    let program = packet_program.map_or("none".into(), |digest| format!("{digest:016x}"));
    let labels = [&name, env!("CARGO_PKG_VERSION"), region, &program];
    sheet.family(&BUILD, [(labels, Value::Info)])
}
