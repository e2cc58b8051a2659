//! The daemon, as seen through its socket.

use std::{error::Error as _, fs, io, os::unix::fs::FileTypeExt as _, path::Path, time::Duration};

use hyper_util::rt::TokioIo;
use lb_daemon::{
    api::convert::{FIELD_TRAILER, HINT_TRAILER},
    dataplane::Role,
};
use spillway_proto::v1::{
    ApplyRequest, ApplyResponse, BackendHistoryRequest, BackendHistoryResponse, CaptureRequest,
    CaptureResponse, ExplainRequest, ExplainResponse, ExportRequest, ExportResponse, ProbeRequest,
    ProbeResponse, RegionsRequest, RegionsResponse, ReloadRequest, ReloadResponse, StatsRequest,
    StatsResponse, StatusRequest, StatusResponse, TableRequest, TableResponse, WatchRequest,
    WatchResponse, objects_client::ObjectsClient, spillway_client::SpillwayClient,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
    time::timeout,
};
use tonic::{
    Code, Response, Status, Streaming,
    transport::{Channel, Endpoint},
};
use tower::service_fn;

use crate::{
    arguments::Options,
    exit::Exit,
    failure::{Failure, describe},
    pinned,
    tls::{self, Alert},
};

/// How long the daemon may take for an answer that changes nothing.
const PROMPT: Duration = Duration::from_secs(10);
/// How long it may take to put a configuration in force.
const PATIENT: Duration = Duration::from_secs(120);
/// Largest answer, bytes: a configuration with every backend the maps have room for.
const LARGEST: usize = 64 << 20;

/// A connection to the daemon.
pub(crate) struct Daemon {
    client: SpillwayClient<Channel>,
    objects: ObjectsClient<Channel>,
    /// Socket or address, as told.
    place: String,
    /// What the other end said of our certificate.
    alert: Alert,
}

impl Daemon {
    /// Connects to the daemon: over TLS where an address is given, else to its socket.
    ///
    /// # Errors
    /// Nothing answers there, or the user may not ask.
    pub(crate) async fn open(options: &Options) -> Result<Self, Failure> {
        let Some(server) = &options.server else { return Self::local(options).await };
        let (stream, alert) = tls::connect(server, options).await?;
        Self::over(stream, server.clone(), alert).await
    }

    async fn local(options: &Options) -> Result<Self, Failure> {
        let socket = options.socket();
        let connected = UnixStream::connect(socket).await;
        let stream = connected.map_err(|error| {
            let failure = unreachable(socket, &error, Role::Balancer);
            // Nothing is to be started where nothing should run.
            match pinned::other_host(options, Role::Balancer) {
                Some(hint) if failure.exit == Exit::Unavailable => failure.hint(hint),
                _ => failure,
            }
        })?;
        Self::over(stream, socket.display().to_string(), Alert::default()).await
    }

