//! The calls of `spillway.v1.Spillway`, each a command.

use spillway_proto::v1::{
    ApplyRequest, ApplyResponse, BackendHistoryRequest, BackendHistoryResponse, CaptureRequest,
    ExplainRequest, ExplainResponse, ExportRequest, ExportResponse, ProbeRequest, RegionsRequest,
    RegionsResponse, StatsRequest, StatsResponse, StatusRequest, StatusResponse, WatchRequest,
    spillway_server::Spillway,
};
use tonic::{Request, Response, Status};

use super::{
    access::caller,
    capture::{self, CaptureStream},
    convert,
    probe::{self, ProbeStream},
    watch::{self, WatchStream},
};
use crate::{
    audit::Audit,
    capture::Captures,
    causes,
    command::{Apply, Commands},
    explain,
    health::{Tunnels, reach::Reaches},
    stats,
    stop::Stop,
};

/// The server's side of the API.
#[derive(Debug)]
pub(super) struct Api {
    commands: Commands,
    counters: stats::Source,
    captures: Captures,
    reaches: Reaches,
    stop: Stop,
}

impl Api {
    pub(super) fn new(
        commands: Commands,
        counters: stats::Source,
        tunnels: Tunnels,
        audit: Audit,
        stop: Stop,
    ) -> Self {
        let captures = Captures::new(counters.bpffs.clone(), audit.clone(), stop.clone());
        let reaches = Reaches::new(commands.clone(), tunnels, audit, stop.clone());
        Self { commands, counters, captures, reaches, stop }
    }
}

#[tonic::async_trait]
impl Spillway for Api {
    type CaptureStream = CaptureStream;
    type ProbeStream = ProbeStream;
    type WatchStream = WatchStream;

    async fn apply(
        &self,
        request: Request<ApplyRequest>,
    ) -> Result<Response<ApplyResponse>, Status> {
        let ApplyRequest { configuration, dry_run, expected_generation } = request.into_inner();
        let configuration = convert::configuration(&configuration.unwrap_or_default())?;
        let actor = caller().actor;
        let apply = Apply { configuration, dry_run, expected_generation, actor };
        let applied = self.commands.apply(apply).await??;
        Ok(Response::new((&applied).into()))
    }

    async fn export(&self, _: Request<ExportRequest>) -> Result<Response<ExportResponse>, Status> {
        Ok(Response::new((&self.commands.export().await?).into()))
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        Ok(Response::new((&self.commands.status().await??).into()))
    }

    async fn regions(
        &self,
        request: Request<RegionsRequest>,
    ) -> Result<Response<RegionsResponse>, Status> {
        let pool = Some(request.into_inner().pool).filter(|pool| !pool.is_empty());
        Ok(Response::new((&self.commands.regions(pool).await??).into()))
    }

    async fn backend_history(
        &self,
        request: Request<BackendHistoryRequest>,
    ) -> Result<Response<BackendHistoryResponse>, Status> {
        let BackendHistoryRequest { pool, address } = request.into_inner();
        let address = Some(address).filter(|address| !address.is_empty());
        let histories = self.commands.history(pool, address).await??;
        let backends = histories.iter().map(Into::into).collect();
        Ok(Response::new(BackendHistoryResponse { backends }))
    }

    async fn watch(&self, _: Request<WatchRequest>) -> Result<Response<WatchStream>, Status> {
        let subscription = self.commands.watch().await??;
        let stream = watch::stream(self.commands.clone(), subscription, self.stop.clone());
        Ok(Response::new(stream))
    }

    async fn capture(
        &self,
        request: Request<CaptureRequest>,
    ) -> Result<Response<CaptureStream>, Status> {
        let wanted = convert::wanted(request.get_ref())?;
        let said = self.captures.begin(wanted, caller().actor)?;
        Ok(Response::new(capture::stream(said)))
    }

    async fn probe(&self, request: Request<ProbeRequest>) -> Result<Response<ProbeStream>, Status> {
        let (wanted, size) = convert::asked(request.into_inner())?;
        let told = self.reaches.begin(wanted, size, caller().actor).await?;
        Ok(Response::new(probe::stream(told)))
    }

    async fn stats(&self, _: Request<StatsRequest>) -> Result<Response<StatsResponse>, Status> {
        let counters = self.counters.clone();
        let read = tokio::task::spawn_blocking(move || counters.read()).await;
        match read {
            Ok(Ok(stats)) => Ok(Response::new(stats.into())),
            Ok(Err(error)) => {
                Err(Status::unavailable(format!("the counters: {}", causes::of(&error))))
            }
            Err(error) => Err(Status::internal(format!("the counters: {error}"))),
        }
    }

    async fn explain(
        &self,
        request: Request<ExplainRequest>,
    ) -> Result<Response<ExplainResponse>, Status> {
        let flow = convert::flow(request.get_ref())?;
        let stats::Source { bpffs, state_directory } = self.counters.clone();
        let read = move || explain::of_pins(&bpffs, &state_directory, &flow);
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok((generation, explanation))) => {
                Ok(Response::new(convert::explained(&explanation, generation)))
            }
            Ok(Err(error)) => Err(Status::unavailable(format!("the maps: {}", causes::of(&error)))),
            Err(error) => Err(Status::internal(format!("the maps: {error}"))),
        }
    }
}
