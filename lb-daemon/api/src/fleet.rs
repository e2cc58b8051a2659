//! The calls of `spillway.v1.Fleet`.

use std::time::Duration;

use lb_base::error_chain;
use lb_control::command::{Applied, Stopping};
use lb_inspect::stats;
use lb_model::Name;
use spillway_proto::v1::{
    self, CountBackendPacketsRequest, CountBackendPacketsResponse, ErrorReason,
    GetFleetStatusRequest, JoinFleetRequest, JoinFleetResponse, LeaveFleetRequest,
    LeaveFleetResponse, RemoveFleetMemberRequest, RemoveFleetMemberResponse, RestoreFleetRequest,
    RestoreFleetResponse, fleet_server::Fleet, restore_fleet_request::Source,
};
use tonic::{Code, Request, Response, Status};

use super::{
    access::{caller, may_change, working},
    convert::{self, ApiError, IntoStatus, OrStatus, WrongField, timestamp},
};
use crate::audit::Audit;
use lb_member::{
    Changes, FleetStatus, GroupShares, Join, MemberStatus, Membership, MembershipError, Restore,
    packets_of,
};

/// Most backends whose packets are counted at a time.
const MOST_BACKENDS: usize = 10_000;

/// The service `spillway.v1.Fleet`.
#[derive(Debug)]
pub(super) struct FleetApi {
    changes: Changes,
    counters: stats::Source,
    audit: Audit,
}

impl FleetApi {
    pub(super) fn new(changes: Changes, counters: stats::Source, audit: Audit) -> Self {
        Self { changes, counters, audit }
    }

    fn membership(&self) -> Result<&Membership, Status> {
        self.changes.membership().ok_or_else(|| MembershipError::NoSettings.into_status())
    }

    /// Carries out a change of the membership, and logs it with what became of it. It is carried out to its end, also if the
    /// caller hangs up.
    async fn audited<T: Send + 'static>(
        &self,
        request: String,
        change: impl Future<Output = Result<T, MembershipError>> + Send + 'static,
    ) -> Result<T, Status> {
        let (actor, audit) = (caller().actor, self.audit.clone());
        audit.membership_requested(&actor, &request);
        let work = async move {
            let result = change.await;
            let cause = result.as_ref().err().map(|error| error_chain::message(error));
            audit.membership_changed(&actor, &request, cause.as_deref());
            result
        };
        let done = tokio::spawn(work).await;
        done.map_err(|_| MembershipError::Stopping(Stopping)).or_status()?.or_status()
    }
}

#[tonic::async_trait]
impl Fleet for FleetApi {
    async fn get_fleet_status(
        &self,
        _: Request<GetFleetStatusRequest>,
    ) -> Result<Response<v1::FleetStatus>, Status> {
        let membership = self.changes.membership();
        let settings = membership.and_then(Membership::settings);
        let text = |name: Option<&Name>| name.map(ToString::to_string).unwrap_or_default();
        let mut answer = v1::FleetStatus {
            fleet: text(settings.map(|it| &it.fleet)),
            balancer: text(settings.map(|it| &it.name)),
            insecure: settings.is_some_and(|it| it.tls.is_none()),
            ..v1::FleetStatus::default()
        };
        // Also before it takes part, as while its address is not free.
        answer.member = membership.is_some_and(Membership::is_member);
        if let Some(member) = membership.and_then(Membership::member) {
            let mut status = member.status();
            member.name_differing_pools(&mut status).await;
            fill(&mut answer, &status);
        }
        Ok(Response::new(answer))
    }

    async fn join_fleet(
        &self,
        request: Request<JoinFleetRequest>,
    ) -> Result<Response<JoinFleetResponse>, Status> {
        let JoinFleetRequest { replace_configuration, validate_only, new_fleet } =
            request.into_inner();
        may_change(validate_only)?;
        let _at_work = working().await;
        let membership = self.membership()?.clone();
        let join = Join {
            replace: replace_configuration,
            is_new_fleet: new_fleet,
            dry_run: validate_only,
        };
        let join = async move { membership.join(join).await };
        let joined = match validate_only {
            true => join.await.or_status()?,
            false => self.audited("join of the fleet".into(), join).await?,
        };
        Ok(Response::new(JoinFleetResponse {
            joined: joined.is_member,
            founded: joined.founded,
            generation: joined.generation,
            changes: joined.changes.as_ref().map(convert::applied),
            replaces_configuration: joined.replaces,
        }))
    }