    async fn over<S>(stream: S, place: String, alert: Alert) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut stream = Some(TokioIo::new(stream));
        let connector = service_fn(move |_| {
            let stream = stream.take();
            async move { stream.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset)) }
        });
        let channel = Endpoint::from_static("http://spillwayd")
            .connect_with_connector(connector)
            .await
            .map_err(|_| alert.failure(&place).unwrap_or_else(|| not_ours(&place)))?;
        let objects = ObjectsClient::new(channel.clone()).max_decoding_message_size(LARGEST);
        let client = SpillwayClient::new(channel).max_decoding_message_size(LARGEST);
        Ok(Self { client, objects, place, alert })
    }

    /// Puts a configuration in force, or answers what it would change.
    pub(crate) async fn apply(&mut self, request: ApplyRequest) -> Result<ApplyResponse, Failure> {
        let answer = timeout(PATIENT, self.client.apply(request)).await;
        self.answer(answer)
    }

    /// The configuration in force.
    pub(crate) async fn export(&mut self) -> Result<ExportResponse, Failure> {
        let answer = timeout(PROMPT, self.client.export(ExportRequest {})).await;
        self.answer(answer)
    }

    /// What the daemon is and how its backends are.
    pub(crate) async fn status(&mut self) -> Result<StatusResponse, Failure> {
        let answer = timeout(PROMPT, self.client.status(StatusRequest {})).await;
        self.answer(answer)
    }

    /// Has it read its settings again. How long that may take is the caller's to say.
    pub(crate) async fn reload(&mut self) -> Result<ReloadResponse, Failure> {
        let answer = self.client.reload(ReloadRequest {}).await;
        self.answer(Ok(answer))
    }

    /// Demand against capacity.
    pub(crate) async fn regions(
        &mut self,
        request: RegionsRequest,
    ) -> Result<RegionsResponse, Failure> {
        let answer = timeout(PROMPT, self.client.regions(request)).await;
        self.answer(answer)
    }

    /// What has become of backends.
    pub(crate) async fn history(
        &mut self,
        request: BackendHistoryRequest,
    ) -> Result<BackendHistoryResponse, Failure> {
        let answer = timeout(PROMPT, self.client.backend_history(request)).await;
        self.answer(answer)
    }

    /// A call of the API object by object.
    pub(crate) async fn objects<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut ObjectsClient<Channel>) -> Result<T, Status>,
    ) -> Result<T, Failure> {
        let answer = timeout(PATIENT, call(&mut self.objects)).await;
        self.answer(answer.map(|answer| answer.map(Response::new)))
    }

    /// What the packet path counted.
    pub(crate) async fn stats(&mut self) -> Result<StatsResponse, Failure> {
        let answer = timeout(PROMPT, self.client.stats(StatsRequest {})).await;
        self.answer(answer)
    }

    /// Which backend a packet goes to, and why.
    pub(crate) async fn explain(
        &mut self,
        request: ExplainRequest,
    ) -> Result<ExplainResponse, Failure> {
        let answer = timeout(PROMPT, self.client.explain(request)).await;
        self.answer(answer)
    }

    /// Who owns the slots of a pool's tables, or of those of all pools.
    pub(crate) async fn table(&mut self, request: TableRequest) -> Result<TableResponse, Failure> {
        let answer = timeout(PROMPT, self.client.table(request)).await;
        self.answer(answer)
    }

    /// A snapshot, then changes as they come.
    pub(crate) async fn watch(&mut self) -> Result<Streaming<WatchResponse>, Failure> {
        let answer = timeout(PROMPT, self.client.watch(WatchRequest {})).await;
        self.answer(answer)
    }

    /// Packets as the packet path sees them.
    pub(crate) async fn capture(
        &mut self,
        request: CaptureRequest,
    ) -> Result<Streaming<CaptureResponse>, Failure> {
        let answer = timeout(PROMPT, self.client.capture(request)).await;
        self.answer(answer)
    }

    /// Ways to backends, each as it has been tried.
    pub(crate) async fn probe(
        &mut self,
        request: ProbeRequest,
    ) -> Result<Streaming<ProbeResponse>, Failure> {
        let answer = timeout(PROMPT, self.client.probe(request)).await;
        self.answer(answer)
    }

    /// What a status of the daemon, or of the way to it, means to a person.
    pub(crate) fn failure(&self, status: &Status) -> Failure {
        if status.source().is_some() {
            if let Some(failure) = self.alert.failure(&self.place) {
                return failure;
            }
            return self.broken("the connection broke before the answer was complete");
        }
        let message = status.message().to_owned();
        match status.code() {
            Code::InvalidArgument => {
                let trailer = |name| status.metadata().get(name).and_then(|it| it.to_str().ok());
                let (field, hint) = (trailer(FIELD_TRAILER), trailer(HINT_TRAILER));
                let failure = Failure::new(Exit::Invalid, message)
                    .hint(hint.unwrap_or("nothing was changed; correct it, then apply again"));
                Failure { field: field.map(str::to_owned), ..failure }
            }
            Code::Aborted => Failure::new(Exit::Conflict, message).hint(
                "nothing was changed; see `spillway export` for what is in force, then apply with its generation",
            ),
            Code::AlreadyExists | Code::FailedPrecondition => {
                let hint = status.metadata().get(HINT_TRAILER).and_then(|hint| hint.to_str().ok());
                let failure = Failure::new(Exit::Conflict, message);
                Failure { hint: hint.map(str::to_owned), ..failure }
            }
            Code::PermissionDenied => Failure::new(Exit::Permission, message)
                .hint("show a certificate that may, or have its role changed: `tls-client` of the daemon's settings"),
            Code::NotFound => {
                let hint = status.metadata().get(HINT_TRAILER).and_then(|hint| hint.to_str().ok());
                let failure = Failure::new(Exit::NotFound, message);
                Failure { hint: hint.map(str::to_owned), ..failure }
            }
            Code::Unavailable => self.broken(&message),
            Code::Unimplemented => Failure::new(
                Exit::Failure,
                format!("spillwayd at {}: it does not know this call", self.place),
            )
            .hint("spillway and spillwayd should be of one version"),
            _ => {
                let hint = status.metadata().get(HINT_TRAILER).and_then(|hint| hint.to_str().ok());
                Failure::new(Exit::Failure, format!("spillwayd: {message}"))
                    .hint(hint.unwrap_or("the daemon's log says more"))
            }
        }
    }

    /// The failure of a conversation that ended early.
    pub(crate) fn broken(&self, how: &str) -> Failure {
        Failure::new(Exit::Unavailable, format!("spillwayd at {}: {how}", self.place))
            .hint("see whether it still runs with `spillway status`; its log says why")
    }

    fn answer<T>(
        &self,
        answer: Result<Result<Response<T>, Status>, tokio::time::error::Elapsed>,
    ) -> Result<T, Failure> {
        match answer {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(Failure { code: Some(status.code()), ..self.failure(&status) }),
            Err(_) => Err(self.broken("it took the connection but does not answer")),
        }
    }
}

