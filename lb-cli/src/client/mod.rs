//! The daemons as seen from outside: a balancer by its API, a receiver by its control socket.

mod fleet;
pub(crate) mod tls;

pub(crate) use fleet::BackendPackets;

use std::{
    error::Error as _,
    fs, io,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    pin::{Pin, pin},
    time::Duration,
};

use hyper_util::rt::TokioIo;
use lb_base::{
    error_chain, lock_owner,
    receiver_socket::{self, Answer, ControlError, Reply, Request},
};
use lb_config::{FIELD_TRAILER, HINT_TRAILER};
use lb_doctor::process;
use lb_maps::{Component, Pins};
use spillway_proto::v1::{
    ApplyRequest, ApplyResult, BackendHistoryRequest, BackendHistoryResponse, CaptureRequest,
    CaptureResponse, DiffGenerationsRequest, DiffGenerationsResponse, ErrorReason, ExplainRequest,
    ExplainResponse, ExportRequest, ExportResponse, ListGenerationsRequest,
    ListGenerationsResponse, ListOverridesRequest, ListOverridesResponse, OverrideKind,
    ProbeVipsRequest, ProbeVipsResponse, RegionsRequest, RegionsResponse, ReloadRequest,
    ReloadResponse, RemoveOverridesRequest, RemoveOverridesResponse, RollbackRequest,
    SetOverridesRequest, SetOverridesResponse, StatsRequest, StatsResponse, StatusRequest,
    StatusResponse, TableRequest, TableResponse, WatchRequest, WatchResponse,
    fleet_client::FleetClient, objects_client::ObjectsClient, overrides_client::OverridesClient,
    spillway_client::SpillwayClient,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
    time::timeout,
};
use tonic::{Code, Response, Status, Streaming, transport::Endpoint};
use tonic_types::{FieldViolation, StatusExt as _};
use tower::service_fn;

use self::tls::Alert;
use crate::{
    arguments::Options,
    failure::{Exit, Failure, Mistake, describe},
    pinned,
};

/// Longest wait for a call that changes nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a call that changes the configuration.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(120);
/// Objects that are asked for at once: as many as the daemon allows.
pub(crate) const MAX_PAGE: u32 = 10_000;
/// What else can be done if etcd takes no override.
const LOCAL_HINT: &str =
    "nothing was changed; with --local it is made at this balancer alone, without etcd";
/// The same if etcd may have taken it.
const UNKNOWN_LOCAL_HINT: &str = "`spillway override list` shows what came into force; to make the change again is safe, with --local at this \
     balancer alone, without etcd";
/// Domain of the daemon's reasons of errors.
const ERROR_DOMAIN: &str = "spillway";
/// Largest answer, bytes: a configuration with as many backends as the maps hold.
const MAX_ANSWER: usize = 64 << 20;

/// A connection to a balancer's daemon.
pub(crate) struct DaemonClient {
    client: SpillwayClient,
    objects: ObjectsClient,
    overrides: OverridesClient,
    fleet: FleetClient,
    /// Its socket or address, for messages.
    place: String,
    /// The TLS alert with which the daemon refused our certificate.
    alert: Alert,
}

impl DaemonClient {
    /// Connects over TLS if a server is given, else to the socket.
    ///
    /// # Errors
    /// Nothing answers, or the user may not connect.
    pub(crate) async fn connect(options: &Options) -> Result<Self, Failure> {
        let Some(server) = &options.server else { return Self::connect_socket(options).await };
        let (stream, alert) = tls::connect(server, options).await?;
        Self::from_stream(stream, server.clone(), alert).await
    }

    async fn connect_socket(options: &Options) -> Result<Self, Failure> {
        let socket = options.socket();
        let connected = UnixStream::connect(socket).await;
        let stream = connected.map_err(|error| {
            let failure = connect_failure(socket, &error, Component::Balancer);
            // A host of the other component has no daemon of this component to start.
            match pinned::other_host(options, Component::Balancer) {
                Some(hint) if failure.exit == Exit::Unavailable => failure.hint(hint),
                _ => failure,
            }
        })?;
        Self::from_stream(stream, socket.display().to_string(), Alert::default()).await
    }

