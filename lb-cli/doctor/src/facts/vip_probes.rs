//! VIP probes: what the balancer's daemon found when it probed each backend for its VIPs.

use std::net::IpAddr;

use lb_common::abi::form::Form;
use spillway_proto::v1::{Encapsulation, ProbedWay, VipProbeOutcome};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VipProbes {
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
pub struct VipProbe {
    pub(crate) backend: IpAddr,
    pub(crate) vip: IpAddr,
    /// Bytes that encapsulation adds; 0 without a tunnel.
    pub(crate) overhead: u32,
    pub(crate) result: VipProbeResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VipProbeResult {
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
    /// The results of probes, and how many were left out.
    pub fn new(mut probes: Vec<VipProbe>, left_out: u32) -> Self {
        probes.sort_by_key(|probe: &VipProbe| (probe.backend, probe.vip, probe.overhead));
        Self::Done { probes, left_out }
    }

    /// The largest outer packet that reaches a backend in all its probes, bytes; `None`: none was too narrow, or it was
    /// not measured.
    pub(crate) fn path_mtu(&self, backend: IpAddr) -> Option<u32> {
        let Self::Done { probes, .. } = self else { return None };
        probes.iter().filter(|probe| probe.backend == backend).filter_map(VipProbe::path_mtu).min()
    }
}

impl VipProbe {
    pub(crate) const fn is_tunnel(&self) -> bool {
        self.overhead > 0
    }

    pub(crate) fn is_gue(&self) -> bool {
        self.overhead == u32::from(Form::gue(0).overhead(self.backend.is_ipv4()))
    }

    /// The largest outer packet that arrives, bytes; `None`: not measured.
    pub(crate) const fn path_mtu(&self) -> Option<u32> {
        match self.result {
            VipProbeResult::Narrow { fits: Some(fits) } => Some(fits + self.overhead),
            _ => None,
        }
    }

    /// `None`: a result that only a newer daemon knows.
    pub fn from_message(probe: &ProbedWay) -> Option<Self> {
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
