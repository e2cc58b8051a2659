//! Authorization and limits of calls. Each call is looked up in one table before its request is read; a call that is not
//! in the table needs the role admin.

mod calls;
#[cfg(test)]
mod tests;

use calls::{Needs, has_large_answer, needs};
pub(super) use calls::{RequestSize, may_change, request_size, within, within_pools};

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http_body_util::BodyExt;
use spillway_proto::v1::ErrorReason;
use tonic::{Code, Status, body::Body, codegen::http};
use tower::{Layer, Service};

use crate::{
    audit::Audit,
    bodies,
    convert::ApiError,
    limits::{Limits, WorkPermit},
};
use lb_control::command::Actor;
use lb_secure::access::{Lease, Peer, Role};

/// Most characters of a call's name in messages; all served calls have fewer.
const MAX_CALL_NAME: usize = 100;

tokio::task_local! {
    /// The current call.
    static CALL: Call;
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    peer: Peer,
    name: String,
    audit: Audit,
    limits: Limits,
}

impl Call {
    fn denied(&self, cause: &str) {
        self.audit.denied(&self.peer.actor, &self.name, cause);
    }
}

/// The caller of the current call; outside of a call, an unknown peer without rights.
pub(crate) fn caller() -> Peer {
    CALL.try_with(|call| call.peer.clone()).unwrap_or_default()
}

/// Name of the current call; outside of a call, an empty one.
fn current_call() -> String {
    CALL.try_with(|call| call.name.clone()).unwrap_or_default()
}

/// Waits until the current call may be worked at.
pub(crate) async fn working() -> Option<WorkPermit> {
    let call = CALL.try_with(Clone::clone).ok()?;
    Some(call.limits.work(&call.peer.actor).await)
}

/// Takes a watch of the caller's limit.
pub(crate) fn watching() -> Result<Option<Lease<Actor>>, Status> {
    let call = CALL.try_with(Clone::clone).ok();
    call.map(|call| call.limits.watch(&call.peer.actor)).transpose()
}

/// Logs that the current call is denied because of its content.
pub(super) fn denied(cause: &str) {
    let _outside_of_a_call = CALL.try_with(|call| call.denied(cause));
}

/// Layer that refuses calls that the caller's role does not permit, or that exceed a limit.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) audit: Audit,
    pub(crate) limits: Limits,
}

/// A service behind a [`Guard`].
#[derive(Clone, Debug)]
pub(crate) struct Guarded<S> {
    inner: S,
    guard: Guard,
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, guard: self.clone() }
    }
}

impl<S> Service<http::Request<Body>> for Guarded<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
        // Chosen by the caller, so escaped and cut.
        let name = request.uri().path().escape_debug().take(MAX_CALL_NAME).collect();
        let Guard { audit, limits } = self.guard.clone();
        let call = Call { peer, name, audit, limits };
        let lease = match permitted(&call.peer, &call.name) {
            Ok(()) => call.limits.call(&call.peer.actor),
            Err(cause) => {
                call.denied(&cause);
                Err(permission_denied(cause))
            }
        };
        let lease = match lease {
            Ok(lease) => lease,
            Err(status) => return Box::pin(async move { Ok(status.into_http()) }),
        };
        let (limits, actor) = (call.limits.clone(), call.peer.actor.clone());
        let (size, has_large_answer) = (request_size(&call.name), has_large_answer(&call.name));
        let request = match size {
            RequestSize::Large => {
                let (limits, actor) = (limits.clone(), actor.clone());
                request.map(|body| bodies::request(body, limits, actor))
            }
            RequestSize::Batch | RequestSize::Small => request,
        };
        let answer = CALL.scope(call, self.inner.call(request));
        Box::pin(async move {
            let turn = match has_large_answer {
                true => Some(limits.transfer(&actor).await),
                false => None,
            };
            let answer = answer.await?.map(|body| match turn {
                Some(turn) => bodies::answer(body, turn),
                None => body,
            });
            Ok(answer.map(|body| hold_lease(body, lease)))
        })
    }
}

pub(crate) fn permission_denied(cause: impl Into<String>) -> Status {
    ApiError::new(Code::PermissionDenied, ErrorReason::PermissionDenied, cause).into()
}

/// Holds the lease until the body has ended in any way.
fn hold_lease(body: Body, lease: Lease<Actor>) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _until_dropped = &lease;
        frame
    }))
}

/// Whether the peer may make a call, and if not, why.
pub(super) fn permitted(peer: &Peer, call: &str) -> Result<(), String> {
    let Peer { actor, role, scope, .. } = peer;
    let Some(role) = role else {
        return Err(format!("{actor}: has no role here; `tls-client` of the settings gives roles"));
    };
    let needs = needs(call);
    let least = match needs {
        Some(Needs::Role(least)) => least,
        // The call itself looks whether it is a dry run.
        Some(Needs::Change(_)) => Role::Plan,
        None => Role::Admin,
    };
    if *role < least {
        let least = if let Some(Needs::Change(least)) = needs { least } else { least };
        return Err(format!("{actor}: is {role}, but {call} needs {least}"));
    }
    match scope {
        Some(scope) if !is_of_pools(call, needs) => {
            Err(format!("{actor}: is {role} of the pools {scope}, but {call} concerns all pools"))
        }
        _ => Ok(()),
    }
}

/// Whether a client of some pools may make a call. The content of a change is then checked.
fn is_of_pools(call: &str, needs: Option<Needs>) -> bool {
    let changes = ["/spillway.v1.Objects/", "/spillway.v1.Overrides/"];
    // It counts what every viewer may read at each balancer.
    let is_count = call == "/spillway.v1.Fleet/CountBackendPackets";
    let is_change = changes.iter().any(|it| call.starts_with(it));
    needs == Some(Needs::Role(Role::Viewer)) || is_count || is_change
}