    async fn leave_fleet(
        &self,
        request: Request<LeaveFleetRequest>,
    ) -> Result<Response<LeaveFleetResponse>, Status> {
        let LeaveFleetRequest { abandon, validate_only } = request.into_inner();
        may_change(validate_only)?;
        let _at_work = working().await;
        let membership = self.membership()?.clone();
        let actor = caller().actor;
        let leave = async move { membership.leave(abandon, validate_only, actor).await };
        let abandoned = match validate_only {
            true => leave.await.or_status()?,
            false => self.audited("leave of the fleet".into(), leave).await?,
        };
        Ok(Response::new(LeaveFleetResponse { abandoned }))
    }

    async fn remove_fleet_member(
        &self,
        request: Request<RemoveFleetMemberRequest>,
    ) -> Result<Response<RemoveFleetMemberResponse>, Status> {
        let RemoveFleetMemberRequest { name, validate_only } = request.into_inner();
        may_change(validate_only)?;
        let name = Name::new(&name).map_err(|error| WrongField::new("name", error.to_string()))?;
        let _at_work = working().await;
        let membership = self.membership()?.clone();
        let request = format!("removal of balancer {name}");
        let remove = async move { membership.remove(&name, validate_only).await };
        match validate_only {
            true => remove.await.or_status()?,
            false => self.audited(request, remove).await?,
        }
        Ok(Response::new(RemoveFleetMemberResponse {}))
    }

    async fn restore_fleet(
        &self,
        request: Request<RestoreFleetRequest>,
    ) -> Result<Response<RestoreFleetResponse>, Status> {
        let RestoreFleetRequest { source, validate_only, force } = request.into_inner();
        may_change(validate_only)?;
        let from_etcd = match source {
            Some(Source::ThisBalancer(true)) => false,
            Some(Source::Etcd(true)) => true,
            _ => return Err(WrongField::new("source", "must be this_balancer or etcd").into()),
        };
        let _at_work = working().await;
        let membership = self.membership()?.clone();
        let restore = Restore { from_etcd, dry_run: validate_only, force };
        let restore = async move { membership.restore(restore).await };
        let (generation, applied): (u64, Applied) = match validate_only {
            true => restore.await.or_status()?,
            false => self.audited("restore of the fleet".into(), restore).await?,
        };
        let changes = Some(convert::applied(&applied));
        Ok(Response::new(RestoreFleetResponse { generation, changes }))
    }

    async fn count_backend_packets(
        &self,
        request: Request<CountBackendPacketsRequest>,
    ) -> Result<Response<CountBackendPacketsResponse>, Status> {
        let CountBackendPacketsRequest { backends } = request.into_inner();
        if backends.is_empty() || backends.len() > MOST_BACKENDS {
            let cause = format!("must have 1 to {MOST_BACKENDS} addresses");
            return Err(WrongField::new("backends", cause).into());
        }
        let _at_work = working().await;
        let counters = self.counters.clone();
        let own = packets_of(counters, backends.clone()).await.map_err(|cause| {
            ApiError::new(Code::Unavailable, ErrorReason::MapsUnreadable, cause)
        })?;
        let Some(member) = self.changes.membership().and_then(Membership::member) else {
            let own = v1::BalancerPackets { balancer: String::new(), packets: own };
            let balancers = vec![own];
            return Ok(Response::new(CountBackendPacketsResponse {
                balancers,
                unanswered: vec![],
            }));
        };
        let mut answer = CountBackendPacketsResponse::default();
        let own = v1::BalancerPackets { balancer: member.name().to_string(), packets: own };
        answer.balancers.push(own);
        for (name, counted) in member.count_packets(&backends).await {
            match counted {
                Ok(packets) => {
                    let balancer = name.to_string();
                    answer.balancers.push(v1::BalancerPackets { balancer, packets });
                }
                Err(cause) => answer.unanswered.push(format!("{name}: {cause}")),
            }
        }
        Ok(Response::new(answer))
    }
}

fn fill(answer: &mut v1::FleetStatus, status: &FleetStatus) {
    if let Some((problem, since)) = &status.etcd_problem {
        answer.etcd_problem.clone_from(problem);
        answer.etcd_problem_since = since.map(timestamp);
    }
    answer.conflict = status.conflict.clone().unwrap_or_default();
    answer.revision = status.revision;
    answer.generation = status.generation;
    answer.epoch = status.epoch;
    answer.epoch_open = status.epoch_open;
    answer.revision_in_force = status.revision_in_force;
    answer.schema_revision = status.schema.unwrap_or_default();
    answer.being_forgotten = status.being_forgotten.iter().map(ToString::to_string).collect();
    answer.members = status.members.iter().map(|(name, it)| member(name, it)).collect();
    answer.groups = status.groups.iter().map(|(group, it)| shared_group(group, it)).collect();
}

