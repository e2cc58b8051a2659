//! `spillway status`: what the daemon is, its services and its backends.

mod service;

use std::time::{Duration, SystemTime};

use serde::Serialize;
use spillway_proto::v1;

use self::service::Service;
use super::backend::Backend;
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    failure::Failure,
    output::{Grid, Report, age, fields, print, whole_seconds},
};

/// The answer.
#[derive(Serialize)]
pub(crate) struct Status {
    version: String,
    uptime_seconds: u64,
    region: Option<String>,
    generation: u64,
    applied_at: Option<String>,
    /// Why the packet path is not at the generation.
    behind: Option<String>,
    checksum: String,
    interfaces: Vec<Interface>,
    services: Vec<Service>,
    backends: Vec<Backend>,
    /// Pools in a change of home.
    settling: Vec<Settling>,
    /// What else is wrong.
    troubles: Vec<Trouble>,
    /// Changed settings that wait for the next start of the daemon.
    waiting_settings: Vec<String>,
}

#[derive(Serialize)]
struct Trouble {
    subject: String,
    cause: String,
    since: Option<String>,
}

#[derive(Serialize)]
struct Settling {
    pool: String,
    adopting: bool,
    since: Option<String>,
    adopts_at: Option<String>,
    ends_at: Option<String>,
    #[serde(skip)]
    held: Duration,
    #[serde(skip)]
    left: Duration,
}

#[derive(Serialize)]
struct Interface {
    name: String,
    mode: String,
}

/// Asks the daemon and prints.
///
/// # Errors
/// The daemon does not answer.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let status = converse(async { Daemon::open(&options).await?.status().await })?;
    print(&Status::new(status, SystemTime::now()), options.output)
}

impl Status {
    /// The answer as of `now`, by which ages are told.
    pub(crate) fn new(status: v1::StatusResponse, now: SystemTime) -> Self {
        let uptime = status.uptime.and_then(|d| Duration::try_from(d).ok()).unwrap_or_default();
        Self {
            version: status.version,
            uptime_seconds: uptime.as_secs(),
            region: Some(status.region).filter(|region| !region.is_empty()),
            generation: status.generation,
            applied_at: status.applied_at.map(|at| at.to_string()),
            behind: Some(status.behind).filter(|behind| !behind.is_empty()),
            checksum: status.checksum,
            interfaces: status
                .interfaces
                .into_iter()
                .map(|i| Interface { name: i.name, mode: i.mode })
                .collect(),
            services: status.services.into_iter().map(Service::new).collect(),
            backends: status.backends.into_iter().map(|b| Backend::new(b, now)).collect(),
            settling: status.settling.into_iter().map(|s| Settling::new(s, now)).collect(),
            troubles: status.troubles.into_iter().map(Trouble::new).collect(),
            waiting_settings: status.waiting_settings,
        }
    }

    /// The answer in a few words.
    pub(crate) fn summary(&self) -> String {
        let up = self.backends.iter().filter(|b| b.state == "up").count();
        format!("generation {}, {up} of {} backends up", self.generation, self.backends.len())
    }

    fn head(&self) -> String {
        let mut generation = match &self.applied_at {
            Some(at) => format!("{}, applied {}", self.generation, whole_seconds(at)),
            None => format!("{}, nothing was applied yet", self.generation),
        };
        if self.behind.is_some() {
            // Why, and since when, is among the troubles.
            generation += "; the packet path is not there yet";
        }
        let mode = |mode: &str| if mode.is_empty() { "no program" } else { mode }.to_owned();
        let interfaces: Vec<_> =
            self.interfaces.iter().map(|i| format!("{} ({})", i.name, mode(&i.mode))).collect();
        let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
        let mut head = vec![
            (
                "daemon",
                format!("{}, up {}", self.version, age(Duration::from_secs(self.uptime_seconds))),
            ),
            ("region", self.region.clone().unwrap_or_else(|| "not told".into())),
            ("generation", generation),
            ("checksum", self.checksum.clone()),
            ("interfaces", or_none(interfaces.join(", "))),
        ];
        head.extend(self.troubles.iter().map(|trouble| ("trouble", trouble.line())));
        if !self.waiting_settings.is_empty() {
            let names = self.waiting_settings.join(", ");
            head.push(("waiting", format!("{names}: changed settings, in force after a restart")));
        }
        fields(&head)
    }
}

impl Trouble {
    fn new(trouble: v1::Trouble) -> Self {
        let v1::Trouble { subject, cause, since } = trouble;
        Self { subject, cause, since: since.map(|since| since.to_string()) }
    }

    /// `FILE: cause (since 2026-01-02T03:04:05Z)`
    fn line(&self) -> String {
        let since = self.since.as_deref().map(|at| format!(" (since {})", whole_seconds(at)));
        format!("{}: {}{}", self.subject, self.cause, since.unwrap_or_default())
    }
}

