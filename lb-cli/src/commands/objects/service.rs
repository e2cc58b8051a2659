//! Services: flags and columns.

use clap::{Args, ValueEnum};
use lb_config::document;
use lb_model::bounds;
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1;

use super::kind::{
    Fields, Kind, ListColumn, NameArgument, NameOrFileArgument, NoFilter, Patch, cell,
};
use crate::{
    arguments::{parse_duration, within},
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
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Pool that serves it
    #[arg(long)]
    pool: Option<String>,
    /// What selects the backend of a connection [default: connection]
    #[arg(long)]
    affinity: Option<Affinity>,
    /// What happens to a new connection if every region is full [default: nearest]
    #[arg(long)]
    when_full: Option<WhenFull>,
    /// How packets of a UDP service find their backend [default: stateless]
    #[arg(long)]
    udp: Option<Udp>,
    /// How long an idle tracked UDP flow is remembered [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    idle_timeout: Option<Duration>,
    /// What happens to fragmented packets; `served` needs affinity by client [default: dropped]
    #[arg(long)]
    fragments: Option<Fragments>,
}

fn parse_ports(text: &str) -> Result<document::PortRange, String> {
    document::parse_ports(text)
        .ok_or_else(|| "give ports and ranges, such as 80,443,8000-8099".into())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Protocol {
    Tcp,
    Udp,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Affinity {
    /// The client's address and port
    Connection,
    /// The client's address: all its connections go to one backend
    Client,
    /// The service's port: all connections to a port go to one backend
    Port,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Fragments {
    /// Drop them
    Dropped,
    /// Send them to the backend of their client
    Served,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WhenFull {
    /// The nearest region takes it, over its capacity
    Nearest,
    /// It is dropped and counted
    Reject,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Udp {
    /// The slot alone selects the backend
    Stateless,
    /// Each flow is remembered with its backend
    Tracked,
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
            s.set_protocol(match protocol {
                Protocol::Tcp => v1::Protocol::Tcp,
                Protocol::Udp => v1::Protocol::Udp,
            });
        });
        patch.set("pool", self.pool.as_ref(), |s, pool| s.pool = pool);
        patch.set("affinity", self.affinity.as_ref(), |s, affinity| {
            s.set_affinity(match affinity {
                Affinity::Connection => v1::Affinity::Connection,
                Affinity::Client => v1::Affinity::Client,
                Affinity::Port => v1::Affinity::Port,
            });
        });
        patch.set("when_full", self.when_full.as_ref(), |s, when_full| {
            s.set_when_full(match when_full {
                WhenFull::Nearest => v1::WhenFull::Nearest,
                WhenFull::Reject => v1::WhenFull::Reject,
            });
        });
        patch.set("udp", self.udp.as_ref(), |s, udp| {
            s.set_udp(match udp {
                Udp::Stateless => v1::UdpMode::Stateless,
                Udp::Tracked => v1::UdpMode::Tracked,
            });
        });
        patch
            .set("idle_timeout", self.idle_timeout.as_ref(), |s, time| s.idle_timeout = Some(time));
        patch.set("fragments", self.fragments.as_ref(), |s, fragments| {
            s.set_fragments(match fragments {
                Fragments::Dropped => v1::Fragments::Dropped,
                Fragments::Served => v1::Fragments::Served,
            });
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
    type Filter = NoFilter;
    type Target = NameArgument;
    type TargetOrFile = NameOrFileArgument;
    type Fields = ServiceFields;
    type File = document::Service;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}
