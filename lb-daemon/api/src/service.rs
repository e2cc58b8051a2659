//! The calls of `spillway.v1.Spillway`.

use std::net::IpAddr;

use spillway_proto::v1::{
    ApplyRequest, ApplyResponse, BackendHistoryRequest, BackendHistoryResponse, BackendStatus,
    CaptureRequest, CaptureResponse, Configuration, DiffGenerationsRequest,
    DiffGenerationsResponse, ErrorReason, ExplainRequest, ExplainResponse, ExportRequest,
    ExportResponse, GetBackendStatusRequest, ListGenerationsRequest, ListGenerationsResponse,
    ProbeVipsRequest, ProbeVipsResponse, RegionsRequest, RegionsResponse, ReloadRequest,
    ReloadResponse, RollbackRequest, RollbackResponse, StatsRequest, StatsResponse, StatusRequest,
    StatusResponse, TableRequest, TableResponse, WatchRequest, WatchResponse,
    spillway_server::Spillway,
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Request, Response, Status, codegen::BoxStream};

use super::{
    access::{caller, may_change, working},
    convert::{self, ApiError, IntoStatus, OrStatus, WrongField},
    server::Handles,
};
use crate::{audit::Audit, capture::Captures, reload::Reloads, vip_probe::VipProber};
use lb_base::error_chain;
use lb_config::Reason;
use lb_control::command::{Apply, Commands, Refusal};
use lb_inspect::{
    explain, message,
    pool_tables::{self, TablesError},
    stats,
};
use lb_member::Changes;
use lb_model::unserved::{self, UnservedDecision};
use lb_publish::publisher::FollowedHost;
use lb_store::{Revision, SchemaMismatch};

/// The service `spillway.v1.Spillway`.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) commands: Commands,
    pub(super) changes: Changes,
    counters: stats::Source,
    captures: Captures,
    vip_prober: VipProber,
    reloads: Reloads,
    pub(super) audit: Audit,
    host: FollowedHost,
}

impl Api {
    pub(super) fn new(handles: Handles, stop: CancellationToken) -> Self {
        let Handles { changes, audit, counters, tunnels, reloads, host } = handles;
        let commands = changes.commands().clone();
        let captures = Captures::new(counters.bpffs.clone(), audit.clone(), stop.clone());
        let vip_prober = VipProber::new(commands.clone(), tunnels, audit.clone(), stop);
        Self { commands, changes, counters, captures, vip_prober, reloads, audit, host }
    }

    /// What follows from the configuration in force and this host for packets that no service of a VIP takes; `None`: there is
    /// no configuration that could be in force.
    async fn unserved(&self, vip: IpAddr) -> Option<UnservedDecision> {
        let exported = self.commands.export().await.ok()?;
        let is_in_force = exported.generation > 0 && exported.unusable.is_none();
        is_in_force.then(|| unserved::decide(&exported.configuration.vips, &self.host.now(), vip))
    }
}

#[tonic::async_trait]
impl Spillway for Api {
    async fn apply(
        &self,
        request: Request<ApplyRequest>,
    ) -> Result<Response<ApplyResponse>, Status> {
        let ApplyRequest {
            configuration,
            validate_only: dry_run,
            expected_generation,
            schema_revision,
            any_schema,
            reason,
            force,
        } = request.into_inner();
        may_change(dry_run)?;
        let reason = self::reason(&reason)?;
        let schema = Revision::new(schema_revision);
        let message = configuration.unwrap_or_default();
        let (actor, request) = (caller().actor, describe(&message));
        let configuration = lb_config::validate(&message).map_err(|invalid| {
            if !dry_run {
                self.audit.refused(&actor, &request, &invalid.to_string());
            }
            // The configuration may only be invalid without the fields of a newer schema, which this daemon does not know.
            match SchemaMismatch::check_client(schema, Revision::CURRENT) {
                Err(newer @ SchemaMismatch::NewerClient { .. }) if !any_schema => {
                    Refusal::Schema(newer).into_status()
                }
                _ => invalid.into_status(),
            }
        })?;
        drop(message);
        let apply = Apply {
            configuration,
            dry_run,
            expected_generation,
            schema,
            any_schema,
            actor,
            request,
            reason,
            force,
            ..Apply::default()
        };
        let at_work = working().await;
        let applied = self.audit.apply(&self.changes, apply).await.or_status()?.or_status()?;
        drop(at_work);
        let applied = self.changes.with_balancers(applied, dry_run).await;
        Ok(Response::new(ApplyResponse { result: Some(convert::applied(&applied)) }))
    }

    async fn export(&self, _: Request<ExportRequest>) -> Result<Response<ExportResponse>, Status> {
        let _at_work = working().await;
        let exported = self.commands.export().await.or_status()?;
        let mut answer = convert::exported(&exported).or_status()?;
        if let Some(configuration) =
            answer.configuration.as_mut().filter(|_| !caller().sees_hash_key())
        {
            configuration.hash_key.clear();
        }
        Ok(Response::new(answer))
    }

    async fn list_generations(
        &self,
        _: Request<ListGenerationsRequest>,
    ) -> Result<Response<ListGenerationsResponse>, Status> {
        Ok(Response::new(self.generations().await?))
    }

    async fn diff_generations(
        &self,
        request: Request<DiffGenerationsRequest>,
    ) -> Result<Response<DiffGenerationsResponse>, Status> {
        Ok(Response::new(self.difference(request.into_inner()).await?))
    }

    async fn rollback(
        &self,
        request: Request<RollbackRequest>,
    ) -> Result<Response<RollbackResponse>, Status> {
        Ok(Response::new(self.roll_back(request.into_inner()).await?))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        // `WithAllBackends` answers this one and `watch` before.
        Err(Status::unimplemented("Status"))
    }

