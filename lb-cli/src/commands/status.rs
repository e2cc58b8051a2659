//! `spillway status`: the state of the daemon, its services and its backends.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use lb_base::count;
use lb_config::message::ApiEnum as _;
use lb_model::{Encapsulation, MemberState};
use serde::Serialize;
use spillway_proto::v1;

use super::{
    backend_figures::BackendFigures,
    backend_status::BackendRow,
    changes::{ObjectReference, enum_word},
    overrides::{OverrideRow, head_line},
};
use crate::{
    arguments::{Options, one_of},
    client::{DaemonClient, block_on},
    failure::Failure,
    output::{Format, Grid, Report, age, fields, print, whole_seconds},
};

#[derive(Serialize)]
pub(crate) struct Status {
    version: String,
    uptime_seconds: u64,
    region: Option<String>,
    generation: u64,
    applied_at: Option<String>,
    /// Why the packet path has not reached the generation.
    behind: Option<String>,
    checksum: String,
    interfaces: Vec<InterfaceRow>,
    services: Vec<ServiceRow>,
    backends: Vec<BackendRow>,
    /// Pools in a remap.
    settling: Vec<SettlingPool>,
    conditions: Vec<Condition>,
    /// What is in force beside the configuration.
    overrides: Vec<OverrideRow>,
    overrides_revision: u64,
    /// Changed settings that need a restart.
    waiting_settings: Vec<String>,
    /// For the wide table.
    #[serde(skip)]
    figures: BackendFigures,
}

#[derive(Serialize)]
struct Condition {
    /// Like `packet_path`.
    reason: String,
    object: Option<ObjectReference>,
    subject: String,
    text: String,
    since: Option<String>,
}

#[derive(Serialize)]
struct SettlingPool {
    pool: String,
    overdue: bool,
    since: Option<String>,
    ends_at: Option<String>,
    #[serde(skip)]
    age: Duration,
    #[serde(skip)]
    left: Duration,
}

#[derive(Serialize)]
struct InterfaceRow {
    name: String,
    mode: String,
}

/// Which backends are shown: those that match all that is given.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Arguments {
    /// Only backends of these pools, and the services of these pools
    #[arg(long, value_name = "POOL,…", value_delimiter = ',')]
    pool: Vec<String>,
    /// Only backends in these regions
    #[arg(long, value_name = "REGION,…", value_delimiter = ',')]
    region: Vec<String>,
    /// Only backends in these states
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', value_parser = one_of::<MemberState>())]
    state: Vec<MemberState>,
}

/// # Errors
/// The daemon does not answer.
pub(crate) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    let (status, figures) = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        match options.output {
            // Rates take a second.
            Format::Wide => BackendFigures::read(&mut daemon).await,
            _ => Ok((daemon.status().await?, BackendFigures::default())),
        }
    })?;
    let status = Status::new(arguments.select(status), SystemTime::now());
    print(&Status { figures, ..status }, options.output)
}

impl Arguments {
    fn select(&self, mut status: v1::StatusResponse) -> v1::StatusResponse {
        let Self { pool, region, state } = self;
        let is_in =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|it| it == name);
        let is_state = |number| state.is_empty() || state.iter().any(|it| it.to_api() == number);
        status.services.retain(|service| is_in(pool, &service.pool));
        status.backends.retain(|backend| {
            is_in(pool, &backend.pool)
                && is_in(region, &backend.region)
                && is_state(backend.state())
        });
        status
    }
}

