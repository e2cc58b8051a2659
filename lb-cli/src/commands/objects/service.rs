//! Services: flags and columns.

use clap::Args;
use lb_config::{document, message::ApiEnum};
use lb_model::{Affinity, Fragments, Protocol, UdpMode, WhenFull, bounds};
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1;

use super::calls::ListFilter;
use super::kind::{
    Fields, Kind, ListColumn, NameArgument, NameOrFileArgument, Patch, Selector, cell,
};
use crate::{
    arguments::{one_of, parse_duration, within},
    commands::confirm::{ForceArgument, NoForce},
    failure::Failure,
};

#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct ServiceFields {
    /// VIP, an IPv4 or IPv6 address
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Port, 1 to 65535
    #[arg(long, value_parser = within(bounds::PORTS), allow_negative_numbers = true)]
    port: Option<u32>,
    /// Several ports and port ranges: 80,443,8000-8099
    #[arg(long, value_delimiter = ',', value_parser = parse_ports, conflicts_with = "port")]
    ports: Vec<document::PortRange>,
    /// All ports that no other service of this address and protocol has
    #[arg(long, conflicts_with_all = ["port", "ports"])]
    any_port: bool,
    /// Protocol
    #[arg(long, value_parser = one_of::<Protocol>())]
    protocol: Option<Protocol>,
    /// Pool that serves it
    #[arg(long)]
    pool: Option<String>,
    /// What selects the backend of a connection [default: connection]
    #[arg(long, value_parser = one_of::<Affinity>())]
    affinity: Option<Affinity>,
    /// What happens to a new connection if every region is full [default: nearest]
    #[arg(long, value_parser = one_of::<WhenFull>())]
    when_full: Option<WhenFull>,
    /// How packets of a UDP service find their backend [default: stateless]
    #[arg(long, value_parser = one_of::<UdpMode>())]
    udp: Option<UdpMode>,
    /// How long an idle tracked UDP flow is remembered [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    idle_timeout: Option<Duration>,
    /// What happens to fragmented packets; `served` needs affinity by client [default: dropped]
    #[arg(long, value_parser = one_of::<Fragments>())]
    fragments: Option<Fragments>,
}

fn parse_ports(text: &str) -> Result<document::PortRange, String> {
    document::parse_ports(text)
        .ok_or_else(|| "give ports and ranges, such as 80,443,8000-8099".into())
}

impl Fields<v1::Service> for ServiceFields {
    fn write(
        &self,
        patch: &mut Patch<v1::Service>,
        _: Option<&v1::Service>,
    ) -> Result<(), Failure> {
        patch.set("address", self.address.as_ref(), |s, address| s.address = address);
        self.write_ports(patch);
        patch.set("protocol", self.protocol.as_ref(), |s, protocol| {
            s.set_protocol(protocol.to_api());
        });
        patch.set("pool", self.pool.as_ref(), |s, pool| s.pool = pool);
        patch.set("affinity", self.affinity.as_ref(), |s, affinity| {
            s.set_affinity(affinity.to_api());
        });
        patch.set("when_full", self.when_full.as_ref(), |s, when_full| {
            s.set_when_full(when_full.to_api());
        });
        patch.set("udp", self.udp.as_ref(), |s, udp| {
            s.set_udp(udp.to_api());
        });
        patch
            .set("idle_timeout", self.idle_timeout.as_ref(), |s, time| s.idle_timeout = Some(time));
        patch.set("fragments", self.fragments.as_ref(), |s, fragments| {
            s.set_fragments(fragments.to_api());
        });
        Ok(())
    }
}

impl ServiceFields {
    /// One of three fields holds the ports: setting one unsets the others.
    fn write_ports(&self, patch: &mut Patch<v1::Service>) {
        if self.port.is_none() && self.ports.is_empty() && !self.any_port {
            return;
        }
        let range =
            |range: &document::PortRange| v1::PortRange { first: range.first, last: range.last };
        patch.set("port", Some(&self.port.unwrap_or_default()), |s, port| s.port = port);
        patch.set("ports", Some(&self.ports), |s, ports| {
            s.ports = ports.iter().map(range).collect()
        });
        patch.set("any_port", Some(&self.any_port), |s, any| s.any_port = any);
    }
}

/// The ports of a service, whichever field holds them.
fn ports_of(service: &Value) -> String {
    match (&service["port"], &service["ports"], &service["any_port"]) {
        (_, Value::Array(ports), _) => ports.iter().map(cell).collect::<Vec<_>>().join(","),
        (_, _, Value::Bool(true)) => "any".into(),
        (port, ..) => cell(port),
    }
}

#[derive(Args, Debug)]
pub(crate) struct ServiceFilter {
    /// Only services of this pool
    #[arg(long)]
    pool: Option<String>,
}

impl Selector for ServiceFilter {
    fn filter(&self) -> ListFilter {
        ListFilter { pool: self.pool.clone().unwrap_or_default(), ..ListFilter::default() }
    }
}

impl Kind for v1::Service {
    const NAME: &'static str = "service";
    const PLURAL: &'static str = "services";
    const COMMAND: &'static str = "service";
    const KEYS: (&'static str, &'static str) = ("service", "services");
    const COLUMNS: &'static [ListColumn] = &[
        ("NAME", |s| cell(&s["name"])),
        ("ADDRESS", |s| cell(&s["address"])),
        ("PORTS", ports_of),
        ("PROTOCOL", |s| cell(&s["protocol"])),
        ("POOL", |s| cell(&s["pool"])),
    ];
    const WIDE_COLUMNS: &'static [ListColumn] = &[
        ("AFFINITY", |s| cell(&s["affinity"])),
        ("WHEN FULL", |s| cell(&s["when_full"])),
        ("UDP", |s| cell(&s["udp"])),
        ("IDLE TIMEOUT", |s| cell(&s["idle_timeout"])),
        ("FRAGMENTS", |s| cell(&s["fragments"])),
    ];
    type Filter = ServiceFilter;
    type Target = NameArgument;
    type TargetOrFile = NameOrFileArgument;
    type Fields = ServiceFields;
    type File = document::Service;
    type CreateForce = ForceArgument;
    type UpdateForce = ForceArgument;
    type DeleteForce = NoForce;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}