    async fn get_backend_status(
        &self,
        request: Request<GetBackendStatusRequest>,
    ) -> Result<Response<BackendStatus>, Status> {
        let GetBackendStatusRequest { pool, address } = request.into_inner();
        let _at_work = working().await;
        let status = self.commands.backend(pool, address).await.or_status()?.or_status()?;
        Ok(Response::new(convert::backend(&status)))
    }

    async fn regions(
        &self,
        request: Request<RegionsRequest>,
    ) -> Result<Response<RegionsResponse>, Status> {
        let pool = Some(request.into_inner().pool).filter(|pool| !pool.is_empty());
        let _at_work = working().await;
        let regions = self.commands.regions(pool).await.or_status()?.or_status()?;
        Ok(Response::new(convert::regions(&regions)))
    }

    async fn backend_history(
        &self,
        request: Request<BackendHistoryRequest>,
    ) -> Result<Response<BackendHistoryResponse>, Status> {
        let BackendHistoryRequest { pool, address } = request.into_inner();
        let address = Some(address).filter(|address| !address.is_empty());
        let _at_work = working().await;
        let histories = self.commands.history(pool, address).await.or_status()?.or_status()?;
        let backends = histories.iter().map(convert::history).collect();
        Ok(Response::new(BackendHistoryResponse { backends }))
    }

    async fn watch(
        &self,
        _: Request<WatchRequest>,
    ) -> Result<Response<BoxStream<WatchResponse>>, Status> {
        Err(Status::unimplemented("Watch"))
    }

    async fn capture(
        &self,
        request: Request<CaptureRequest>,
    ) -> Result<Response<BoxStream<CaptureResponse>>, Status> {
        let filter = convert::capture_filter(request.get_ref())?;
        let events = self.captures.begin(filter, caller())?;
        Ok(Response::new(convert::capture_stream(events)))
    }

    async fn probe_vips(
        &self,
        request: Request<ProbeVipsRequest>,
    ) -> Result<Response<BoxStream<ProbeVipsResponse>>, Status> {
        let (selection, size) = convert::probe_request(request.into_inner())?;
        let _at_work = working().await;
        let events = self.vip_prober.begin(selection, size, caller().actor).await?;
        Ok(Response::new(convert::probe_vips_stream(events)))
    }

    async fn reload(
        &self,
        request: Request<ReloadRequest>,
    ) -> Result<Response<ReloadResponse>, Status> {
        let ReloadRequest { force } = request.into_inner();
        let _at_work = working().await;
        self.audit.reload_requested(&caller().actor, force);
        Ok(Response::new(self.reloads.request(force).await.or_status()?.try_into()?))
    }

    async fn stats(&self, _: Request<StatsRequest>) -> Result<Response<StatsResponse>, Status> {
        let _at_work = working().await;
        let counters = self.counters.clone();
        let read = tokio::task::spawn_blocking(move || counters.read()).await;
        match read {
            Ok(Ok(stats)) => Ok(Response::new(stats.into())),
            Ok(Err(error)) => {
                Err(unreadable(&format!("the counters: {}", error_chain::message(&error))))
            }
            Err(error) => Err(internal(&format!("the counters: {error}"))),
        }
    }

    async fn explain(
        &self,
        request: Request<ExplainRequest>,
    ) -> Result<Response<ExplainResponse>, Status> {
        let flow = convert::flow(request.get_ref())?;
        let stats::Source { bpffs, state_directory } = self.counters.clone();
        let _at_work = working().await;
        let read = move || explain::explain_pinned(&bpffs, &state_directory, &flow);
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok((generation, mut explanation))) => {
                if explanation.unserved.is_some()
                    && let Some(decision) = self.unserved(flow.vip()).await
                {
                    explanation.add_cause(&flow, decision);
                }
                Ok(Response::new(message::explained(&explanation, generation)))
            }
            Ok(Err(error)) => {
                Err(unreadable(&format!("the maps: {}", error_chain::message(&error))))
            }
            Err(error) => Err(internal(&format!("the maps: {error}"))),
        }
    }

    async fn table(
        &self,
        request: Request<TableRequest>,
    ) -> Result<Response<TableResponse>, Status> {
        let pool = Some(request.into_inner().pool).filter(|pool| !pool.is_empty());
        let stats::Source { bpffs, state_directory } = self.counters.clone();
        let _at_work = working().await;
        let read = move || pool_tables::read_pinned(&bpffs, &state_directory, pool.as_deref());
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok((generation, pools))) => Ok(Response::new(message::tables(pools, generation))),
            Ok(Err(TablesError::NoPool(no_pool))) => Err(no_pool.into_status()),
            Ok(Err(TablesError::Maps(error))) => {
                Err(unreadable(&format!("the maps: {}", error_chain::message(&error))))
            }
            Err(error) => Err(internal(&format!("the maps: {error}"))),
        }
    }
}

fn unreadable(message: &str) -> Status {
    ApiError::new(Code::Unavailable, ErrorReason::MapsUnreadable, message).into()
}

fn internal(message: &str) -> Status {
    ApiError::new(Code::Internal, ErrorReason::Internal, message).into()
}

/// The reason that a request gives.
pub(super) fn reason(text: &str) -> Result<Reason, WrongField> {
    Reason::new(text).map_err(|error| WrongField::new("reason", error.to_string()))
}

/// Describes a configuration for the audit log.
fn describe(configuration: &Configuration) -> String {
    let backends: usize = configuration.pools.iter().map(|pool| pool.backends.len()).sum();
    format!(
        "a configuration: services {}, pools {}, backends {backends}",
        configuration.services.len(),
        configuration.pools.len(),
    )
}