fn member(name: &Name, status: &MemberStatus) -> v1::FleetMember {
    let liveness = status.liveness.clone().unwrap_or_default();
    v1::FleetMember {
        name: name.to_string(),
        address: status.member.address.to_string(),
        region: status.member.region.as_ref().map(ToString::to_string).unwrap_or_default(),
        alive: status.is_alive,
        version: status.version.clone(),
        revision: liveness.revision,
        generation: liveness.generation,
        ready: status.is_ready,
        tables: status.digest.clone(),
        differing_pools: status.differing_pools.iter().map(ToString::to_string).collect(),
        conditions: status.conditions.clone(),
        heard_ms_ago: status.heard_ago.map(milliseconds),
        peer_problem: status.peer_problem.clone().unwrap_or_default(),
        schema_revision: status.schema,
        tables_agree: status.tables_agree,
        not_ready_cause: status.not_ready.clone(),
        compared_with: status.compared_with.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn shared_group((pool, region): &(Name, Name), shares: &GroupShares) -> v1::SharedGroup {
    let (capacity, in_flight) = (shares.capacity_per_second(), shares.in_flight.fraction());
    let capacity_unknown = shares.capacity.is_none();
    let shares = shares.shares.iter().map(|(name, (parts, demand))| v1::GroupShare {
        balancer: name.to_string(),
        portion: parts.fraction(),
        demand_per_second: *demand,
    });
    v1::SharedGroup {
        pool: pool.to_string(),
        region: region.to_string(),
        capacity_per_second: capacity,
        shares: shares.collect(),
        in_flight,
        capacity_unknown,
    }
}

impl IntoStatus for MembershipError {
    fn into_status(self) -> Status {
        let message = error_chain::message(&self);
        let error = |code, reason| ApiError::new(code, reason, message.clone());
        let membership = || error(Code::FailedPrecondition, ErrorReason::FleetMembership);
        match self {
            Self::Refused(refusal) => return refusal.into_status(),
            Self::Stopping(stopping) => return stopping.into_status(),
            Self::NoSettings => membership().hint(
                "add the table [fleet] to the settings and restart the daemon; \
                 /usr/share/doc/spillway/docs/fleet.md has an example",
            ),
            Self::Settings(_) => membership()
                .hint("nothing was changed; correct the table [fleet] of the settings and restart the daemon"),
            Self::Unanswered { .. } => error(Code::Unavailable, ErrorReason::FleetUnavailable)
                .hint("nothing was changed; see `etcd` and the files in the table [fleet] of the settings"),
            Self::NotLeft(_) => error(Code::Unavailable, ErrorReason::FleetUnavailable).hint(
                "this balancer is a member still; try again, or leave with --abandon, as if it had died",
            ),
            Self::SilentDisk { .. } => error(Code::Unavailable, ErrorReason::FleetUnavailable)
                .hint("repeat the command once the disk answers"),
            Self::IsMember(_) => membership().hint("`spillway fleet status` shows the fleet"),
            Self::NoMember => membership().hint("`spillway fleet join` makes it one"),
            Self::NotStarted => membership().hint(
                "`spillway status` says why; `spillway fleet leave --abandon` leaves without that",
            ),
            Self::NameInUse(..) => membership().hint(
                "give this balancer another name in [fleet], or stop the daemon of the other host",
            ),
            Self::OtherFleets(..) => membership().hint(
                "nothing was changed; correct `name` in [fleet] and restart the daemon, or found one more fleet by \
                 `spillway fleet join --new`",
            ),
            Self::Unknown(name) => {
                ApiError::not_found(message.clone(), "balancer", name.as_str(), "")
            }
            Self::IsThis(_) => membership(),
            Self::Conflict(_) => membership()
                .hint("nothing was changed; `spillway fleet status` shows the balancers"),
            Self::Etcd(_) => error(Code::Unavailable, ErrorReason::FleetUnavailable),
            Self::Record(_) => error(Code::Internal, ErrorReason::StoreFailed),
            Self::Start(_) => error(Code::Internal, ErrorReason::FleetMembership)
                .hint("this balancer is no member; the log may say more"),
            Self::Incomplete(_) => error(Code::Internal, ErrorReason::FleetBehind),
        }
        .into()
    }
}
