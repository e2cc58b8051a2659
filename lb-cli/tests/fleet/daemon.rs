//! A fake daemon that is a balancer of a fleet, on a socket of its own.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
};

use futures::stream;
use spillway_proto::v1::{
    self,
    fleet_server::{Fleet, FleetServer},
    spillway_server::{Spillway, SpillwayServer},
};
use tokio::{net::UnixListener, sync::oneshot};
use tonic::{Code, Request, Response, Status, codegen::BoxStream, transport::Server};
use tonic_types::{ErrorDetails, StatusExt as _};

/// What it answers, and what it was asked.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) status: v1::FleetStatus,
    /// Number of questions for the status after which all balancers have the generation of the fleet; `None`: never.
    pub(crate) catches_up_after: Option<usize>,
    /// What it changes at this balancer to join.
    pub(crate) join_changes: Vec<v1::Change>,
    /// Reason and hint with which it refuses changes; `None`: it takes them.
    pub(crate) refusal: Option<(Code, &'static str, Option<&'static str>)>,
    /// Changes that were asked for, as `join`, or `join (dry run)`.
    pub(crate) changes: Vec<String>,
    pub(crate) status_calls: usize,
}

/// A daemon that serves until it is dropped.
pub(crate) struct Daemon {
    pub(crate) socket: PathBuf,
    state: Shared,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

impl Daemon {
    pub(crate) fn start(state: State) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("spillwayd.sock");
        let state = Shared(Arc::new(Mutex::new(state)));
        let (stop, stopped) = oneshot::channel::<()>();
        // It listens before anybody connects.
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let services = (FleetServer::new(state.clone()), SpillwayServer::new(state.clone()));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = UnixListener::from_std(listener).unwrap();
                let accept = async |listener: UnixListener| {
                    let accepted = listener.accept().await.map(|(stream, _)| stream);
                    Some((accepted, listener))
                };
                let incoming = Box::pin(stream::unfold(listener, accept));
                let serve = Server::builder()
                    .add_service(services.0)
                    .add_service(services.1)
                    .serve_with_incoming(incoming);
                // A client that is still connected does not hold it up.
                tokio::select! {
                    served = serve => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        let (stop, thread) = (Some(stop), Some(thread));
        Self { socket, state, stop, thread, _directory: directory }
    }

    /// The changes that it was asked for since the last time.
    pub(crate) fn changes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.0.lock().unwrap().changes)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A refusal with a reason for programs, and perhaps a hint for people.
fn refusal(code: Code, reason: &str, hint: Option<&str>) -> Status {
    let details = ErrorDetails::with_error_info(reason, "spillway", HashMap::new());
    let mut status = Status::with_error_details(code, "the fleet says no", details);
    if let Some(hint) = hint {
        status.metadata_mut().insert(lb_config::HINT_TRAILER, hint.parse().unwrap());
    }
    status
}

impl Shared {
    /// Notes a change that it is asked for; refuses it if it has to.
    fn change(&self, what: impl Into<String>, dry_run: bool) -> Result<State, Status> {
        let mut state = self.0.lock().unwrap();
        let dry_run = if dry_run { " (dry run)" } else { "" };
        let what = what.into();
        state.changes.push(format!("{what}{dry_run}"));
        if let Some((code, reason, hint)) = state.refusal {
            return Err(refusal(code, reason, hint));
        }
        let (status, join_changes) = (state.status.clone(), state.join_changes.clone());
        Ok(State { status, join_changes, ..State::default() })
    }
}

impl Shared {
    /// The answer to a change of nothing.
    fn apply_result(&self, what: &str, dry_run: bool) -> Result<v1::ApplyResult, Status> {
        let state = self.change(what, dry_run)?;
        let balancer = |it: &v1::FleetMember| v1::BalancerGeneration {
            balancer: it.name.clone(),
            generation: it.generation,
        };
        Ok(v1::ApplyResult {
            generation: state.status.generation,
            balancers: state.status.members.iter().map(balancer).collect(),
            ..v1::ApplyResult::default()
        })
    }
}

#[tonic::async_trait]
impl Fleet for Shared {
    async fn get_fleet_status(
        &self,
        _: Request<v1::GetFleetStatusRequest>,
    ) -> Result<Response<v1::FleetStatus>, Status> {
        let mut state = self.0.lock().unwrap();
        state.status_calls += 1;
        if state.catches_up_after.is_some_and(|calls| state.status_calls > calls) {
            let generation = state.status.generation;
            state.status.members.iter_mut().for_each(|it| it.generation = generation);
        }
        Ok(Response::new(state.status.clone()))
    }

