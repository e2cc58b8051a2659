//! Which fields of an object differ.

use std::{
    collections::BTreeSet,
    fmt::{self, Display},
};

use lb_base::bytes::Bytes;

use super::FieldChange;
use crate::{
    Backend, CheckKind, CheckTls, Configuration, GroupSettings, GrpcCheck, HealthCheck, HttpCheck,
    Name, Pool, Region, Service, Trust, UdpCheck, Unserved,
};

pub(super) fn region(old: &Region, new: &Region) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.compare("overflow_to", Names(&old.overflow_to), Names(&new.overflow_to));
    fields.0
}

pub(super) fn pool(old: &Pool, new: &Pool) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.compare("health_checks", Names(&old.health_checks), Names(&new.health_checks));
    fields.compare("slots", old.slots, new.slots);
    fields.compare("isolation", old.isolation, new.isolation);
    let preferred = (Names(&old.preferred_regions), Names(&new.preferred_regions));
    fields.compare("preferred_regions", preferred.0, preferred.1);
    let panic = (old.panic_threshold_percent, new.panic_threshold_percent);
    fields.compare("panic_threshold_percent", panic.0, panic.1);
    fields.compare("settle_time", Shown(old.settle_time), Shown(new.settle_time));
    fields.compare("slow_start", Shown(old.slow_start), Shown(new.slow_start));
    fields.compare("hold_down", Shown(old.hold_down), Shown(new.hold_down));
    fields.compare("max_hold_down", Shown(old.max_hold_down), Shown(new.max_hold_down));
    fields.compare("encapsulation", old.encapsulation, new.encapsulation);
    for region in old.groups.keys().chain(new.groups.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (old.group(region), new.group(region));
        let mut of_group = Fields::default();
        let capacity = (old.capacity.as_ref(), new.capacity.as_ref());
        of_group.compare("capacity", Optional(capacity.0), Optional(capacity.1));
        of_group.compare("scaler", old.scaler, new.scaler);
        let drained = |group: GroupSettings| if group.drained { "yes" } else { "no" };
        of_group.compare("drained", drained(old), drained(new));
        let in_region = |change| FieldChange { region: Some(region.clone()), ..change };
        fields.0.extend(of_group.0.into_iter().map(in_region));
    }
    fields.0
}

pub(super) fn backend(old: &Backend, new: &Backend) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.compare("region", &old.region, &new.region);
    fields.compare("weight", old.weight, new.weight);
    fields.compare("admin_state", old.admin_state, new.admin_state);
    fields.compare("mtu", Optional(old.mtu.as_ref()), Optional(new.mtu.as_ref()));
    let rate = (old.max_connection_rate.as_ref(), new.max_connection_rate.as_ref());
    fields.compare("max_connection_rate", Optional(rate.0), Optional(rate.1));
    fields.0
}

pub(super) fn service(old: &Service, new: &Service) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.compare("address", old.address, new.address);
    let one = old.ports.single().is_some() && new.ports.single().is_some();
    let field = if one { "port" } else { "ports" };
    fields.compare(field, old.ports.to_string(), new.ports.to_string());
    fields.compare("protocol", old.protocol, new.protocol);
    fields.compare("pool", &old.pool, &new.pool);
    fields.compare("affinity", old.affinity, new.affinity);
    fields.compare("when_full", old.when_full, new.when_full);
    let udp = |service: &Service| service.udp_mode().unwrap_or_default();
    fields.compare("udp", udp(old), udp(new));
    let idle = (old.idle_timeout.map(Shown), new.idle_timeout.map(Shown));
    fields.compare("idle_timeout", Optional(idle.0), Optional(idle.1));
    fields.compare("fragments", old.fragments, new.fragments);
    fields.0
}

pub(super) fn vip(old: &Unserved, new: &Unserved) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.compare("unserved", old, new);
    fields.0
}

/// What is no object's.
pub(super) fn whole(old: &Configuration, new: &Configuration) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.compare("balancers", old.balancers, new.balancers);
    fields.0
}

/// The key is a secret of the fleet: what it is does not show.
pub(super) fn hash_key(old: Option<[u64; 2]>, new: Option<[u64; 2]>) -> Vec<FieldChange> {
    let spell = |key: Option<_>, given| key.map_or("the daemon's own", |_| given);
    let given = if old.is_some() { "another" } else { "the configuration's" };
    let mut fields = Fields::default();
    fields.compare("hash_key", spell(old, "the configuration's"), spell(new, given));
    fields.0
}

#[derive(Default)]
struct Fields(Vec<FieldChange>);

impl Fields {
    fn compare<T: PartialEq + Display>(&mut self, field: &'static str, old: T, new: T) {
        if old != new {
            let (old, new) = (old.to_string(), new.to_string());
            self.0.push(FieldChange { field, region: None, old, new, note: String::new() });
        }
    }
}

