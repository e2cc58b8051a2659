use clap::{Args, ValueEnum};
use lb_daemon::{document, model::bounds};
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1::{self, health_check::Probe};

use super::{
    duration,
    number::{within, within_or_unset},
    probe::{AgentFields, GrpcFields, HttpFields, TlsFields, UdpFields},
};
use crate::{
    exit::Exit,
    failure::Failure,
    verbs::objects::{
        edit::Edit,
        kind::{All, Column, Fields, Kind, Name, NameOrFile, cell},
    },
};

/// Fields of a health check.
#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct HealthFields {
    /// Which way: to the backend's own address, or to the VIPs of its pool through the tunnel, as clients'
    /// packets go [left out: address]
    #[arg(long, value_name = "WAY")]
    via: Option<Via>,
    /// Port on the backend's own address, or of the VIP, 1 to 65535
    #[arg(long, value_parser = within(bounds::PORTS), allow_negative_numbers = true)]
    port: Option<u32>,
    /// A connect that is answered is a success; with TLS, its handshake
    #[arg(long)]
    tcp: bool,
    #[command(flatten)]
    http: HttpFields,
    #[command(flatten)]
    grpc: GrpcFields,
    #[command(flatten)]
    udp: UdpFields,
    #[command(flatten)]
    agent: AgentFields,
    #[command(flatten)]
    tls: TlsFields,
    /// From the start of one check to the start of the next [left out: 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    interval: Option<Duration>,
    /// The same while a backend is between two states [left out: the interval]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    fast_interval: Option<Duration>,
    /// Time a check may take [left out: the interval, at most 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Successes in a row that bring a failed backend back [left out: 2]
    #[arg(long, value_parser = within_or_unset(bounds::ROUNDS), allow_negative_numbers = true)]
    rise: Option<u32>,
    /// Failures in a row that take a backend out [left out: 3]
    #[arg(long, value_parser = within_or_unset(bounds::ROUNDS), allow_negative_numbers = true)]
    fall: Option<u32>,
    /// How far each interval is shortened or lengthened at random [left out: 10]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    #[arg(value_parser = within(bounds::JITTERS))]
    jitter_percent: Option<u32>,
}

/// Which way a check goes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Via {
    /// To the backend's own address
    Address,
    /// To the VIPs of its pool, through the tunnel
    Tunnel,
}

impl Fields<v1::HealthCheck> for HealthFields {
    fn write(
        &self,
        edit: &mut Edit<v1::HealthCheck>,
        _: Option<&v1::HealthCheck>,
    ) -> Result<(), Failure> {
        edit.set("via", self.via.as_ref(), |check, via| {
            check.set_via(match via {
                Via::Address => v1::Via::Address,
                Via::Tunnel => v1::Via::Tunnel,
            });
        });
        edit.set("port", self.port.as_ref(), |check, port| check.port = port);
        self.probe(edit)?;
        self.tls.write(edit);
        edit.set("interval", self.interval.as_ref(), |c, time| c.interval = Some(time));
        let fast = self.fast_interval.as_ref();
        edit.set("fast_interval", fast, |c, time| c.fast_interval = Some(time));
        edit.set("timeout", self.timeout.as_ref(), |c, time| c.timeout = Some(time));
        edit.set("rise", self.rise.as_ref(), |check, rise| check.rise = rise);
        edit.set("fall", self.fall.as_ref(), |check, fall| check.fall = fall);
        let jitter = self.jitter_percent.as_ref();
        edit.set("jitter_percent", jitter, |check, jitter| check.jitter_percent = Some(jitter));
        Ok(())
    }
}

impl HealthFields {
    /// What is asked, which is one of five.
    fn probe(&self, edit: &mut Edit<v1::HealthCheck>) -> Result<(), Failure> {
        let before = edit.paths.len();
        edit.set("tcp", self.tcp.then_some(&()), |check, ()| {
            check.probe = Some(Probe::Tcp(v1::TcpProbe {}));
        });
        self.http.write(edit);
        self.grpc.write(edit);
        self.udp.write(edit);
        self.agent.write(edit);
        let kind = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
        let mut kinds: Vec<_> = edit.paths[before..].iter().map(kind).collect();
        kinds.dedup();
        match &*kinds {
            [] | [_] => Ok(()),
            kinds => Err(Failure::new(
                Exit::Usage,
                format!("health check: asks for one thing, not for {}", kinds.join(" and ")),
            )
            .hint(
                "give the flags of one of tcp, http, grpc, udp and agent; a pool may have several \
                 checks",
            )),
        }
    }
}

/// What is asked, in a word or two: `tcp`, `http /healthz`, `grpc over tls`.
fn probe(check: &Value) -> String {
    for kind in ["http", "grpc", "udp", "agent", "tcp"] {
        let probe = &check[kind];
        if probe.is_object() {
            let path = probe["path"].as_str().map(|path| format!(" {path}"));
            let tls = if check["tls"].is_object() { " over tls" } else { "" };
            return format!("{kind}{}{tls}", path.unwrap_or_default());
        }
    }
    "-".into()
}

impl Kind for v1::HealthCheck {
    const WORD: &'static str = "health check";
    const WORDS: &'static str = "health checks";
    const VERB: &'static str = "health";
    const KEYS: (&'static str, &'static str) = ("health_check", "health_checks");
    const COLUMNS: &'static [Column] = &[
        ("NAME", |c| cell(&c["name"])),
        ("PORT", |c| cell(&c["port"])),
        ("INTERVAL", |c| cell(&c["interval"])),
        ("TIMEOUT", |c| cell(&c["timeout"])),
        ("RISE", |c| cell(&c["rise"])),
        ("FALL", |c| cell(&c["fall"])),
        ("PROBE", probe),
    ];
    const MORE: &'static [Column] = &[
        ("VIA", |c| cell(&c["via"])),
        ("HOST", |c| cell(&c["http"]["host"])),
        ("JITTER %", |c| cell(&c["jitter_percent"])),
    ];
    type Filter = All;
    type One = Name;
    type Named = NameOrFile;
    type Fields = HealthFields;
    type File = document::HealthCheck;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}