    async fn from_stream<S>(stream: S, place: String, alert: Alert) -> Result<Self, Failure>
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
            .map_err(|_| alert.failure(&place).unwrap_or_else(|| wrong_protocol(&place)))?;
        let objects = ObjectsClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER);
        let overrides = OverridesClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER);
        let fleet = FleetClient::new(channel.clone()).max_decoding_message_size(MAX_ANSWER);
        let client = SpillwayClient::new(channel).max_decoding_message_size(MAX_ANSWER);
        Ok(Self { client, objects, overrides, fleet, place, alert })
    }

    /// Puts a configuration in force; a dry run answers what that would change.
    pub(crate) async fn apply(&mut self, request: ApplyRequest) -> Result<ApplyResult, Failure> {
        let answer = timeout(CHANGE_TIMEOUT, self.client.apply(request)).await;
        Ok(self.answer(answer)?.result.unwrap_or_default())
    }

    pub(crate) async fn export(&mut self) -> Result<ExportResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.export(ExportRequest {})).await;
        self.answer(answer)
    }

    /// The last generations.
    pub(crate) async fn generations(&mut self) -> Result<ListGenerationsResponse, Failure> {
        let request = ListGenerationsRequest {};
        let answer = timeout(READ_TIMEOUT, self.client.list_generations(request)).await;
        self.answer(answer)
    }

    /// What is different between two generations. Their tables are computed for that, as for a change.
    pub(crate) async fn diff_generations(
        &mut self,
        request: DiffGenerationsRequest,
    ) -> Result<DiffGenerationsResponse, Failure> {
        let answer = timeout(CHANGE_TIMEOUT, self.client.diff_generations(request)).await;
        self.answer(answer)
    }

    pub(crate) async fn rollback(
        &mut self,
        request: RollbackRequest,
    ) -> Result<ApplyResult, Failure> {
        let answer = timeout(CHANGE_TIMEOUT, self.client.rollback(request)).await;
        Ok(self.answer(answer)?.result.unwrap_or_default())
    }

    pub(crate) async fn status(&mut self) -> Result<StatusResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.status(StatusRequest::default())).await;
        self.answer(answer)
    }

    /// Reloads the settings. The caller sets the timeout.
    pub(crate) async fn reload(&mut self, force: bool) -> Result<ReloadResponse, Failure> {
        let answer = self.client.reload(ReloadRequest { force }).await;
        self.answer(Ok(answer))
    }

    pub(crate) async fn regions(
        &mut self,
        request: RegionsRequest,
    ) -> Result<RegionsResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.regions(request)).await;
        self.answer(answer)
    }

    pub(crate) async fn history(
        &mut self,
        request: BackendHistoryRequest,
    ) -> Result<BackendHistoryResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.backend_history(request)).await;
        self.answer(answer)
    }

    /// Makes a call of the `Objects` API.
    pub(crate) async fn objects<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut ObjectsClient) -> Result<T, Status>,
    ) -> Result<T, Failure> {
        let answer = timeout(CHANGE_TIMEOUT, call(&mut self.objects)).await;
        self.answer(answer.map(|answer| answer.map(Response::new)))
    }

    /// Puts overrides in force.
    pub(crate) async fn set_overrides(
        &mut self,
        request: SetOverridesRequest,
    ) -> Result<SetOverridesResponse, Failure> {
        let may_be_local = matches!(request.kind(), OverrideKind::Drain | OverrideKind::Disable);
        let answer = timeout(READ_TIMEOUT, self.overrides.set_overrides(request)).await;
        self.answer(answer).map_err(|failure| match may_be_local {
            true => with_local_hint(failure),
            false => failure,
        })
    }

    pub(crate) async fn remove_overrides(
        &mut self,
        request: RemoveOverridesRequest,
    ) -> Result<RemoveOverridesResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.overrides.remove_overrides(request)).await;
        self.answer(answer)
    }

    /// The overrides in force.
    pub(crate) async fn overrides(&mut self) -> Result<ListOverridesResponse, Failure> {
        let mut all = ListOverridesResponse::default();
        loop {
            let request = ListOverridesRequest {
                page_size: MAX_PAGE,
                page_token: all.next_page_token.clone(),
                ..ListOverridesRequest::default()
            };
            let answer = timeout(READ_TIMEOUT, self.overrides.list_overrides(request)).await;
            let page = self.answer(answer)?;
            all.overrides.extend(page.overrides);
            all = ListOverridesResponse { overrides: all.overrides, ..page };
            if all.next_page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn stats(&mut self) -> Result<StatsResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.stats(StatsRequest {})).await;
        self.answer(answer)
    }

    pub(crate) async fn explain(
        &mut self,
        request: ExplainRequest,
    ) -> Result<ExplainResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.explain(request)).await;
        self.answer(answer)
    }

    pub(crate) async fn table(&mut self, request: TableRequest) -> Result<TableResponse, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.table(request)).await;
        self.answer(answer)
    }

    /// A snapshot, then changes as they happen; with the token of an earlier watch the changes since.
    pub(crate) async fn watch(
        &mut self,
        resume_token: String,
    ) -> Result<Streaming<WatchResponse>, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.watch(WatchRequest { resume_token })).await;
        self.answer(answer)
    }

    pub(crate) async fn capture(
        &mut self,
        request: CaptureRequest,
    ) -> Result<Streaming<CaptureResponse>, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.capture(request)).await;
        self.answer(answer)
    }

    pub(crate) async fn probe_vips(
        &mut self,
        request: ProbeVipsRequest,
    ) -> Result<Streaming<ProbeVipsResponse>, Failure> {
        let answer = timeout(READ_TIMEOUT, self.client.probe_vips(request)).await;
        self.answer(answer)
    }

    /// The failure for a gRPC status of the daemon or of the connection to it.
    pub(crate) fn failure(&self, status: &Status) -> Failure {
        if status.source().is_some() {
            if let Some(failure) = self.alert.failure(&self.place) {
                return failure;
            }
            return self.lost("the connection broke before the answer was complete");
        }
        if let Some(failure) = fleet::failure(status) {
            return failure;
        }
        let message = status.message().to_owned();
        match status.code() {
            Code::InvalidArgument => {
                let trailer = |name| status.metadata().get(name).and_then(|it| it.to_str().ok());
                let (field, hint) = (trailer(FIELD_TRAILER), trailer(HINT_TRAILER));
                let hint = hint
                    .unwrap_or("nothing was changed; correct the configuration and apply it again");
                let mut mistakes = mistakes(status).into_iter();
                let message = mistakes.next().map_or(message, |first| first.message);
                Failure { others: mistakes.collect(), ..Failure::new(Exit::Invalid, message) }
                    .hint(hint)
                    .about(field)
            }
            Code::Aborted => Failure::new(Exit::Conflict, message).hint(
                "nothing was changed; `spillway export` prints the configuration in force: apply on top of its generation",
            ),
            Code::AlreadyExists | Code::FailedPrecondition => {
                let hint = status.metadata().get(HINT_TRAILER).and_then(|hint| hint.to_str().ok());
                // A reload names each part that it refused, and each mistake of a file.
                let mut mistakes = mistakes(status).into_iter();
                let message = mistakes.next().map_or(message, |first| first.message);
                let failure = Failure::new(Exit::Conflict, message);
                Failure { hint: hint.map(str::to_owned), others: mistakes.collect(), ..failure }
            }
            Code::PermissionDenied => {
                let hint = match self.place.starts_with(tls::SCHEME) {
                    true => "use another client certificate, or change its role: `tls-client` in the daemon's settings",
                    false => "this socket is only for reading; name the daemon's `socket` with --socket",
                };
                Failure::new(Exit::Permission, message).hint(hint)
            }
            Code::NotFound => {
                let hint = status.metadata().get(HINT_TRAILER).and_then(|hint| hint.to_str().ok());
                let failure = Failure::new(Exit::NotFound, message);
                Failure { hint: hint.map(str::to_owned), ..failure }
            }
            Code::Unavailable => self.lost(&message),
            Code::Unimplemented => Failure::new(
                Exit::Failure,
                format!("spillwayd at {}: does not support this call", self.place),
            )
            .hint("use the same version of spillway and spillwayd"),
            _ => {
                let hint = status.metadata().get(HINT_TRAILER).and_then(|hint| hint.to_str().ok());
                Failure::new(Exit::Failure, format!("spillwayd: {message}"))
                    .hint(hint.unwrap_or("see the daemon's log"))
            }
        }
    }

    /// The failure of a connection that ended early.
    pub(crate) fn lost(&self, cause: &str) -> Failure {
        Failure::new(Exit::Unavailable, format!("spillwayd at {}: {cause}", self.place))
            .hint("check with `spillway status` whether it still runs; its log says why")
    }

    fn answer<T>(
        &self,
        answer: Result<Result<Response<T>, Status>, tokio::time::error::Elapsed>,
    ) -> Result<T, Failure> {
        match answer {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(Failure { code: Some(status.code()), ..self.failure(&status) }),
            Err(_) => Err(self.lost("accepted the connection but does not answer")),
        }
    }
}