impl Settling {
    fn new(settling: v1::SettlingPool, now: SystemTime) -> Self {
        let time = |at: Option<prost_types::Timestamp>| at.and_then(|at| at.try_into().ok());
        let (since, ends) = (time(settling.since), time(settling.ends_at));
        let between =
            |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
        let spell = |at: Option<prost_types::Timestamp>| at.map(|at| at.to_string());
        Self {
            pool: settling.pool,
            adopting: settling.adopting,
            since: spell(settling.since),
            adopts_at: spell(settling.adopts_at),
            ends_at: spell(settling.ends_at),
            held: since.map_or(Duration::ZERO, |since| between(since, now)),
            left: ends.map_or(Duration::ZERO, |ends| between(now, ends)),
        }
    }
}

impl Report for Status {
    fn table(&self) -> String {
        let mut text = self.head();
        if !self.services.is_empty() {
            let mut grid = Grid::new(["SERVICE", "ENDPOINT", "PROTOCOL", "POOL", "BACKENDS UP"]);
            self.services.iter().for_each(|service| grid.row(service.cells()));
            text += "\n";
            text += &grid.lines();
        }
        if !self.settling.is_empty() {
            let mut grid = Grid::new(["POOL", "CHANGE OF HOME", "FOR", "ENDS IN"]);
            for s in &self.settling {
                let phase = if s.adopting { "adopting" } else { "settling" };
                grid.row([s.pool.clone(), phase.into(), age(s.held), age(s.left)]);
            }
            text += "\n";
            text += &grid.lines();
        }
        if !self.backends.is_empty() {
            let mut grid = Grid::new(["POOL", "BACKEND", "REGION", "STATE", "FOR", "WHY"]);
            for b in &self.backends {
                grid.row([
                    b.pool.clone(),
                    b.address.clone(),
                    b.region.clone(),
                    b.shown.clone(),
                    b.age(),
                    b.why.clone(),
                ]);
            }
            text += "\n";
            text += &grid.lines();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> v1::StatusResponse {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let backend = |address: &str, state: &str, reason: &str, resolved| v1::BackendStatus {
            pool: "web".into(),
            address: address.into(),
            region: "eu".into(),
            state: state.into(),
            reason: reason.into(),
            next_hop_resolved: resolved,
            next_hop: if resolved { "02:00:00:00:00:01 on eth0" } else { "no route" }.into(),
            since: at(1_000_000),
            out_of_home: false,
            ..Default::default()
        };
        v1::StatusResponse {
            version: "0.1.0".into(),
            region: "eu".into(),
            generation: 4,
            applied_at: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 220_176_147 }),
            checksum: "0123456789abcdef".into(),
            interfaces: vec![v1::InterfaceStatus { name: "eth0".into(), mode: "native".into() }],
            services: vec![v1::ServiceStatus {
                name: "web".into(),
                endpoint: "192.0.2.1:80".into(),
                protocol: "tcp".into(),
                pool: "web".into(),
                backends_up: 1,
                backends: 3,
                encapsulation: v1::Encapsulation::IpInIp.into(),
                gue_port: 0,
            }],
            backends: vec![
                backend("10.0.0.1", "up", "all checks pass", true),
                backend("10.0.0.2", "unfit", "check web-http: connection refused", true),
                backend("2001:db8:0:1::3", "up", "all checks pass", false),
            ],
            uptime: Some(prost_types::Duration { seconds: 200, nanos: 0 }),
            behind: String::new(),
            settling: vec![v1::SettlingPool {
                pool: "web".into(),
                since: at(1_000_000),
                adopts_at: at(1_000_080),
                ends_at: at(1_000_120),
                adopting: true,
            }],
            troubles: vec![],
            waiting_settings: vec![],
        }
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_090)
    }

    #[test]
    fn the_table_shows_daemon_services_and_backends() {
        assert_eq!(
            Status::new(example(), now()).table(),
            "\
daemon      0.1.0, up 3m 20s
region      eu
generation  4, applied 1970-01-12T13:46:40Z
checksum    0123456789abcdef
interfaces  eth0 (native)

SERVICE  ENDPOINT      PROTOCOL  POOL  BACKENDS UP
web      192.0.2.1:80  tcp       web   1 of 3

POOL  CHANGE OF HOME  FOR     ENDS IN
web   adopting        1m 30s  30s

POOL  BACKEND          REGION  STATE  FOR     WHY
web   10.0.0.1         eu      up     1m 30s  all checks pass
web   10.0.0.2         eu      unfit  1m 30s  check web-http: connection refused
web   2001:db8:0:1::3  eu      up     1m 30s  no next hop: no route
"
        );
    }

    #[test]
    fn ordinary_long_names_leave_every_reason_readable_within_80_columns() {
        let mut status = example();
        status.settling.clear();
        status.services[0] = v1::ServiceStatus {
            name: "storefront-production".into(),
            endpoint: "[2001:db8:10::80]:443".into(),
            pool: "storefront-production".into(),
            ..status.services[0].clone()
        };
        for (index, backend) in status.backends.iter_mut().enumerate() {
            backend.pool = "storefront-production".into();
            backend.address = format!("2001:db8:10:20:5054:ff:fe12:345{}", index + 6);
            backend.region = "europe-west1".into();
        }
        status.backends[1].reason =
            "check storefront-https: status 503, expected 200 to 299".into();
        status.backends[1].out_of_home = true;
        assert_eq!(
            Status::new(status, now()).table(),
            "\
daemon      0.1.0, up 3m 20s
region      eu
generation  4, applied 1970-01-12T13:46:40Z
checksum    0123456789abcdef
interfaces  eth0 (native)

SERVICE                ENDPOINT               PROTOCOL  POOL
    BACKENDS UP
storefront-production  [2001:db8:10::80]:443  tcp       storefront-production
    1 of 3

POOL                   BACKEND                           REGION        STATE
    FOR     WHY
storefront-production  2001:db8:10:20:5054:ff:fe12:3456  europe-west1  up
    1m 30s  all checks pass
storefront-production  2001:db8:10:20:5054:ff:fe12:3457  europe-west1  unfit
    1m 30s  check storefront-https: status 503, expected 200 to 299; out of home
storefront-production  2001:db8:10:20:5054:ff:fe12:3458  europe-west1  up
    1m 30s  no next hop: no route
"
        );
    }

    #[test]
    fn an_empty_daemon_says_so() {
        let status = v1::StatusResponse { version: "0.1.0".into(), ..Default::default() };
        assert_eq!(
            Status::new(status, now()).table(),
            "\
daemon      0.1.0, up 0s
region      not told
generation  0, nothing was applied yet
checksum
interfaces  none
"
        );
    }

    #[test]
    fn what_is_not_as_it_should_be_is_said() {
        let mut status = example();
        status.behind = "map SERVICES: no space left".into();
        status.interfaces[0].mode.clear();
        status.backends[1].out_of_home = true;
        status.backends[0].share = Some(0.4);
        status.backends[0].utilisation = Some(0.625);
        status.backends[2].unheard = "check load: nothing heard: connection refused".into();
        status.troubles.push(v1::Trouble {
            subject: "packet path".into(),
            cause: "is not at generation 4, and is tried again every second: map SERVICES: no space left".into(),
            since: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 0 }),
        });
        status.troubles.push(v1::Trouble {
            subject: "/etc/spillway/web.toml".into(),
            cause: "line 2, column 1: unknown field `regions`".into(),
            since: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 0 }),
        });
        status.waiting_settings = vec!["interface".into(), "region".into()];
        let json = serde_json::to_value(Status::new(status.clone(), now())).unwrap();
        assert_eq!(json["waiting_settings"], serde_json::json!(["interface", "region"]));
        let table = Status::new(status, now()).table();
        let said = "\nwaiting     interface, region: changed settings, in force after a restart\n";
        assert!(table.contains(said), "{table}");
        // A long cause goes over several lines.
        let words: Vec<_> = table.split_whitespace().collect();
        let said =
            "generation 4, applied 1970-01-12T13:46:40Z; the packet path is not there yet checksum";
        assert!(words.join(" ").contains(said), "{table}");
        let said = "trouble packet path: is not at generation 4, and is tried again every second: map SERVICES: \
                    no space left (since 1970-01-12T13:46:40Z)";
        assert!(words.join(" ").contains(said), "{table}");
        assert!(table.contains("interfaces  eth0 (no program)\n"), "{table}");
        assert!(words.join(" ").contains("refused; out of home"), "{table}");
        let said = "all checks pass; 62% utilised; takes 40% of its share";
        assert!(words.join(" ").contains(said), "{table}");
        let said = "no next hop: no route; check load: nothing heard: connection refused";
        assert!(words.join(" ").contains(said), "{table}");
        let said = "trouble /etc/spillway/web.toml: line 2, column 1: unknown field `regions` \
                    (since 1970-01-12T13:46:40Z)";
        assert!(words.join(" ").contains(said), "{table}");
    }

    #[test]
    fn json_holds_what_the_table_leaves_out() {
        let json = serde_json::to_value(Status::new(example(), now())).unwrap();
        assert_eq!(json["backends"][0]["next_hop"], "02:00:00:00:00:01 on eth0");
        assert_eq!(json["backends"][2]["next_hop_resolved"], false);
        assert_eq!(json["backends"][1]["since"], "1970-01-12T13:46:40Z");
        assert_eq!(json["applied_at"], "1970-01-12T13:46:40.220176147Z");
        assert_eq!(json["uptime_seconds"], 200);
        assert_eq!(json["settling"][0]["ends_at"], "1970-01-12T13:48:40Z");
        assert_eq!(json["backends"][1]["out_of_home"], false);
    }
}
