use clap::Args;
use lb_daemon::document;
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1::{self, health_check::Probe};

use super::duration;
use crate::{
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
    /// Port on the backend's own address, 1 to 65535
    #[arg(long)]
    port: Option<u32>,
    /// A connect that is answered is a success
    #[arg(long, conflicts_with_all = HTTP)]
    tcp: bool,
    /// An HTTP request is sent; its options imply it
    #[arg(long)]
    http: bool,
    /// Path with its query [left out: /]
    #[arg(long, value_name = "PATH")]
    http_path: Option<String>,
    /// Host header [left out: the backend's address and port]
    #[arg(long, value_name = "HOST")]
    http_host: Option<String>,
    /// Lowest status that is a success [left out: 200]
    #[arg(long, value_name = "STATUS")]
    http_status_min: Option<u32>,
    /// Highest status that is a success [left out: 299]
    #[arg(long, value_name = "STATUS")]
    http_status_max: Option<u32>,
    /// From the start of one check to the start of the next [left out: 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    interval: Option<Duration>,
    /// Time a check may take [left out: the interval, at most 1s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Successes in a row that bring a failed backend back [left out: 2]
    #[arg(long)]
    rise: Option<u32>,
    /// Failures in a row that take a backend out [left out: 3]
    #[arg(long)]
    fall: Option<u32>,
    /// How far each interval is shortened or lengthened at random [left out: 10]
    #[arg(long, value_name = "PERCENT")]
    jitter_percent: Option<u32>,
}

/// Flags of an HTTP check.
const HTTP: [&str; 5] = ["http", "http_path", "http_host", "http_status_min", "http_status_max"];

/// The HTTP probe of a check, which it becomes.
fn http(check: &mut v1::HealthCheck) -> &mut v1::HttpProbe {
    let probe = check.probe.get_or_insert_with(|| Probe::Http(v1::HttpProbe::default()));
    if !matches!(probe, Probe::Http(_)) {
        *probe = Probe::Http(v1::HttpProbe::default());
    }
    match probe {
        Probe::Http(http) => http,
        _ => unreachable!("it was just made one"),
    }
}

impl Fields<v1::HealthCheck> for HealthFields {
    fn write(
        &self,
        edit: &mut Edit<v1::HealthCheck>,
        _: Option<&v1::HealthCheck>,
    ) -> Result<(), Failure> {
        edit.set("port", self.port.as_ref(), |check, port| check.port = port);
        edit.set("tcp", self.tcp.then_some(&()), |check, ()| {
            check.probe = Some(Probe::Tcp(v1::TcpProbe {}));
        });
        edit.set("http", self.http.then_some(&()), |check, ()| {
            http(check);
        });
        edit.set("http.path", self.http_path.as_ref(), |c, path| http(c).path = path);
        edit.set("http.host", self.http_host.as_ref(), |c, host| http(c).host = host);
        let (min, max) = (self.http_status_min.as_ref(), self.http_status_max.as_ref());
        edit.set("http.status_min", min, |c, status| http(c).status_min = status);
        edit.set("http.status_max", max, |c, status| http(c).status_max = status);
        edit.set("interval", self.interval.as_ref(), |c, time| c.interval = Some(time));
        edit.set("timeout", self.timeout.as_ref(), |c, time| c.timeout = Some(time));
        edit.set("rise", self.rise.as_ref(), |check, rise| check.rise = rise);
        edit.set("fall", self.fall.as_ref(), |check, fall| check.fall = fall);
        let jitter = self.jitter_percent.as_ref();
        edit.set("jitter_percent", jitter, |check, jitter| check.jitter_percent = Some(jitter));
        Ok(())
    }
}

/// What is asked, in a word or two: `tcp`, `http /healthz`.
fn probe(check: &Value) -> String {
    for kind in ["http", "grpc", "udp", "tcp"] {
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
    const MORE: &'static [Column] =
        &[("HOST", |c| cell(&c["http"]["host"])), ("JITTER %", |c| cell(&c["jitter_percent"]))];
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