    async fn join_fleet(
        &self,
        request: Request<v1::JoinFleetRequest>,
    ) -> Result<Response<v1::JoinFleetResponse>, Status> {
        let v1::JoinFleetRequest { replace_configuration, validate_only, new_fleet } =
            request.into_inner();
        let replace = if replace_configuration { ", replace" } else { "" };
        let new = if new_fleet { ", new" } else { "" };
        let what = format!("join{replace}{new}");
        let state = self.change(what, validate_only)?;
        let differs = !state.join_changes.is_empty();
        let generation = state.status.generation;
        let changes = v1::ApplyResult {
            generation,
            changes: state.join_changes,
            ..v1::ApplyResult::default()
        };
        Ok(Response::new(v1::JoinFleetResponse {
            joined: !validate_only && (replace_configuration || !differs),
            founded: false,
            generation,
            changes: Some(changes),
            replaces_configuration: differs,
        }))
    }

    async fn leave_fleet(
        &self,
        request: Request<v1::LeaveFleetRequest>,
    ) -> Result<Response<v1::LeaveFleetResponse>, Status> {
        let v1::LeaveFleetRequest { abandon, validate_only } = request.into_inner();
        self.change(if abandon { "abandon" } else { "leave" }, validate_only)?;
        Ok(Response::new(v1::LeaveFleetResponse { abandoned: abandon && !validate_only }))
    }

    async fn remove_fleet_member(
        &self,
        request: Request<v1::RemoveFleetMemberRequest>,
    ) -> Result<Response<v1::RemoveFleetMemberResponse>, Status> {
        let v1::RemoveFleetMemberRequest { name, validate_only } = request.into_inner();
        let state = self.change(format!("remove {name}"), validate_only)?;
        match state.status.members.iter().any(|it| it.name == name) {
            true => Ok(Response::new(v1::RemoveFleetMemberResponse {})),
            false => Err(Status::not_found(format!("balancer {name} is not a member"))),
        }
    }

    async fn restore_fleet(
        &self,
        request: Request<v1::RestoreFleetRequest>,
    ) -> Result<Response<v1::RestoreFleetResponse>, Status> {
        use v1::restore_fleet_request::Source;
        let v1::RestoreFleetRequest { source, validate_only, force } = request.into_inner();
        let source = match source {
            Some(Source::ThisBalancer(true)) => "this",
            Some(Source::Etcd(true)) => "etcd",
            _ => "nothing",
        };
        let forced = if force { " with force" } else { "" };
        let state = self.change(format!("restore {source}{forced}"), validate_only)?;
        let generation = state.status.generation + 1;
        let changes = Some(v1::ApplyResult { generation, ..v1::ApplyResult::default() });
        Ok(Response::new(v1::RestoreFleetResponse { generation, changes }))
    }

    async fn count_backend_packets(
        &self,
        _: Request<v1::CountBackendPacketsRequest>,
    ) -> Result<Response<v1::CountBackendPacketsResponse>, Status> {
        Err(Status::unimplemented("not of this fake"))
    }
}

/// `Spillway` with apply and rollback, and nothing else.
macro_rules! spillway {
    ($($call:ident $request:ident $response:ident;)*
     $(=> $stream_call:ident $stream_request:ident $item:ident;)*) => {
        #[tonic::async_trait]
        impl Spillway for Shared {
            async fn apply(
                &self,
                request: Request<v1::ApplyRequest>,
            ) -> Result<Response<v1::ApplyResponse>, Status> {
                let result = self.apply_result("apply", request.into_inner().validate_only)?;
                Ok(Response::new(v1::ApplyResponse { result: Some(result) }))
            }

            async fn rollback(
                &self,
                request: Request<v1::RollbackRequest>,
            ) -> Result<Response<v1::RollbackResponse>, Status> {
                let result = self.apply_result("rollback", request.into_inner().validate_only)?;
                Ok(Response::new(v1::RollbackResponse { result: Some(result) }))
            }

            $(async fn $call(
                &self,
                _: Request<v1::$request>,
            ) -> Result<Response<v1::$response>, Status> {
                Err(Status::unimplemented("not of this fake"))
            })*

            $(async fn $stream_call(
                &self,
                _: Request<v1::$stream_request>,
            ) -> Result<Response<BoxStream<v1::$item>>, Status> {
                Err(Status::unimplemented("not of this fake"))
            })*
        }
    };
}

spillway! {
    export ExportRequest ExportResponse;
    list_generations ListGenerationsRequest ListGenerationsResponse;
    diff_generations DiffGenerationsRequest DiffGenerationsResponse;
    status StatusRequest StatusResponse;
    get_backend_status GetBackendStatusRequest BackendStatus;
    regions RegionsRequest RegionsResponse;
    stats StatsRequest StatsResponse;
    explain ExplainRequest ExplainResponse;
    table TableRequest TableResponse;
    backend_history BackendHistoryRequest BackendHistoryResponse;
    reload ReloadRequest ReloadResponse;
    => watch WatchRequest WatchResponse;
    => capture CaptureRequest CaptureResponse;
    => probe_vips ProbeVipsRequest ProbeVipsResponse;
}