#[derive(PartialEq)]
struct Names<'a>(&'a [Name]);

impl Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.iter().map(Name::as_str).collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => f.write_str("none"),
            names => f.write_str(&names),
        }
    }
}

#[derive(PartialEq)]
struct Optional<T>(Option<T>);

impl<T: Display> Display for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("unset"),
            Some(value) => value.fmt(f),
        }
    }
}

#[derive(PartialEq)]
struct Shown<T>(T);

impl<T: fmt::Debug> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(in crate::diff) fn health_check(old: &HealthCheck, new: &HealthCheck) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.compare("kind", probe(&old.kind), probe(&new.kind));
    match (&old.kind, &new.kind) {
        (CheckKind::Http(old), CheckKind::Http(new)) => http(&mut fields, old, new),
        (CheckKind::Grpc(old), CheckKind::Grpc(new)) => grpc(&mut fields, old, new),
        (CheckKind::Udp(old), CheckKind::Udp(new)) => udp(&mut fields, old, new),
        (CheckKind::Agent(old), CheckKind::Agent(new)) => {
            bytes(&mut fields, "agent.send", &old.send, &new.send)
        }
        _ => {}
    }
    match (&old.tls, &new.tls) {
        (Some(old), Some(new)) => tls(&mut fields, old, new),
        (old, new) => fields.compare("tls", on(old.as_ref()), on(new.as_ref())),
    }
    fields.compare("via", old.via, new.via);
    fields.compare("port", old.port, new.port);
    fields.compare("interval", Shown(old.interval), Shown(new.interval));
    fields.compare("fast_interval", Shown(old.fast_interval), Shown(new.fast_interval));
    fields.compare("timeout", Shown(old.timeout), Shown(new.timeout));
    fields.compare("rise", old.rise, new.rise);
    fields.compare("fall", old.fall, new.fall);
    fields.compare("jitter_percent", old.jitter_percent, new.jitter_percent);
    fields.compare("host_probe", old.host_probe, new.host_probe);
    fields.compare("host_probe_port", old.host_probe_port, new.host_probe_port);
    fields.0
}

fn http(fields: &mut Fields, old: &HttpCheck, new: &HttpCheck) {
    fields.compare("http.method", &old.method, &new.method);
    fields.compare("http.path", &old.path, &new.path);
    fields.compare("http.host", Optional(old.host.as_ref()), Optional(new.host.as_ref()));
    fields.compare("http.status_min", old.status_min, new.status_min);
    fields.compare("http.status_max", old.status_max, new.status_max);
    let body = (old.body_contains.as_ref().map(Shown), new.body_contains.as_ref().map(Shown));
    fields.compare("http.body_contains", Optional(body.0), Optional(body.1));
    let header = (old.agent_header.as_ref(), new.agent_header.as_ref());
    fields.compare("http.agent_header", Optional(header.0), Optional(header.1));
}

fn grpc(fields: &mut Fields, old: &GrpcCheck, new: &GrpcCheck) {
    fields.compare("grpc.service", Shown(&old.service), Shown(&new.service));
    let authority = (old.authority.as_ref(), new.authority.as_ref());
    fields.compare("grpc.authority", Optional(authority.0), Optional(authority.1));
}

fn udp(fields: &mut Fields, old: &UdpCheck, new: &UdpCheck) {
    bytes(fields, "udp.request", &old.request, &new.request);
    bytes(fields, "udp.answer_prefix", &old.answer_prefix, &new.answer_prefix);
    bytes(fields, "udp.answer_contains", &old.answer_contains, &new.answer_contains);
}

fn bytes(fields: &mut Fields, field: &'static str, old: &[u8], new: &[u8]) {
    let spell = |bytes: &[u8]| format!("{:?}", Bytes(bytes.to_vec()).to_string());
    fields.compare(field, spell(old), spell(new));
}

fn tls(fields: &mut Fields, old: &CheckTls, new: &CheckTls) {
    let name = (old.server_name.as_ref(), new.server_name.as_ref());
    fields.compare("tls.server_name", Optional(name.0), Optional(name.1));
    fields.compare("tls.verify", old.trust != Trust::Anybody, new.trust != Trust::Anybody);
    let file = |trust| match trust {
        Trust::File(path) => Some(path),
        Trust::Anybody | Trust::Host => None,
    };
    let (old, new) = (file(old.trust.clone()), file(new.trust.clone()));
    fields.compare("tls.ca_file", Optional(old), Optional(new));
}

fn probe(probe: &CheckKind) -> &'static str {
    match probe {
        CheckKind::Tcp => "tcp",
        CheckKind::Http(_) => "http",
        CheckKind::Grpc(_) => "grpc",
        CheckKind::Udp(_) => "udp",
        CheckKind::Agent(_) => "agent",
    }
}

fn on(tls: Option<&CheckTls>) -> &'static str {
    if tls.is_some() { "on" } else { "off" }
}
