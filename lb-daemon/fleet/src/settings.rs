//! What a balancer is told of its fleet.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use lb_model::Name;

/// How a balancer takes part in a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetSettings {
    pub fleet: Name,
    /// Of etcd, as `https://HOST:PORT`.
    pub endpoints: Vec<String>,
    pub tls: Option<EtcdTls>,
    /// This balancer's.
    pub name: Name,
    /// Where its peers reach it.
    pub address: SocketAddr,
    pub region: Option<Name>,
}

/// Files in PEM for the connection to etcd, which are read once: a renewed certificate needs a new [`crate::Fleet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdTls {
    pub authorities: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A mistake in the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetSettingsError {
    #[error("fleet: etcd: must name at least one server of etcd")]
    NoEndpoints,
    #[error("fleet: etcd: {0}: must be http://HOST:PORT or https://HOST:PORT")]
    NotAUrl(String),
    #[error("fleet: etcd: {0}: occurs twice")]
    Twice(String),
    #[error("fleet: etcd: {0}: must begin with https://, because certificates are set")]
    PlainWithTls(String),
    #[error("fleet: etcd: {0}: needs tls-ca, tls-cert and tls-key")]
    TlsWithoutFiles(String),
    #[error(
        "fleet: address: {0}: must be an address and a port at which peers reach this balancer"
    )]
    NotReachable(SocketAddr),
}

impl FleetSettings {
    /// All mistakes, in the order of the fields.
    pub fn validate(&self) -> Vec<FleetSettingsError> {
        let mut mistakes = Vec::new();
        if self.endpoints.is_empty() {
            mistakes.push(FleetSettingsError::NoEndpoints);
        }
        let mut seen = BTreeSet::new();
        for endpoint in &self.endpoints {
            let is_https = endpoint.starts_with("https://");
            if !is_url(endpoint) {
                mistakes.push(FleetSettingsError::NotAUrl(endpoint.clone()));
            } else if !seen.insert(endpoint) {
                mistakes.push(FleetSettingsError::Twice(endpoint.clone()));
            } else if self.tls.is_some() && !is_https {
                mistakes.push(FleetSettingsError::PlainWithTls(endpoint.clone()));
            } else if self.tls.is_none() && is_https {
                mistakes.push(FleetSettingsError::TlsWithoutFiles(endpoint.clone()));
            }
        }
        let ip = self.address.ip();
        if ip.is_unspecified() || ip.is_multicast() || self.address.port() == 0 {
            mistakes.push(FleetSettingsError::NotReachable(self.address));
        }
        mistakes
    }
}

/// What connections of a balancer at address `own` to another host come from: the kernel might prefer a service's address,
/// and answers to that may go to another balancer. `None`: what the kernel takes, because no packet can go from `own` to
/// that host, or not without its interface.
pub fn source(own: IpAddr, to: IpAddr) -> Option<IpAddr> {
    let is_usable = match own {
        IpAddr::V4(v4) => !v4.is_unspecified(),
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_unicast_link_local(),
    };
    let is_alike = own.is_ipv4() == to.is_ipv4() && own.is_loopback() == to.is_loopback();
    (is_usable && is_alike).then_some(own)
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.and_then(|rest| rest.rsplit_once(':')).is_some_and(|(host, port)| {
        let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-.[]:".contains(&b);
        !host.is_empty()
            && host.bytes().all(is_host)
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(endpoints: &[&str]) -> FleetSettings {
        FleetSettings {
            fleet: Name::new("edge").unwrap(),
            endpoints: endpoints.iter().map(|it| (*it).to_owned()).collect(),
            tls: None,
            name: Name::new("lb-1").unwrap(),
            address: "192.0.2.1:7000".parse().unwrap(),
            region: None,
        }
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let tls = |path: &str| EtcdTls {
            authorities: path.into(),
            certificate: path.into(),
            key: path.into(),
        };
        let sentences = |settings: &FleetSettings| -> Vec<String> {
            settings.validate().iter().map(ToString::to_string).collect()
        };
        assert!(sentences(&settings(&["http://[::1]:2379", "http://etcd-1:2379"])).is_empty());
        assert_eq!(
            sentences(&settings(&[])),
            ["fleet: etcd: must name at least one server of etcd"]
        );
        for wrong in ["etcd:2379", "http://:2379", "http://etcd", "http://e/x:1", "http://e:0"] {
            let sentence =
                format!("fleet: etcd: {wrong}: must be http://HOST:PORT or https://HOST:PORT");
            assert_eq!(sentences(&settings(&[wrong])), [sentence]);
        }
        let twice = settings(&["http://a:1", "http://a:1", "https://a:1"]);
        assert_eq!(
            sentences(&twice),
            [
                "fleet: etcd: http://a:1: occurs twice",
                "fleet: etcd: https://a:1: needs tls-ca, tls-cert and tls-key"
            ]
        );
        let mut plain = settings(&["http://a:1"]);
        plain.tls = Some(tls("/x"));
        plain.address = "0.0.0.0:1".parse().unwrap();
        assert_eq!(
            sentences(&plain),
            [
                "fleet: etcd: http://a:1: must begin with https://, because certificates are set",
                "fleet: address: 0.0.0.0:1: must be an address and a port at which peers reach this balancer"
            ]
        );
    }
}
