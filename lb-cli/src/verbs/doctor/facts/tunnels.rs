use std::{net::IpAddr, time::Duration};

use lb_common::abi::form::Form;
use spillway_proto::v1::{
    Encapsulation, ProbeOutcome, ProbeRequest, ProbedWay, probe_response::Event,
};
use tokio::time::timeout;

use crate::{
    arguments::Options,
    daemon::{Daemon as Connection, converse},
    failure::Failure,
};

/// How long the daemon may take from one way to the next: a few times as long as one that is narrow takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What comes of the ways to backends, as the balancer's daemon tried them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Tunnels {
    /// They were not tried, and why.
    Untried(String),
    /// They were.
    Tried {
        /// The ways.
        ways: Vec<Way>,
        /// Ways beyond the most that are tried.
        left_out: u32,
    },
}

/// A way: to a backend, for a VIP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Way {
    pub(in super::super) backend: IpAddr,
    pub(in super::super) vip: IpAddr,
    /// Bytes that a packet grows by; 0 without a tunnel.
    pub(in super::super) overhead: u32,
    pub(in super::super) outcome: Outcome,
}

/// What comes of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    /// The VIP answers, large packets too.
    Well,
    /// It answers, but what fits cannot be told, and why.
    Unsized(String),
    /// It answers small packets, not those of the full size.
    Narrow {
        /// The largest that it answers, bytes; `None`: nobody looked.
        fits: Option<u32>,
    },
    /// It does not answer.
    Silent {
        /// Whether the host is there, outside of the tunnel.
        is_there: bool,
        /// Whether a connection was tried as well.
        by_tcp: bool,
    },
    /// Nothing could be sent, and why.
    Barred(String),
}

impl Tunnels {
    /// Has them tried, with IP packets of `client_mtu` bytes as the largest.
    ///
    /// # Errors
    /// There can be no conversation at all; that nothing is tried is a fact.
    pub(super) fn try_all(options: &Options, client_mtu: u32) -> Result<Self, Failure> {
        converse(async {
            let tried = tried(options, client_mtu).await;
            Ok(tried.unwrap_or_else(|failure| Self::Untried(failure.message)))
        })
    }
}

async fn tried(options: &Options, packet_size: u32) -> Result<Tunnels, Failure> {
    let mut daemon = Connection::open(options).await?;
    let request = ProbeRequest { packet_size, ..ProbeRequest::default() };
    let mut events = daemon.probe(request).await?;
    let mut ways = Vec::new();
    loop {
        let message = timeout(PATIENCE, events.message()).await;
        let message = message.map_err(|_| daemon.broken("it says no more of the probe"))?;
        let message = message.map_err(|status| daemon.failure(&status))?;
        let message = message.ok_or_else(|| daemon.broken("it ended the probe"))?;
        match message.event {
            Some(Event::Way(way)) => ways.extend(Way::of(&way)),
            Some(Event::Summary(summary)) => {
                ways.sort_by_key(|way: &Way| (way.backend, way.vip, way.overhead));
                return Ok(Tunnels::Tried { ways, left_out: summary.left_out });
            }
            // Of a later daemon.
            None => {}
        }
    }
}

impl Tunnels {
    /// The largest outer packet that comes to a backend by the narrowest of its ways, bytes; `None`: none is
    /// narrow, or nobody looked.
    pub(in super::super) fn takes(&self, backend: IpAddr) -> Option<u32> {
        let Self::Tried { ways, .. } = self else { return None };
        ways.iter().filter(|way| way.backend == backend).filter_map(Way::takes).min()
    }
}

impl Way {
    /// Whether there is a tunnel.
    pub(in super::super) const fn is_tunnel(&self) -> bool {
        self.overhead > 0
    }

    /// Whether the tunnel is GUE.
    pub(in super::super) fn is_gue(&self) -> bool {
        self.overhead == u32::from(Form::gue(0).overhead(self.backend.is_ipv4()))
    }

    /// The largest outer packet that comes there, bytes, where that was looked for.
    pub(in super::super) const fn takes(&self) -> Option<u32> {
        match self.outcome {
            Outcome::Narrow { fits: Some(fits) } => Some(fits + self.overhead),
            _ => None,
        }
    }

