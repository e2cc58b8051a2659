//! A client of a balancer's socket: it asks by the API's messages.

use std::{future::Future, path::Path};

use anyhow::{Context as _, Result};
use spillway_proto::v1::{
    ApplyRequest, ApplyResult, Configuration, ExportRequest, FleetStatus, GetFleetStatusRequest,
    ListOverridesRequest, ListOverridesResponse, RegionsRequest, RegionsResponse, StatusRequest,
    StatusResponse, TableRequest, TableResponse, fleet_client::FleetClient,
    overrides_client::OverridesClient, spillway_client::SpillwayClient,
};
use tokio::runtime::{Builder, Runtime};
use tonic::{
    Response, Status,
    transport::{Channel, Endpoint},
};

use crate::process::PATIENCE;

/// Largest answer, bytes, as the command line takes it.
const MAX_ANSWER: usize = 64 << 20;

/// An answer, or the status that the daemon refuses a call with.
pub type Answer<T> = Result<T, Status>;

/// A connection to a daemon, which makes one call after the other.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    channel: Channel,
}

impl Client {
    /// Connects to the daemon behind a socket.
    ///
    /// # Errors
    /// When no daemon answers there.
    pub fn connect(socket: &Path) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()))?;
        let channel = runtime.block_on(endpoint.connect());
        let channel = channel.with_context(|| format!("connect to {}", socket.display()))?;
        Ok(Self { runtime, channel })
    }

    /// The answer to a call of the main service.
    ///
    /// # Errors
    /// When it is refused, or has no answer within a minute.
    pub fn call<T, F>(&self, call: impl FnOnce(SpillwayClient) -> F) -> Answer<T>
    where
        F: Future<Output = Answer<Response<T>>>,
    {
        let client = SpillwayClient::new(self.channel.clone());
        self.answer(call(client.max_decoding_message_size(MAX_ANSWER)))
    }

    /// Waits at most a minute for something that comes of an earlier answer.
    ///
    /// # Errors
    /// When it does not come.
    pub fn wait<T>(&self, come: impl Future<Output = T>) -> Result<T> {
        let come = async { tokio::time::timeout(PATIENCE, come).await };
        self.runtime.block_on(come).context("nothing came")
    }

    fn answer<T>(&self, call: impl Future<Output = Answer<Response<T>>>) -> Answer<T> {
        let answer = async { tokio::time::timeout(PATIENCE, call).await };
        match self.runtime.block_on(answer) {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded("the test's own patience")),
        }
    }

    /// How everything is.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn status(&self) -> Answer<StatusResponse> {
        self.call(async |mut c| c.status(StatusRequest::default()).await)
    }

    /// Demand and capacity of a pool's groups.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn regions(&self, pool: &str) -> Answer<RegionsResponse> {
        let request = RegionsRequest { pool: pool.to_owned() };
        self.call(async |mut c| c.regions(request).await)
    }

    /// The tables of a pool. Of all pools if it has no name.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn table(&self, pool: &str) -> Answer<TableResponse> {
        let request = TableRequest { pool: pool.to_owned() };
        self.call(async |mut c| c.table(request).await)
    }

    /// The configuration in force, and its generation.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn export(&self) -> Result<(u64, Configuration)> {
        let answer = self.call(async |mut c| c.export(ExportRequest {}).await)?;
        Ok((answer.generation, answer.configuration.context("no configuration")?))
    }

    /// Puts a configuration in force however much it removes, or only checks it.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn apply(&self, configuration: &Configuration, validate_only: bool) -> Answer<ApplyResult> {
        let configuration = Some(configuration.clone());
        let request = ApplyRequest {
            configuration,
            validate_only,
            force: true,
            schema_revision: spillway_proto::SCHEMA_REVISION.into(),
            ..ApplyRequest::default()
        };
        let answer = self.call(async |mut c| c.apply(request).await)?;
        Ok(answer.result.unwrap_or_default())
    }

    /// The overrides in force, at most a page.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn overrides(&self) -> Answer<ListOverridesResponse> {
        let mut client = OverridesClient::new(self.channel.clone());
        let request = ListOverridesRequest::default();
        self.answer(async move { client.list_overrides(request).await })
    }

    /// The fleet as the balancer sees it.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn fleet_status(&self) -> Answer<FleetStatus> {
        let mut client = FleetClient::new(self.channel.clone());
        self.answer(async move { client.get_fleet_status(GetFleetStatusRequest {}).await })
    }
}