/// Says that a drain or disable can do without etcd, if that is what it failed for.
fn with_local_hint(failure: Failure) -> Failure {
    match failure.code.filter(|_| failure.is_of_fleet) {
        Some(Code::Unavailable) => failure.hint(LOCAL_HINT),
        Some(Code::Unknown) => failure.hint(UNKNOWN_LOCAL_HINT),
        _ => failure,
    }
}

/// The reason of a status that the daemon itself answered; `None`: it has none, or this version does not know it.
fn error_reason(status: &Status) -> Option<ErrorReason> {
    let info = status.get_details_error_info().filter(|info| info.domain == ERROR_DOMAIN)?;
    ErrorReason::from_str_name(&format!("ERROR_REASON_{}", info.reason))
}

/// All mistakes that a status names, if there are several: its message is that of one.
fn mistakes(status: &Status) -> Vec<Mistake> {
    let details = status.get_details_bad_request();
    let violations = details.map(|details| details.field_violations).unwrap_or_default();
    let several = if violations.len() > 1 { violations } else { Vec::new() };
    let mistake = |it: FieldViolation| Mistake { field: it.field, message: it.description };
    several.into_iter().map(mistake).collect()
}

/// Runs a future to its end on a runtime of its own.
///
/// # Errors
/// Those of the future, or the runtime cannot start.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut answer = Err(Failure::new(Exit::Failure, "runtime: it has ended"));
    run(pin!(async { answer = future.await }))?;
    answer
}