impl Status {
    /// The answer as of `now`, from which ages are counted.
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
                .map(|i| InterfaceRow { name: i.name, mode: i.mode })
                .collect(),
            services: status.services.into_iter().map(ServiceRow::new).collect(),
            backends: status.backends.into_iter().map(|b| BackendRow::new(b, now)).collect(),
            settling: status.settling.into_iter().map(|s| SettlingPool::new(s, now)).collect(),
            conditions: status.conditions.into_iter().map(Condition::new).collect(),
            overrides: status.overrides.into_iter().map(OverrideRow::new).collect(),
            overrides_revision: status.overrides_revision,
            waiting_settings: status.waiting_settings,
            figures: BackendFigures::default(),
        }
    }

    pub(crate) fn summary(&self) -> String {
        let up = self.backends.iter().filter(|b| b.state == "up").count();
        format!("generation {}, {up} of {} backends up", self.generation, self.backends.len())
    }

    fn head(&self) -> String {
        let mut generation = match &self.applied_at {
            Some(at) => format!("{}, applied {}", self.generation, whole_seconds(at)),
            None => format!("{}, nothing applied yet", self.generation),
        };
        if self.behind.is_some() {
            // The cause and its time are among the conditions.
            generation += "; the packet path has not reached it yet";
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
            ("region", self.region.clone().unwrap_or_else(|| "not set".into())),
            ("generation", generation),
            ("checksum", self.checksum.clone()),
            ("interfaces", or_none(interfaces.join(", "))),
        ];
        head.extend(self.tunnel_sources().map(|line| ("tunnels", line)));
        head.extend(head_line(&self.overrides).map(|line| ("overrides", line)));
        head.extend(self.conditions.iter().map(|condition| ("condition", condition.line())));
        if !self.waiting_settings.is_empty() {
            let names = self.waiting_settings.join(", ");
            head.push(("waiting", format!("{names}: changed settings, in force after a restart")));
        }
        fields(&head)
    }

    /// All but the backends.
    fn head_and_objects(&self, is_wide: bool) -> String {
        let new_grid = |headings: &[&'static str]| {
            let grid = Grid::new(headings.iter().copied());
            if is_wide { grid.wide() } else { grid }
        };
        let mut text = self.head();
        if !self.services.is_empty() {
            let mut grid =
                new_grid(&["SERVICE", "ENDPOINT", "PROTOCOL", "POOL", "SLOTS", "BACKENDS UP"]);
            self.services.iter().for_each(|service| grid.row(service.cells()));
            text += "\n";
            text += &grid.lines();
        }
        if !self.settling.is_empty() {
            let mut grid = new_grid(&["POOL", "REMAP", "FOR", "ENDS IN"]);
            for s in &self.settling {
                let phase = if s.overdue { "overdue" } else { "settling" };
                grid.row([s.pool.clone(), phase.into(), age(s.age), age(s.left)]);
            }
            text += "\n";
            text += &grid.lines();
        }
        text
    }

    /// `from 10.0.0.2 to 3 backends, from fd00::2 to 1 backend`
    fn tunnel_sources(&self) -> Option<String> {
        let mut backends: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for backend in &self.backends {
            let Some(source) = &backend.tunnel_source else { continue };
            backends.entry(source).or_default().insert(&backend.address);
        }
        let line = |(source, backends): (&str, BTreeSet<_>)| {
            format!("from {source} to {}", count(backends.len() as u64, "backend"))
        };
        let lines: Vec<_> = backends.into_iter().map(line).collect();
        (!lines.is_empty()).then(|| lines.join(", "))
    }
}

impl Condition {
    fn new(condition: v1::Condition) -> Self {
        let reason = enum_word(condition.reason().as_str_name(), "CONDITION_REASON_");
        let v1::Condition { subject, text, since, object, .. } = condition;
        let (object, since) = (object.map(Into::into), since.map(|since| since.to_string()));
        Self { reason, object, subject, text, since }
    }

    /// `FILE: cause (since 2026-01-02T03:04:05Z)`
    fn line(&self) -> String {
        let since = self.since.as_deref().map(|at| format!(" (since {})", whole_seconds(at)));
        format!("{}: {}{}", self.subject, self.text, since.unwrap_or_default())
    }
}

impl SettlingPool {
    fn new(settling: v1::SettlingPool, now: SystemTime) -> Self {
        let time = |at: Option<prost_types::Timestamp>| at.and_then(|at| at.try_into().ok());
        let (since, ends) = (time(settling.since), time(settling.ends_at));
        let between =
            |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
        let spell = |at: Option<prost_types::Timestamp>| at.map(|at| at.to_string());
        Self {
            pool: settling.pool,
            overdue: settling.overdue,
            since: spell(settling.since),
            ends_at: spell(settling.ends_at),
            age: since.map_or(Duration::ZERO, |since| between(since, now)),
            left: ends.map_or(Duration::ZERO, |ends| between(now, ends)),
        }
    }
}

impl Report for Status {
    fn table(&self) -> String {
        let mut text = self.head_and_objects(false);
        if !self.backends.is_empty() {
            let mut grid = Grid::new(["POOL", "BACKEND", "REGION", "STATE", "FOR", "WHY"]);
            for b in &self.backends {
                grid.row([
                    b.pool.clone(),
                    b.address.clone(),
                    b.region.clone(),
                    b.state.to_owned(),
                    b.age(),
                    b.why.clone(),
                ]);
            }
            text += "\n";
            text += &grid.lines();
        }
        text
    }

