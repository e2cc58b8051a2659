//! A service of `spillway status`.

use lb_daemon::model::Encapsulation;
use serde::Serialize;
use spillway_proto::v1;

#[derive(Serialize)]
pub(super) struct Service {
    name: String,
    endpoint: String,
    protocol: String,
    pool: String,
    backends_up: u32,
    backends: u32,
    /// How its packets get to them; `null`: the daemon does not say, or in words that this version lacks.
    encapsulation: Option<&'static str>,
    gue_port: Option<u16>,
}

impl Service {
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
        }
    }

    /// Its line of the table.
    pub(super) fn cells(&self) -> [String; 5] {
        [
            self.name.clone(),
            self.endpoint.clone(),
            self.protocol.clone(),
            self.pool(),
            format!("{} of {}", self.backends_up, self.backends),
        ]
    }

    /// Its pool, with how packets get there where that is not the usual way.
    fn pool(&self) -> String {
        match self.encapsulation {
            Some(how) if how != Encapsulation::default().name() => format!("{} ({how})", self.pool),
            _ => self.pool.clone(),
        }
    }
}

/// As the daemon's model has it.
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

    #[test]
    fn it_says_how_packets_get_to_its_backends_where_that_is_not_the_usual_way() {
        let of = |encapsulation: v1::Encapsulation, gue_port| {
            let pool = "web".into();
            let encapsulation = encapsulation.into();
            Service::new(v1::ServiceStatus { pool, encapsulation, gue_port, ..Default::default() })
        };
        for (service, pool, how, port) in [
            (of(v1::Encapsulation::Unspecified, 0), "web", None, None),
            (of(v1::Encapsulation::IpInIp, 0), "web", Some("ip_in_ip"), None),
            (of(v1::Encapsulation::Gue, 6080), "web (gue)", Some("gue"), Some(6080)),
            (of(v1::Encapsulation::Direct, 0), "web (direct)", Some("direct"), None),
        ] {
            assert_eq!(service.cells()[3], pool);
            let json = serde_json::to_value(service).unwrap();
            assert_eq!(json["encapsulation"], serde_json::json!(how), "{pool}");
            assert_eq!(json["gue_port"], serde_json::json!(port), "{pool}");
        }
    }
}