/// Not generic: a runtime would be compiled for each command.
fn run(future: Pin<&mut dyn Future<Output = ()>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::Failure, format!("runtime: {}", describe(&error))))?;
    runtime.block_on(future);
    Ok(())
}

/// Why connecting to a socket failed.
pub(crate) fn connect_failure(socket: &Path, error: &io::Error, component: Component) -> Failure {
    let start = format!("`systemctl start spillway-{component}`");
    let (exit, cause, hint) = match error.kind() {
        io::ErrorKind::NotFound => (
            Exit::Unavailable,
            "no such socket".into(),
            format!("start the daemon ({start}), or name its socket with --socket"),
        ),
        // The kernel also refuses to connect to a file that is not a socket.
        io::ErrorKind::ConnectionRefused if !is_socket(socket) => (
            Exit::Unavailable,
            "not a socket".into(),
            "name the daemon's socket with --socket or SPILLWAY_SOCKET".into(),
        ),
        io::ErrorKind::ConnectionRefused => (
            Exit::Unavailable,
            "nothing listens on this socket".into(),
            format!("the daemon is not running: start it ({start}), or name its socket with --socket"),
        ),
        io::ErrorKind::PermissionDenied if component == Component::Receiver => {
            (Exit::Permission, "permission denied".into(), "run this command as root".into())
        }
        io::ErrorKind::PermissionDenied => (
            Exit::Permission,
            "permission denied".into(),
            "run this command as root, or as a member of the socket's group (`usermod -a -G spillway USER`, effective \
             from the next login); for reading, name the daemon's `read-only-socket` with --socket"
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

fn wrong_protocol(place: &str) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!("spillwayd at {place}: the listener speaks another protocol"),
    )
    .hint("name the daemon's socket with --socket, or its address with --server")
}

/// A receiver's control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceiverClient {
    socket: PathBuf,
    /// Its process, if known.
    process: Option<u32>,
}

