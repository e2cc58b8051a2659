use super::{Fields, Optional, Shown};
use crate::{CheckTls, GrpcCheck, HealthCheck, HttpCheck, Probe, Trust, UdpCheck};
use lb_base::bytes::Bytes;

pub(in crate::diff) fn health_check(old: &HealthCheck, new: &HealthCheck) -> Vec<String> {
    let mut fields = Fields::default();
    fields.compare("probe", probe(&old.probe), probe(&new.probe));
    match (&old.probe, &new.probe) {
        (Probe::Http(old), Probe::Http(new)) => http(&mut fields, old, new),
        (Probe::Grpc(old), Probe::Grpc(new)) => grpc(&mut fields, old, new),
        (Probe::Udp(old), Probe::Udp(new)) => udp(&mut fields, old, new),
        (Probe::Agent(old), Probe::Agent(new)) => {
            bytes(&mut fields, "agent.send", &old.send, &new.send)
        }
        _ => {}
    }
    match (&old.tls, &new.tls) {
        (Some(old), Some(new)) => tls(&mut fields, old, new),
        (old, new) => fields.compare("tls", on(old.as_ref()), on(new.as_ref())),
    }
    fields.compare("via", old.via.name(), new.via.name());
    fields.compare("port", old.port, new.port);
    fields.compare("interval", Shown(old.interval), Shown(new.interval));
    fields.compare("fast_interval", Shown(old.fast_interval), Shown(new.fast_interval));
    fields.compare("timeout", Shown(old.timeout), Shown(new.timeout));
    fields.compare("rise", old.rise, new.rise);
    fields.compare("fall", old.fall, new.fall);
    fields.compare("jitter_percent", old.jitter_percent, new.jitter_percent);
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

fn probe(probe: &Probe) -> &'static str {
    match probe {
        Probe::Tcp => "tcp",
        Probe::Http(_) => "http",
        Probe::Grpc(_) => "grpc",
        Probe::Udp(_) => "udp",
        Probe::Agent(_) => "agent",
    }
}

fn on(tls: Option<&CheckTls>) -> &'static str {
    if tls.is_some() { "on" } else { "off" }
}