/// Runs a conversation with the daemon to its end.
///
/// # Errors
/// Those of the conversation, or the runtime cannot start.
pub(crate) fn converse<T>(
    conversation: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Failure, format!("runtime: {}", describe(&error))))?
        .block_on(conversation)
}

/// Why the socket could not be connected to.
pub(crate) fn unreachable(socket: &Path, error: &io::Error, role: Role) -> Failure {
    let start = format!("`systemctl start spillway-{role}`");
    let (exit, cause, hint) = match error.kind() {
        io::ErrorKind::NotFound => (
            Exit::Unavailable,
            "there is no such socket".into(),
            format!("start the daemon ({start}), or name its socket with --socket"),
        ),
        // Connecting to a file of another kind is refused as well.
        io::ErrorKind::ConnectionRefused if !is_socket(socket) => (
            Exit::Unavailable,
            "it is no socket".into(),
            "name the daemon's socket with --socket or SPILLWAY_SOCKET".into(),
        ),
        io::ErrorKind::ConnectionRefused => (
            Exit::Unavailable,
            "nothing listens there".into(),
            format!("the daemon has ended: start it ({start}), or name its socket with --socket"),
        ),
        io::ErrorKind::PermissionDenied if role == Role::Receiver => {
            (Exit::Permission, "permission denied".into(), "run it as root".into())
        }
        io::ErrorKind::PermissionDenied => (
            Exit::Permission,
            "permission denied".into(),
            "run it as root, or as a member of the socket's group (`usermod -a -G spillway USER`, from \
             the next login)"
                .into(),
        ),
        _ => (
            Exit::Unavailable,
            describe(error),
            "name the daemon's socket with --socket or SPILLWAY_SOCKET".into(),
        ),
    };
    Failure::new(exit, format!("spillwayd at {}: {cause}", socket.display())).hint(hint)
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

/// Something listens, but it does not speak the protocol.
fn not_ours(place: &str) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!("spillwayd at {place}: what listens there speaks another protocol"),
    )
    .hint("name the daemon's socket with --socket, or its address with --server")
}