impl ReceiverClient {
    /// The receiver that listens on the given socket, or else the one that holds the pins.
    pub(crate) fn find(options: &Options) -> Self {
        if let Some(socket) = &options.socket {
            return Self { socket: socket.clone(), process: None };
        }
        let process = lock_owner::holder(Pins::new(&options.bpffs, Component::Receiver).root());
        Self::from_process(process, &process.map(process::command_line).unwrap_or_default())
    }

    /// The receiver of a process with this command line.
    pub(crate) fn from_process(process: Option<u32>, line: &[String]) -> Self {
        let socket = process::setting(line, "socket");
        Self {
            socket: socket.map_or(receiver_socket::DEFAULT_SOCKET.into(), PathBuf::from),
            process,
        }
    }

    /// # Errors
    /// The receiver does not answer, or the user may not ask.
    pub(crate) async fn ask(&self, request: Request, timeout: Duration) -> Result<Answer, Failure> {
        let asked = receiver_socket::ask(&self.socket, request, self.process, timeout).await;
        let Reply { answer, .. } = asked.map_err(|error| self.failure(&error))?;
        Ok(answer)
    }

    fn failure(&self, error: &ControlError) -> Failure {
        let place = self.socket.display();
        let hint = match error {
            ControlError::Connect(error) => {
                return connect_failure(&self.socket, error, Component::Receiver);
            }
            ControlError::Another { .. } => {
                "each receiver needs its own socket: set `socket` in its settings, or name the socket with --socket"
            }
            ControlError::Foreign => "name the receiver's socket with --socket",
            ControlError::Silent(_) | ControlError::Closed | ControlError::Broken(_) => {
                "see its log: `journalctl -u spillway-receiver`"
            }
        };
        let message = format!("spillwayd at {place}: {}", error_chain::message(error));
        Failure::new(Exit::Unavailable, message).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_of_a_receiver_is_that_of_its_command_line() {
        for (line, socket) in [
            ("/d receiver --interface eth0", receiver_socket::DEFAULT_SOCKET),
            ("/d receiver --socket /a", "/a"),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let expected = ReceiverClient { socket: socket.into(), process: Some(7) };
            assert_eq!(ReceiverClient::from_process(Some(7), &words), expected, "{line}");
        }
    }

    #[test]
    fn without_etcd_a_drain_is_hinted_at_local_and_never_at_the_history() {
        let hint = |code, is_of_fleet| {
            let failure =
                Failure::new(Exit::Unavailable, "etcd cannot be reached").hint("as it was");
            let failure = Failure { code: Some(code), is_of_fleet, ..failure };
            with_local_hint(failure).hint.unwrap()
        };
        assert_eq!(hint(Code::Unavailable, true), LOCAL_HINT);
        assert_eq!(hint(Code::Unknown, true), UNKNOWN_LOCAL_HINT);
        assert!(UNKNOWN_LOCAL_HINT.contains("override list"));
        assert_eq!(hint(Code::FailedPrecondition, true), "as it was");
        assert_eq!(hint(Code::Unavailable, false), "as it was");
    }
}
