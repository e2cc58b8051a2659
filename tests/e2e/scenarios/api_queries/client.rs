//! A client of the daemon's socket.

use std::future::Future;

use anyhow::{Context as _, Result};
use lb_tests::daemon::Balancer;
use lb_tests::process::PATIENCE;
use spillway_proto::v1::spillway_client::SpillwayClient;
use spillway_proto::v1::{ApplyRequest, ApplyResult, Configuration, ExportRequest};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

pub(crate) struct Client {
    runtime: Runtime,
    client: SpillwayClient,
}

impl Client {
    pub(crate) fn of(balancer: &Balancer) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let endpoint = Endpoint::from_shared(format!("unix:{}", balancer.socket.display()))?;
        let channel = runtime.block_on(endpoint.connect()).context("connect")?;
        Ok(Self { runtime, client: SpillwayClient::new(channel) })
    }

    /// The answer to a call, or its status.
    pub(crate) fn call<T, F>(&self, call: impl FnOnce(SpillwayClient) -> F) -> Answer<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let client = self.client.clone();
        let answer = async { tokio::time::timeout(PATIENCE, call(client)).await };
        match self.runtime.block_on(answer) {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded("the test's own patience")),
        }
    }

    /// Waits for something that comes of an earlier answer.
    pub(crate) fn wait<T>(&self, come: impl Future<Output = T>) -> Result<T> {
        let come = async { tokio::time::timeout(PATIENCE, come).await };
        self.runtime.block_on(come).context("nothing came")
    }

    /// The configuration in force.
    pub(crate) fn export(&self) -> Result<(u64, Configuration)> {
        let answer = self.call(async |mut c| c.export(ExportRequest {}).await)?;
        Ok((answer.generation, answer.configuration.context("no configuration")?))
    }

    pub(crate) fn apply(
        &self,
        configuration: &Configuration,
        validate_only: bool,
    ) -> Answer<ApplyResult> {
        let configuration = Some(configuration.clone());
        let request =
            ApplyRequest { configuration, validate_only, force: true, ..ApplyRequest::default() };
        let answer = self.call(async |mut c| c.apply(request).await)?;
        Ok(answer.result.unwrap_or_default())
    }
}

pub(crate) type Answer<T> = Result<T, Status>;
