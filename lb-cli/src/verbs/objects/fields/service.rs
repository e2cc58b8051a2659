use clap::{Args, ValueEnum};
use lb_daemon::{document, model::bounds};
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1;

use super::{duration, number::within};
use crate::{
    failure::Failure,
    verbs::objects::{
        edit::Edit,
        kind::{All, Column, Fields, Kind, Name, NameOrFile, cell},
    },
};

/// Fields of a service.
#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct ServiceFields {
    /// The VIP: an IPv4 or IPv6 address
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Port, 1 to 65535
    #[arg(long, value_parser = within(bounds::PORTS), allow_negative_numbers = true)]
    port: Option<u32>,
    /// Ports and ranges of ports, instead of one: 80,443,8000-8099
    #[arg(long, value_delimiter = ',', value_parser = ports, conflicts_with = "port")]
    ports: Vec<document::PortRange>,
    /// All ports that no other service of the address and protocol has, instead of some
    #[arg(long, conflicts_with_all = ["port", "ports"])]
    any_port: bool,
    /// Protocol
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Pool that serves it
    #[arg(long)]
    pool: Option<String>,
    /// What a connection is hashed by [left out: connection]
    #[arg(long)]
    affinity: Option<Affinity>,
    /// What becomes of a new connection when every region is full [left out: nearest]
    #[arg(long)]
    when_full: Option<WhenFull>,
    /// How packets of a UDP service find their backend [left out: stateless]
    #[arg(long)]
    udp: Option<Udp>,
    /// How long a tracked UDP flow without packets is remembered [left out: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    idle_timeout: Option<Duration>,
    /// What becomes of packets in fragments; served with affinity by client alone [left out: dropped]
    #[arg(long)]
    fragments: Option<Fragments>,
}

fn ports(text: &str) -> Result<document::PortRange, String> {
    document::parse_ports(text).ok_or_else(|| "give ports and ranges, as 80,443,8000-8099".into())
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
    /// The client's address: all its connections at one backend
    Client,
    /// The service's port: all connections of a port at one backend
    Port,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Fragments {
    /// They are dropped
    Dropped,
    /// They go where all packets of their client go
    Served,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WhenFull {
    /// The nearest region serves it, over its capacity
    Nearest,
    /// It is dropped and counted
    Reject,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Udp {
    /// Every packet goes by its slot
    Stateless,
    /// Each flow is remembered
    Tracked,
}

impl Fields<v1::Service> for ServiceFields {
    fn write(&self, edit: &mut Edit<v1::Service>, _: Option<&v1::Service>) -> Result<(), Failure> {
        edit.set("address", self.address.as_ref(), |s, address| s.address = address);
        self.write_ports(edit);
        edit.set("protocol", self.protocol.as_ref(), |s, protocol| {
            s.set_protocol(match protocol {
                Protocol::Tcp => v1::Protocol::Tcp,
                Protocol::Udp => v1::Protocol::Udp,
            });
        });
        edit.set("pool", self.pool.as_ref(), |s, pool| s.pool = pool);
        edit.set("affinity", self.affinity.as_ref(), |s, affinity| {
            s.set_affinity(match affinity {
                Affinity::Connection => v1::Affinity::Connection,
                Affinity::Client => v1::Affinity::Client,
                Affinity::Port => v1::Affinity::Port,
            });
        });
        edit.set("when_full", self.when_full.as_ref(), |s, when_full| {
            s.set_when_full(match when_full {
                WhenFull::Nearest => v1::WhenFull::Nearest,
                WhenFull::Reject => v1::WhenFull::Reject,
            });
        });
        edit.set("udp", self.udp.as_ref(), |s, udp| {
            s.set_udp(match udp {
                Udp::Stateless => v1::UdpMode::Stateless,
                Udp::Tracked => v1::UdpMode::Tracked,
            });
        });
        edit.set("idle_timeout", self.idle_timeout.as_ref(), |s, time| s.idle_timeout = Some(time));
        edit.set("fragments", self.fragments.as_ref(), |s, fragments| {
            s.set_fragments(match fragments {
                Fragments::Dropped => v1::Fragments::Dropped,
                Fragments::Served => v1::Fragments::Served,
            });
        });
        Ok(())
    }
}

impl ServiceFields {
    /// One of three fields says the ports: who sets it means the others to be unset.
    fn write_ports(&self, edit: &mut Edit<v1::Service>) {
        if self.port.is_none() && self.ports.is_empty() && !self.any_port {
            return;
        }
        let range =
            |range: &document::PortRange| v1::PortRange { first: range.first, last: range.last };
        edit.set("port", Some(&self.port.unwrap_or_default()), |s, port| s.port = port);
        edit.set("ports", Some(&self.ports), |s, ports| {
            s.ports = ports.iter().map(range).collect()
        });
        edit.set("any_port", Some(&self.any_port), |s, any| s.any_port = any);
    }
}

/// The ports of a service, whichever field says them.
fn ports_of(service: &Value) -> String {
    match (&service["port"], &service["ports"], &service["any_port"]) {
        (_, Value::Array(ports), _) => ports.iter().map(cell).collect::<Vec<_>>().join(","),
        (_, _, Value::Bool(true)) => "any".into(),
        (port, ..) => cell(port),
    }
}

impl Kind for v1::Service {
    const WORD: &'static str = "service";
    const WORDS: &'static str = "services";
    const VERB: &'static str = "service";
    const KEYS: (&'static str, &'static str) = ("service", "services");
    const COLUMNS: &'static [Column] = &[
        ("NAME", |s| cell(&s["name"])),
        ("ADDRESS", |s| cell(&s["address"])),
        ("PORTS", ports_of),
        ("PROTOCOL", |s| cell(&s["protocol"])),
        ("POOL", |s| cell(&s["pool"])),
    ];
    const MORE: &'static [Column] = &[
        ("AFFINITY", |s| cell(&s["affinity"])),
        ("WHEN FULL", |s| cell(&s["when_full"])),
        ("UDP", |s| cell(&s["udp"])),
        ("IDLE TIMEOUT", |s| cell(&s["idle_timeout"])),
        ("FRAGMENTS", |s| cell(&s["fragments"])),
    ];
    type Filter = All;
    type One = Name;
    type Named = NameOrFile;
    type Fields = ServiceFields;
    type File = document::Service;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}
