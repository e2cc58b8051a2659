//! VIP probes: what the balancer's daemon found when it probed each backend for its VIPs.

use std::{net::IpAddr, time::Duration};

use lb_common::abi::form::Form;
use spillway_proto::v1::{
    Encapsulation, ProbeVipsRequest, ProbedWay, VipProbeOutcome, probe_vips_response::Event,
};
use tokio::time::timeout;

use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    failure::Failure,
};

/// Longest wait between two results, a few times as long as a probe that searches for the MTU.
const RESULT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum VipProbes {
    /// The reason why none was made.
    NotRun(String),
    Done {
        probes: Vec<VipProbe>,
        /// Probes beyond the maximum number.
        left_out: u32,
    },
}

/// A probe of a backend for a VIP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct VipProbe {
    pub(in super::super) backend: IpAddr,
    pub(in super::super) vip: IpAddr,
    /// Bytes that encapsulation adds; 0 without a tunnel.
    pub(in super::super) overhead: u32,
    pub(in super::super) result: VipProbeResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum VipProbeResult {
    /// The VIP answers small and large packets.
    Works,
    /// The VIP answers, but it is unknown whether large packets arrive, with the reason.
    Unsized(String),
    /// The VIP answers small packets, but not those of the full size.
    Narrow {
        /// The largest packet that it answers, bytes; `None`: not measured.
        fits: Option<u32>,
    },
    /// The VIP does not answer.
    Silent {
        /// Whether the host answers outside the tunnel.
        is_host_up: bool,
        /// Whether a TCP connection was tried too.
        by_tcp: bool,
    },
    /// The reason why no probe was possible.
    NotProbed(String),
}

impl VipProbes {
    /// Has the daemon probe all backends, with packets of up to `client_mtu` bytes.
    ///
    /// # Errors
    /// The runtime cannot start. A probe that fails is a fact.
    pub(super) fn run(options: &Options, client_mtu: u32) -> Result<Self, Failure> {
        block_on(async {
            let probes = run_probes(options, client_mtu).await;
            Ok(probes.unwrap_or_else(|failure| Self::NotRun(failure.message)))
        })
    }
}

async fn run_probes(options: &Options, packet_size: u32) -> Result<VipProbes, Failure> {
    let mut daemon = DaemonClient::connect(options).await?;
    let request = ProbeVipsRequest { packet_size, ..ProbeVipsRequest::default() };
    let mut events = daemon.probe_vips(request).await?;
    let mut probes = Vec::new();
    loop {
        let message = timeout(RESULT_TIMEOUT, events.message()).await;
        let message =
            message.map_err(|_| daemon.lost("the daemon stopped sending probe results"))?;
        let message = message.map_err(|status| daemon.failure(&status))?;
        let message = message.ok_or_else(|| daemon.lost("the daemon ended the probe"))?;
        match message.event {
            Some(Event::Way(probe)) => probes.extend(VipProbe::from_message(&probe)),
            Some(Event::Summary(summary)) => {
                probes.sort_by_key(|probe: &VipProbe| (probe.backend, probe.vip, probe.overhead));
                return Ok(VipProbes::Done { probes, left_out: summary.left_out });
            }
            // An event that only a newer daemon knows.
            None => {}
        }
    }
}

impl VipProbes {
    /// The largest outer packet that reaches a backend in all its probes, bytes; `None`: none was too narrow, or it was
    /// not measured.
    pub(in super::super) fn path_mtu(&self, backend: IpAddr) -> Option<u32> {
        let Self::Done { probes, .. } = self else { return None };
        probes.iter().filter(|probe| probe.backend == backend).filter_map(VipProbe::path_mtu).min()
    }
}

impl VipProbe {
    pub(in super::super) const fn is_tunnel(&self) -> bool {
        self.overhead > 0
    }

    pub(in super::super) fn is_gue(&self) -> bool {
        self.overhead == u32::from(Form::gue(0).overhead(self.backend.is_ipv4()))
    }

    /// The largest outer packet that arrives, bytes; `None`: not measured.
    pub(in super::super) const fn path_mtu(&self) -> Option<u32> {
        match self.result {
            VipProbeResult::Narrow { fits: Some(fits) } => Some(fits + self.overhead),
            _ => None,
        }
    }