    /// The backends with their figures. The shares are of all backends of a region, also of those that were not asked for.
    fn wide(&self) -> String {
        let mut text = self.head_and_objects(true);
        if !self.backends.is_empty() {
            let mut grid = Grid::new([
                "POOL",
                "BACKEND",
                "REGION",
                "WEIGHT",
                "STATE",
                "FOR",
                "SHARE",
                "CONN/S",
                "OVERRIDES",
                "WHY",
            ])
            .wide();
            for b in &self.backends {
                let known = self.figures.get(&b.pool, &b.address).cloned().unwrap_or_default();
                grid.row([
                    b.pool.clone(),
                    b.address.clone(),
                    b.region.clone(),
                    b.weight.to_string(),
                    b.state.to_owned(),
                    b.age(),
                    known.share_cell(),
                    known.rate_cell(),
                    known.overrides_cell(),
                    b.why.clone(),
                ]);
            }
            text += "\n";
            text += &grid.lines();
        }
        text
    }
}

#[derive(Serialize)]
pub(super) struct ServiceRow {
    name: String,
    endpoint: String,
    protocol: String,
    pool: String,
    backends_up: u32,
    backends: u32,
    /// `null`: the daemon does not report it, or this version does not know it.
    encapsulation: Option<&'static str>,
    gue_port: Option<u16>,
    /// `null`: the daemon does not report it.
    slots: Option<u32>,
}

impl ServiceRow {
    pub(super) fn new(service: v1::ServiceStatus) -> Self {
        let encapsulation = encapsulation(&service);
        Self {
            name: service.name,
            endpoint: service.endpoint,
            protocol: service.protocol,
            pool: service.pool,
            backends_up: service.backends_up,
            backends: service.backends,
            encapsulation: encapsulation.map(Encapsulation::name),
            gue_port: encapsulation.and_then(Encapsulation::gue_port),
            slots: Some(service.slots).filter(|slots| *slots > 0),
        }
    }

    pub(super) fn cells(&self) -> [String; 6] {
        [
            self.name.clone(),
            self.endpoint.clone(),
            self.protocol.clone(),
            self.pool(),
            self.slots.map_or_else(|| "-".into(), |slots| slots.to_string()),
            format!("{} of {}", self.backends_up, self.backends),
        ]
    }

    /// The pool, with its encapsulation unless that is the default.
    fn pool(&self) -> String {
        match self.encapsulation {
            Some(how) if how != Encapsulation::default().name() => format!("{} ({how})", self.pool),
            _ => self.pool.clone(),
        }
    }
}

