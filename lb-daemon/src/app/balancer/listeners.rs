//! What is asked of the balancer from outside: HTTP, the API, reloads; and the status line.

use std::{path::Path, time::Duration};

use tokio::{
    net::UnixListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::DropGuard;

use super::{ReloadInputs, Shared, Start};
use crate::app::{
    Failure, HttpListener, arguments::BalancerArguments, listen_http, reload::Reload, serve_http,
    status_line,
};
use lb_api::{Handles, Rights, ServeError, Socket, audit::Audit, reload::Reloads};
use lb_base::{conditions::Conditions, write_hint};
use lb_control::command::Commands;
use lb_health::Tunnels;
use lb_member::{Changes, Membership};
use lb_observe::http;
use lb_secure::tls::{self, Connection, Credentials, TlsError};

/// Longest wait for what the fleet has, before the service manager is told that the daemon is ready.
const FLEET_READY: Duration = Duration::from_secs(30);

pub(super) struct ListenerResources {
    credentials: Option<Credentials>,
    tls_connections: Option<mpsc::Receiver<Connection>>,
    pub(super) audit: Audit,
    /// Removes the sockets' files when the daemon ends.
    pub(super) sockets: Vec<Socket>,
    listener: UnixListener,
    read_only: Option<UnixListener>,
    http: Option<HttpListener>,
}

impl ListenerResources {
    pub(super) async fn open(
        arguments: &BalancerArguments,
        shared: &Shared,
    ) -> Result<Self, Failure> {
        let (credentials, tls_connections) = listen_tls(arguments, shared).await?;
        let audit = open_audit(arguments, &shared.conditions)?;
        let (socket, listener) = listen_unix(arguments)?;
        let (read_only_socket, read_only) = listen_read_only(arguments)?.unzip();
        let sockets = socket.into_iter().chain(read_only_socket).collect();
        let Shared { live, conditions, .. } = shared;
        let (expiry, refused) = (&live.certificates, &live.http_refused);
        let http = listen_http(&arguments.path, expiry, conditions, refused).await?;
        Ok(Self { credentials, tls_connections, audit, sockets, listener, read_only, http })
    }
}

/// What answers and changes go through.
pub(super) struct ListenerLinks {
    pub(super) commands: Commands,
    pub(super) membership: Membership,
    pub(super) tunnels: Tunnels,
}

pub(super) struct ListenerTasks {
    http: JoinHandle<()>,
    api: JoinHandle<Result<(), ServeError>>,
    reload: JoinHandle<()>,
    status_line: JoinHandle<()>,
}

/// Also returns what is sent once the daemon has tried to serve what its file says.
pub(super) fn start_listeners(
    start: &Start,
    resources: ListenerResources,
    links: ListenerLinks,
    inputs: ReloadInputs,
) -> (ListenerTasks, oneshot::Receiver<()>) {
    let Start { arguments, shared, counters, stop, .. } = start;
    let Shared { conditions, waiting, live, followed, .. } = shared.clone();
    let ListenerLinks { commands, membership, tunnels } = links;
    let changes = Changes::new(commands.clone(), membership.clone());
    let packet_program = lb_programs::OBJECTS.digest(lb_maps::Component::Balancer);
    let reader = http::Reader::new(
        commands.clone(),
        counters.clone(),
        live.clone(),
        membership.clone(),
        packet_program,
    );
    let shown = http::balancer(reader, arguments.status_page);
    let http_credentials = resources.http.as_ref().map(|(_, credentials)| credentials.clone());
    let http = tokio::spawn(serve_http(resources.http, shown, stop.clone()));

    let (reloads, reload_requests) = Reloads::channel();
    let ListenerResources { audit, credentials, .. } = resources;
    let handles = Handles {
        changes: changes.clone(),
        audit: audit.clone(),
        counters: counters.clone(),
        tunnels,
        reloads,
        host: start.shared.host.clone(),
    };
    let (local, remote) = ((resources.listener, resources.read_only), resources.tls_connections);
    let api = tokio::spawn(lb_api::serve(local, remote, handles, live.api_refused, stop.clone()));

    let manager = start.watchdog.manager();
    let status_line = tokio::spawn(status_line::run(
        commands,
        conditions.clone(),
        waiting.clone(),
        manager.clone(),
    ));
    let ReloadInputs { line, values, hangups } = inputs;
    let reload = Reload {
        line,
        values,
        followed,
        changes,
        audit,
        conditions,
        waiting,
        credentials,
        http_credentials,
    };
    let (file_applied_tx, file_applied) = oneshot::channel();
    let reload = tokio::spawn(async move {
        // A refusal is shown as a condition.
        let _ = reload.apply(false).await;
        // An answer means that the stored generation was tried too.
        let _ = reload.changes.commands().export().await;
        // Of a fleet, what it had at the end is in force by now; what changed since may take etcd some time.
        let _ = timeout(FLEET_READY, membership.until_ready()).await;
        let _ = file_applied_tx.send(());
        let credentials = reload.credentials.clone();
        tokio::join!(reload.run(hangups, reload_requests, manager), async {
            if let Some(credentials) = credentials {
                credentials.follow().await;
            }
        });
    });
    (ListenerTasks { http, api, reload, status_line }, file_applied)
}

impl ListenerTasks {
    /// The failure of the first task that ends.
    pub(super) async fn failed(&mut self) -> Failure {
        tokio::select! {
            biased;
            ended = &mut self.api => match ended {
                Ok(Err(error)) => Failure::from_chain(&error),
                _ => Failure::new("gRPC server: ended unexpectedly"),
            },
            _ = &mut self.reload => Failure::new("reload: ended unexpectedly"),
            _ = &mut self.status_line => Failure::new("status line: ended unexpectedly"),
        }
    }

    /// Answers calls under way within their deadline.
    pub(super) async fn stop(self, stop_guard: DropGuard) {
        // First, so that neither asks anything of what is about to stop.
        self.reload.abort();
        self.status_line.abort();
        drop(stop_guard);
        // A task that has ended must not be awaited a second time.
        if !self.api.is_finished() {
            let _ = self.api.await;
        }
        let _ = self.http.await;
    }
}

/// The unix socket of the API: the one that the service manager hands over, or our own, whose file is removed at the
/// end.
fn listen_unix(arguments: &BalancerArguments) -> Result<(Option<Socket>, UnixListener), Failure> {
    let activated =
        lb_api::activated().map_err(|error| Failure::from_chain(&error).hint(error.hint()))?;
    if let Some(listener) = activated {
        tracing::info!("API: listening on the socket of the service manager");
        return Ok((None, listener));
    }
    let (socket, listener) = Socket::bind(&arguments.socket, arguments.rights())
        .map_err(|error| Failure::from_chain(&error).hint(error.hint()))?;
    Ok((Some(socket), listener))
}

/// The socket for reading, if the settings ask for one: any user may connect.
fn listen_read_only(
    arguments: &BalancerArguments,
) -> Result<Option<(Socket, UnixListener)>, Failure> {
    let Some(path) = &arguments.read_only_socket else { return Ok(None) };
    let rights = Rights { mode: 0o666, ..Rights::default() };
    let bound = Socket::bind(path, rights);
    bound.map(Some).map_err(|error| Failure::from_chain(&error).hint(error.hint()))
}

/// The TLS listener of the API, if the settings ask for one.
async fn listen_tls(
    arguments: &BalancerArguments,
    shared: &Shared,
) -> Result<(Option<Credentials>, Option<mpsc::Receiver<Connection>>), Failure> {
    let Some((address, files)) = arguments.remote()? else { return Ok((None, None)) };
    let failed = |error: TlsError| Failure::from_chain(&error).hint(error.hint());
    let expiry = shared.live.certificates.clone();
    let credentials =
        Credentials::open(files, arguments.clients(), expiry, shared.conditions.clone())
            .map_err(failed)?;
    let (address, connections) =
        tls::listen(address, credentials.clone(), shared.live.api_refused.clone())
            .await
            .map_err(failed)?;
    tracing::info!(%address, "API: listening for TLS on {address}");
    Ok((Some(credentials), Some(connections)))
}

fn open_audit(arguments: &BalancerArguments, conditions: &Conditions) -> Result<Audit, Failure> {
    let path = arguments.audit_file.as_deref();
    Audit::open(path, conditions.clone()).map_err(|error| {
        let path = path.unwrap_or(Path::new(""));
        let hint = write_hint(&error, path.parent().unwrap_or(path), "--audit-file");
        Failure::about(&path.display().to_string(), &error).hint(hint)
    })
}