    /// `None`: a result that only a newer daemon knows.
    fn from_message(probe: &ProbedWay) -> Option<Self> {
        let backend: IpAddr = probe.backend.parse().ok()?;
        let form = match probe.encapsulation() {
            Encapsulation::Gue => Form::gue(0),
            Encapsulation::Direct => Form::DIRECT,
            Encapsulation::IpInIp | Encapsulation::Unspecified => Form::IP_IN_IP,
        };
        let result = match (probe.small(), probe.full()) {
            (VipProbeOutcome::Answered, VipProbeOutcome::Answered) => VipProbeResult::Works,
            (VipProbeOutcome::Answered, VipProbeOutcome::Silent) => {
                VipProbeResult::Narrow { fits: Some(probe.fits).filter(|fits| *fits != 0) }
            }
            (VipProbeOutcome::Answered, _) => VipProbeResult::Unsized(probe.reason.clone()),
            (VipProbeOutcome::Silent, _) => VipProbeResult::Silent {
                is_host_up: !probe.host.is_empty(),
                by_tcp: probe.tcp_port != 0,
            },
            (VipProbeOutcome::Barred, _) => VipProbeResult::NotProbed(probe.reason.clone()),
            (VipProbeOutcome::Unspecified, _) => return None,
        };
        let overhead = form.overhead(backend.is_ipv4()).into();
        Some(Self { backend, vip: probe.vip.parse().ok()?, overhead, result })
    }
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1::VipProbeAnswer;

    use super::*;

    #[test]
    fn messages_become_results() {
        let message = ProbedWay {
            backend: "fd00:1::11".into(),
            vip: "203.0.113.1".into(),
            encapsulation: Encapsulation::Gue.into(),
            answer: VipProbeAnswer::Echo.into(),
            ..ProbedWay::default()
        };
        let of = |small: VipProbeOutcome, full: VipProbeOutcome, more: ProbedWay| {
            let probe = ProbedWay { small: small.into(), full: full.into(), ..more };
            VipProbe::from_message(&probe).map(|probe| probe.result)
        };
        let (answered, silent) = (VipProbeOutcome::Answered, VipProbeOutcome::Silent);
        let (barred, none) = (VipProbeOutcome::Barred, VipProbeOutcome::Unspecified);
        assert_eq!(of(answered, answered, message.clone()), Some(VipProbeResult::Works));
        let fits = ProbedWay { fits: 1_348, ..message.clone() };
        assert_eq!(of(answered, silent, fits), Some(VipProbeResult::Narrow { fits: Some(1_348) }));
        assert_eq!(
            of(answered, silent, message.clone()),
            Some(VipProbeResult::Narrow { fits: None })
        );
        let why = ProbedWay { reason: "why".into(), ..message.clone() };
        assert_eq!(of(answered, none, why.clone()), Some(VipProbeResult::Unsized("why".into())));
        assert_eq!(of(barred, none, why), Some(VipProbeResult::NotProbed("why".into())));
        let there = ProbedWay { host: "is there".into(), tcp_port: 80, ..message.clone() };
        let result = VipProbeResult::Silent { is_host_up: true, by_tcp: true };
        assert_eq!(of(silent, none, there), Some(result));
        assert_eq!(of(none, none, message.clone()), None);

        let probe = ProbedWay { small: answered.into(), full: answered.into(), ..message };
        let form = |encapsulation: Encapsulation| {
            let probe = ProbedWay { encapsulation: encapsulation.into(), ..probe.clone() };
            VipProbe::from_message(&probe)
                .map(|probe| (probe.overhead, probe.is_tunnel(), probe.is_gue()))
        };
        // An IPv6 header, UDP and GUE.
        assert_eq!(form(Encapsulation::Gue), Some((52, true, true)));
        assert_eq!(form(Encapsulation::IpInIp), Some((40, true, false)));
        assert_eq!(form(Encapsulation::Direct), Some((0, false, false)));
    }

    #[test]
    fn the_smallest_path_mtu_of_a_backend_counts() {
        let (one, other) = (IpAddr::from([10, 1, 0, 11]), IpAddr::from([10, 1, 0, 12]));
        let probe = |backend, overhead, result| VipProbe { backend, vip: one, overhead, result };
        let narrow = |fits| VipProbeResult::Narrow { fits };
        let probes = vec![
            probe(one, 20, narrow(Some(1_380))),
            probe(one, 32, narrow(Some(1_360))),
            probe(one, 20, narrow(None)),
            probe(other, 0, narrow(None)),
            probe(other, 0, VipProbeResult::Works),
        ];
        let tried = VipProbes::Done { probes, left_out: 0 };
        assert_eq!((tried.path_mtu(one), tried.path_mtu(other)), (Some(1_392), None));
    }
}