fn encapsulation(service: &v1::ServiceStatus) -> Option<Encapsulation> {
    match service.encapsulation() {
        v1::Encapsulation::Unspecified => None,
        v1::Encapsulation::IpInIp => Some(Encapsulation::IpInIp),
        v1::Encapsulation::Gue => u16::try_from(service.gue_port).ok().map(Encapsulation::Gue),
        v1::Encapsulation::Direct => Some(Encapsulation::Direct),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::backend_status::messages;

    fn example() -> v1::StatusResponse {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let backend = |address: &str, state: &str, reason: &str, resolved| v1::BackendStatus {
            pool: "web".into(),
            address: address.into(),
            region: "eu".into(),
            state: messages::state(state),
            reason: messages::reason(reason),
            next_hop_resolved: resolved,
            next_hop: if resolved { "02:00:00:00:00:01 on eth0" } else { "no route" }.into(),
            since: at(1_000_000),
            marked_out: false,
            ..Default::default()
        };
        v1::StatusResponse {
            overrides: Vec::new(),
            overrides_revision: 0,
            next_page_token: String::new(),
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
                slots: 1_009,
            }],
            backends: vec![
                backend("10.0.0.1", "up", "all checks pass", true),
                backend("10.0.0.2", "unhealthy", "check web-http: connection refused", true),
                backend("2001:db8:0:1::3", "up", "all checks pass", false),
            ],
            uptime: Some(prost_types::Duration { seconds: 200, nanos: 0 }),
            behind: String::new(),
            settling: vec![v1::SettlingPool {
                pool: "web".into(),
                since: at(1_000_000),
                ends_at: at(1_000_120),
                overdue: false,
            }],
            conditions: vec![],
            waiting_settings: vec![],
        }
    }

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_090)
    }

    #[test]
    fn backends_are_selected_by_all_that_is_given() {
        let selected = |change: fn(&mut Arguments)| {
            let mut arguments = Arguments::default();
            change(&mut arguments);
            let mut status = example();
            status.backends[2].pool = "dns".into();
            status.backends[1].region = "us".into();
            let status = arguments.select(status);
            let addresses = status.backends.into_iter().map(|backend| backend.address);
            (addresses.collect::<Vec<_>>(), status.services.len())
        };
        let (one, two, three) =
            ("10.0.0.1".to_owned(), "10.0.0.2".to_owned(), "2001:db8:0:1::3".to_owned());
        assert_eq!(selected(|_| ()), (vec![one.clone(), two.clone(), three.clone()], 1));
        assert_eq!(selected(|a| a.pool = vec!["dns".into()]), (vec![three.clone()], 0));
        assert_eq!(selected(|a| a.pool = vec!["dns".into(), "web".into()]).0.len(), 3);
        assert_eq!(selected(|a| a.region = vec!["us".into()]), (vec![two], 1));
        assert_eq!(selected(|a| a.state = vec![MemberState::Up]), (vec![one.clone(), three], 1));
        let both = selected(|a| (a.state, a.pool) = (vec![MemberState::Up], vec!["web".into()]));
        assert_eq!(both, (vec![one], 1));
        assert_eq!(selected(|a| a.state = vec![MemberState::Pending]), (vec![], 1));
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

SERVICE  ENDPOINT      PROTOCOL  POOL  SLOTS  BACKENDS UP
web      192.0.2.1:80  tcp       web   1009   1 of 3

POOL  REMAP     FOR     ENDS IN
web   settling  1m 30s  30s

POOL  BACKEND          REGION  STATE      FOR     WHY
web   10.0.0.1         eu      up         1m 30s  all checks pass
web   10.0.0.2         eu      unhealthy  1m 30s  check web-http: connection
                                                  refused
web   2001:db8:0:1::3  eu      up         1m 30s  no next hop: no route
"
        );
    }

    #[test]
    fn the_wide_table_has_the_figures_of_each_backend() {
        let mut status = example();
        status.settling.clear();
        (status.backends[0].share, status.backends[2].share) = (Some(1.0), Some(0.5));
        status.backends[2].next_hop_resolved = true;
        let names = ["backends/2001:db8:0:1::3/weight".to_owned(), "regions/eu/scale".into()];
        status.backends[2].overrides = names.to_vec();
        status.overrides =
            vec![v1::Override { name: names[0].clone(), percent: Some(50), ..Default::default() }];
        for (backend, weight) in status.backends.iter_mut().zip([1, 4, 2]) {
            backend.weight = weight;
        }
        let rates = [("10.0.0.1".to_owned(), 3.25)].into();
        let figures = BackendFigures::new(&status, &rates);
        // Of a backend that is shown alone, the share is still that of all.
        let alone = Arguments { state: vec![MemberState::Up], ..Arguments::default() };
        let wide = Status { figures, ..Status::new(alone.select(status), now()) }.wide();
        let expected = "
SERVICE  ENDPOINT      PROTOCOL  POOL  SLOTS  BACKENDS UP
web      192.0.2.1:80  tcp       web   1009   1 of 3

POOL  BACKEND          REGION  WEIGHT  STATE  FOR     SHARE  CONN/S  OVERRIDES                                                 WHY
web   10.0.0.1         eu      1       up     1m 30s  67%    3.2     -                                                         all checks pass
web   2001:db8:0:1::3  eu      2       up     1m 30s  33%    -       backends/2001:db8:0:1::3/weight (50 %), regions/eu/scale  all checks pass; takes 50% of its share
";
        assert!(wide.ends_with(expected), "{wide}");
        assert!(wide.starts_with("daemon      0.1.0, up 3m 20s\n"), "{wide}");
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
            messages::reason("check storefront-https: status 503, expected 200 to 299");
        status.backends[1].marked_out = true;
        assert_eq!(
            Status::new(status, now()).table(),
            "\
daemon      0.1.0, up 3m 20s
region      eu
generation  4, applied 1970-01-12T13:46:40Z
checksum    0123456789abcdef
interfaces  eth0 (native)

SERVICE                ENDPOINT               PROTOCOL  POOL
    SLOTS  BACKENDS UP
storefront-production  [2001:db8:10::80]:443  tcp       storefront-production
    1009   1 of 3

POOL                   BACKEND                           REGION        STATE
    FOR     WHY
storefront-production  2001:db8:10:20:5054:ff:fe12:3456  europe-west1  up
    1m 30s  all checks pass
storefront-production  2001:db8:10:20:5054:ff:fe12:3457  europe-west1  unhealthy
    1m 30s  check storefront-https: status 503, expected 200 to 299; marked out
storefront-production  2001:db8:10:20:5054:ff:fe12:3458  europe-west1  up
    1m 30s  no next hop: no route
"
        );
    }

    #[test]
    fn a_daemon_without_configuration_shows_that() {
        let status = v1::StatusResponse { version: "0.1.0".into(), ..Default::default() };
        assert_eq!(
            Status::new(status, now()).table(),
            "\
daemon      0.1.0, up 0s
region      not set
generation  0, nothing applied yet
checksum
interfaces  none
"
        );
    }

    #[test]
    fn everything_that_is_wrong_is_shown() {
        let mut status = example();
        status.behind = "map SERVICES: no space left".into();
        status.interfaces[0].mode.clear();
        status.backends[1].marked_out = true;
        status.backends[0].share = Some(0.4);
        status.backends[0].utilisation = Some(0.625);
        status.backends[2].report_error = "check load: no report: connection refused".into();
        status.conditions.push(v1::Condition {
            subject: "packet path".into(),
            text: "not at generation 4 yet, retried every second: map SERVICES: no space left"
                .into(),
            since: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 0 }),
            reason: v1::ConditionReason::PacketPath.into(),
            object: None,
        });
        status.conditions.push(v1::Condition {
            subject: "/etc/spillway/web.toml".into(),
            text: "line 2, column 1: unknown field `regions`".into(),
            since: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 0 }),
            reason: v1::ConditionReason::File.into(),
            object: None,
        });
        status.waiting_settings = vec!["interface".into(), "region".into()];
        let json = serde_json::to_value(Status::new(status.clone(), now())).unwrap();
        assert_eq!(json["waiting_settings"], serde_json::json!(["interface", "region"]));
        let table = Status::new(status, now()).table();
        let expected =
            "\nwaiting     interface, region: changed settings, in force after a restart\n";
        assert!(table.contains(expected), "{table}");
        // A long cause is wrapped.
        let words: Vec<_> = table.split_whitespace().collect();
        let expected = "generation 4, applied 1970-01-12T13:46:40Z; the packet path has not reached it yet checksum";
        assert!(words.join(" ").contains(expected), "{table}");
        let expected = "condition packet path: not at generation 4 yet, retried every second: map SERVICES: \
                    no space left (since 1970-01-12T13:46:40Z)";
        assert!(words.join(" ").contains(expected), "{table}");
        assert!(table.contains("interfaces  eth0 (no program)\n"), "{table}");
        assert!(words.join(" ").contains("refused; marked out"), "{table}");
        let expected = "all checks pass; 62% utilised; takes 40% of its share";
        assert!(words.join(" ").contains(expected), "{table}");
        let expected = "no next hop: no route; check load: no report: connection refused";
        assert!(words.join(" ").contains(expected), "{table}");
        let expected = "condition /etc/spillway/web.toml: line 2, column 1: unknown field `regions` \
                    (since 1970-01-12T13:46:40Z)";
        assert!(words.join(" ").contains(expected), "{table}");
    }

    #[test]
    fn json_has_what_the_table_leaves_out() {
        let json = serde_json::to_value(Status::new(example(), now())).unwrap();
        assert_eq!(json["backends"][0]["next_hop"], "02:00:00:00:00:01 on eth0");
        assert_eq!(json["backends"][2]["next_hop_resolved"], false);
        assert_eq!(json["backends"][1]["since"], "1970-01-12T13:46:40Z");
        assert_eq!(json["applied_at"], "1970-01-12T13:46:40.220176147Z");
        assert_eq!(json["uptime_seconds"], 200);
        assert_eq!(json["settling"][0]["ends_at"], "1970-01-12T13:48:40Z");
        assert_eq!(json["backends"][1]["marked_out"], false);
        assert_eq!(json["services"][0]["slots"], 1_009);
    }

    #[test]
    fn a_service_shows_an_encapsulation_that_is_not_the_default() {
        let service = |encapsulation: v1::Encapsulation, gue_port| {
            let pool = "web".into();
            let encapsulation = encapsulation.into();
            ServiceRow::new(v1::ServiceStatus {
                pool,
                encapsulation,
                gue_port,
                ..Default::default()
            })
        };
        for (service, pool, how, port) in [
            (service(v1::Encapsulation::Unspecified, 0), "web", None, None),
            (service(v1::Encapsulation::IpInIp, 0), "web", Some("ip_in_ip"), None),
            (service(v1::Encapsulation::Gue, 6080), "web (gue)", Some("gue"), Some(6080)),
            (service(v1::Encapsulation::Direct, 0), "web (direct)", Some("direct"), None),
        ] {
            assert_eq!(service.cells()[3], pool);
            let json = serde_json::to_value(service).unwrap();
            assert_eq!(json["encapsulation"], serde_json::json!(how), "{pool}");
            assert_eq!(json["gue_port"], serde_json::json!(port), "{pool}");
        }
    }
}
