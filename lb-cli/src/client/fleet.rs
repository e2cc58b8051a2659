//! Calls of `spillway.v1.Fleet`, and refusals that a fleet or its etcd causes.

use std::collections::{BTreeMap, BTreeSet};

use lb_config::HINT_TRAILER;
use spillway_proto::v1::{
    BalancerPackets, CountBackendPacketsRequest, ErrorReason, FleetStatus, GetFleetStatusRequest,
    JoinFleetRequest, JoinFleetResponse, LeaveFleetRequest, LeaveFleetResponse,
    RemoveFleetMemberRequest, RestoreFleetRequest, RestoreFleetResponse,
};
use tokio::time::timeout;
use tonic::Status;

use super::{CHANGE_TIMEOUT, DaemonClient, MAX_PAGE, READ_TIMEOUT, error_reason};
use crate::failure::{Exit, Failure};

/// Packets that balancers sent to backends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BackendPackets {
    /// By balancer, then by address. The name of a balancer that is no member of a fleet is empty.
    pub(crate) balancers: BTreeMap<String, BTreeMap<String, u64>>,
    /// Live balancers that did not answer, each with the cause: `lb-2: connection refused`.
    pub(crate) unanswered: BTreeSet<String>,
}

impl BackendPackets {
    /// Adds what one balancer answered about these addresses.
    fn add(&mut self, addresses: &[String], answer: BalancerPackets) {
        let balancer = self.balancers.entry(answer.balancer).or_default();
        balancer.extend(addresses.iter().cloned().zip(answer.packets));
    }
}

impl DaemonClient {
    pub(crate) async fn fleet_status(&mut self) -> Result<FleetStatus, Failure> {
        let request = GetFleetStatusRequest {};
        let answer = timeout(READ_TIMEOUT, self.fleet.get_fleet_status(request)).await;
        self.answer(answer)
    }

    pub(crate) async fn join_fleet(
        &mut self,
        request: JoinFleetRequest,
    ) -> Result<JoinFleetResponse, Failure> {
        let answer = timeout(CHANGE_TIMEOUT, self.fleet.join_fleet(request)).await;
        self.answer(answer)
    }

    pub(crate) async fn leave_fleet(
        &mut self,
        request: LeaveFleetRequest,
    ) -> Result<LeaveFleetResponse, Failure> {
        let answer = timeout(CHANGE_TIMEOUT, self.fleet.leave_fleet(request)).await;
        self.answer(answer)
    }

    pub(crate) async fn remove_fleet_member(
        &mut self,
        request: RemoveFleetMemberRequest,
    ) -> Result<(), Failure> {
        let answer = timeout(CHANGE_TIMEOUT, self.fleet.remove_fleet_member(request)).await;
        self.answer(answer).map(drop)
    }

    pub(crate) async fn restore_fleet(
        &mut self,
        request: RestoreFleetRequest,
    ) -> Result<RestoreFleetResponse, Failure> {
        let answer = timeout(CHANGE_TIMEOUT, self.fleet.restore_fleet(request)).await;
        self.answer(answer)
    }

    /// Packets to these backends, over all live balancers of the fleet.
    pub(crate) async fn count_backend_packets(
        &mut self,
        addresses: &BTreeSet<String>,
    ) -> Result<BackendPackets, Failure> {
        let addresses: Vec<_> = addresses.iter().cloned().collect();
        let mut all = BackendPackets::default();
        // The daemon takes as many at once as there are in a page.
        for page in addresses.chunks(MAX_PAGE as usize) {
            let request = CountBackendPacketsRequest { backends: page.to_vec() };
            let answer = timeout(READ_TIMEOUT, self.fleet.count_backend_packets(request)).await;
            let answer = self.answer(answer)?;
            answer.balancers.into_iter().for_each(|balancer| all.add(page, balancer));
            all.unanswered.extend(answer.unanswered);
        }
        Ok(all)
    }
}

/// The failure for a refusal that the fleet or its etcd causes; `None`: the status is of another kind.
pub(super) fn failure(status: &Status) -> Option<Failure> {
    let (exit, hint) = match error_reason(status)? {
        ErrorReason::FleetMembership => (
            Exit::Conflict,
            "nothing was changed; `spillway fleet status` says whether this balancer is a member of a fleet",
        ),
        ErrorReason::FleetConflict => (
            Exit::Conflict,
            "nothing was changed; `spillway fleet restore` decides which configuration the fleet has",
        ),
        ErrorReason::FleetUnavailable => (
            Exit::Unavailable,
            "nothing was changed; `spillway fleet status` shows what is wrong with etcd: try again once it answers",
        ),
        ErrorReason::FleetUnknown => (
            Exit::Unavailable,
            "it is unknown whether the change was made; the same command may be repeated once etcd answers, see \
             `spillway fleet status`",
        ),
        ErrorReason::FleetBehind => (
            Exit::Failure,
            "the change is committed, and this balancer keeps trying to put it in force; see `spillway fleet status`",
        ),
        _ => return None,
    };
    let trailer = status.metadata().get(HINT_TRAILER).and_then(|hint| hint.to_str().ok());
    let failure = Failure::new(exit, status.message()).hint(trailer.unwrap_or(hint));
    Some(Failure { is_of_fleet: true, ..failure })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::Code;
    use tonic_types::{ErrorDetails, StatusExt as _};

    use super::*;

    fn refusal(domain: &str, reason: &str) -> Status {
        let details = ErrorDetails::with_error_info(reason, domain, HashMap::new());
        Status::with_error_details(Code::Unavailable, "etcd: no leader", details)
    }

    #[test]
    fn the_reason_decides_the_exit_status() {
        let exit = |reason| {
            let failure = failure(&refusal("spillway", reason)).unwrap();
            assert_eq!(failure.message, "etcd: no leader");
            assert!(failure.is_of_fleet && failure.hint.is_some(), "{failure}");
            failure.exit
        };
        assert_eq!(exit("FLEET_MEMBERSHIP"), Exit::Conflict);
        assert_eq!(exit("FLEET_CONFLICT"), Exit::Conflict);
        assert_eq!(exit("FLEET_UNAVAILABLE"), Exit::Unavailable);
        assert_eq!(exit("FLEET_UNKNOWN"), Exit::Unavailable);
        assert_eq!(exit("FLEET_BEHIND"), Exit::Failure);
        for (domain, reason) in
            [("spillway", "BUSY"), ("spillway", "NEWER"), ("other", "FLEET_CONFLICT")]
        {
            assert_eq!(failure(&refusal(domain, reason)), None, "{domain} {reason}");
        }
        assert_eq!(failure(&Status::unavailable("gone")), None);
    }

    #[test]
    fn the_hint_of_the_daemon_wins() {
        let mut status = refusal("spillway", "FLEET_CONFLICT");
        status.metadata_mut().insert(HINT_TRAILER, "do this".parse().unwrap());
        assert_eq!(failure(&status).unwrap().hint.as_deref(), Some("do this"));
    }

    #[test]
    fn pages_of_addresses_are_put_together_by_balancer() {
        let addresses = ["10.0.0.1", "10.0.0.2"].map(str::to_owned);
        let answer = |packets| BalancerPackets { balancer: "lb-1".into(), packets };
        let mut all = BackendPackets::default();
        all.add(&addresses[..1], answer(vec![7]));
        all.add(&addresses[1..], answer(vec![8]));
        let expected = BTreeMap::from([("10.0.0.1".into(), 7), ("10.0.0.2".into(), 8)]);
        assert_eq!(all.balancers, BTreeMap::from([("lb-1".into(), expected)]));
    }
}