    /// `None`: it is of a later daemon.
    fn of(way: &ProbedWay) -> Option<Self> {
        let backend: IpAddr = way.backend.parse().ok()?;
        let form = match way.encapsulation() {
            Encapsulation::Gue => Form::gue(0),
            Encapsulation::Direct => Form::DIRECT,
            Encapsulation::IpInIp | Encapsulation::Unspecified => Form::IP_IN_IP,
        };
        let outcome = match (way.small(), way.full()) {
            (ProbeOutcome::Answered, ProbeOutcome::Answered) => Outcome::Well,
            (ProbeOutcome::Answered, ProbeOutcome::Silent) => {
                Outcome::Narrow { fits: Some(way.fits).filter(|fits| *fits != 0) }
            }
            (ProbeOutcome::Answered, _) => Outcome::Unsized(way.reason.clone()),
            (ProbeOutcome::Silent, _) => {
                Outcome::Silent { is_there: !way.host.is_empty(), by_tcp: way.tcp_port != 0 }
            }
            (ProbeOutcome::Barred, _) => Outcome::Barred(way.reason.clone()),
            (ProbeOutcome::Unspecified, _) => return None,
        };
        let overhead = form.overhead(backend.is_ipv4()).into();
        Some(Self { backend, vip: way.vip.parse().ok()?, overhead, outcome })
    }
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1::ProbeAnswer;

    use super::*;

    #[test]
    fn what_is_said_of_a_way_is_read() {
        let said = ProbedWay {
            backend: "fd00:1::11".into(),
            vip: "203.0.113.1".into(),
            encapsulation: Encapsulation::Gue.into(),
            answer: ProbeAnswer::Echo.into(),
            ..ProbedWay::default()
        };
        let of = |small: ProbeOutcome, full: ProbeOutcome, more: ProbedWay| {
            let way = ProbedWay { small: small.into(), full: full.into(), ..more };
            Way::of(&way).map(|way| way.outcome)
        };
        let (answered, silent) = (ProbeOutcome::Answered, ProbeOutcome::Silent);
        let (barred, none) = (ProbeOutcome::Barred, ProbeOutcome::Unspecified);
        assert_eq!(of(answered, answered, said.clone()), Some(Outcome::Well));
        let fits = ProbedWay { fits: 1_348, ..said.clone() };
        assert_eq!(of(answered, silent, fits), Some(Outcome::Narrow { fits: Some(1_348) }));
        assert_eq!(of(answered, silent, said.clone()), Some(Outcome::Narrow { fits: None }));
        let why = ProbedWay { reason: "why".into(), ..said.clone() };
        assert_eq!(of(answered, none, why.clone()), Some(Outcome::Unsized("why".into())));
        assert_eq!(of(barred, none, why), Some(Outcome::Barred("why".into())));
        let there = ProbedWay { host: "is there".into(), tcp_port: 80, ..said.clone() };
        let outcome = Outcome::Silent { is_there: true, by_tcp: true };
        assert_eq!(of(silent, none, there), Some(outcome));
        assert_eq!(of(none, none, said.clone()), None);

        let way = ProbedWay { small: answered.into(), full: answered.into(), ..said };
        let form = |encapsulation: Encapsulation| {
            let way = ProbedWay { encapsulation: encapsulation.into(), ..way.clone() };
            Way::of(&way).map(|way| (way.overhead, way.is_tunnel(), way.is_gue()))
        };
        // An IPv6 header, UDP and GUE.
        assert_eq!(form(Encapsulation::Gue), Some((52, true, true)));
        assert_eq!(form(Encapsulation::IpInIp), Some((40, true, false)));
        assert_eq!(form(Encapsulation::Direct), Some((0, false, false)));
    }

    #[test]
    fn the_narrowest_way_says_what_comes_to_a_backend() {
        let (one, other) = (IpAddr::from([10, 1, 0, 11]), IpAddr::from([10, 1, 0, 12]));
        let way = |backend, overhead, outcome| Way { backend, vip: one, overhead, outcome };
        let narrow = |fits| Outcome::Narrow { fits };
        let ways = vec![
            way(one, 20, narrow(Some(1_380))),
            way(one, 32, narrow(Some(1_360))),
            way(one, 20, narrow(None)),
            way(other, 0, narrow(None)),
            way(other, 0, Outcome::Well),
        ];
        let tried = Tunnels::Tried { ways, left_out: 0 };
        assert_eq!((tried.takes(one), tried.takes(other)), (Some(1_392), None));
    }
}
