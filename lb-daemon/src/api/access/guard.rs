use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http_body_util::BodyExt;
use tonic::{Status, body::Body, codegen::http};
use tower::{Layer, Service};

use super::calls::least;
use crate::{
    access::{Lease, Peer, Role},
    api::limits::{Limits, WorkPermit},
    audit::Audit,
};
use lb_control::command::Actor;

/// Most characters of a call's name that are said again; each call that is served has fewer.
const LONGEST: usize = 100;

tokio::task_local! {
    /// The call that is being answered.
    static CALL: Call;
}

/// A call, and who made it.
#[derive(Clone, Debug)]
pub(in crate::api) struct Call {
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

/// Who made the call that is being answered; outside of one, somebody unknown who may do nothing.
pub(in crate::api) fn caller() -> Peer {
    CALL.try_with(|call| call.peer.clone()).unwrap_or_default()
}

/// Waits until the daemon may work at the call that is being answered.
pub(in crate::api) async fn working() -> Option<WorkPermit> {
    let call = CALL.try_with(Clone::clone).ok()?;
    Some(call.limits.work(&call.peer.actor).await)
}

/// The caller's place among those who watch.
///
/// # Errors
/// There is none.
pub(in crate::api) fn watching() -> Result<Option<Lease<Actor>>, Status> {
    let call = CALL.try_with(Clone::clone).ok();
    call.map(|call| call.limits.watch(&call.peer.actor)).transpose()
}

/// Notes that the call that is being answered is denied, for what it wants.
pub(super) fn denied(cause: &str) {
    let _outside_of_a_call = CALL.try_with(|call| call.denied(cause));
}

/// Lets through what the caller may call, as long as there is not too much of it.
#[derive(Clone, Debug)]
pub(in crate::api) struct Guard {
    pub(in crate::api) audit: Audit,
    pub(in crate::api) limits: Limits,
}

/// What is behind a [`Guard`].
#[derive(Clone, Debug)]
pub(in crate::api) struct Guarded<S> {
    inner: S,
    guard: Guard,
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, guard: self.clone() }
    }
}

impl<S, B> Service<http::Request<B>> for Guarded<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
        // Whoever calls chooses it.
        let name = request.uri().path().escape_debug().take(LONGEST).collect();
        let Guard { audit, limits } = self.guard.clone();
        let call = Call { peer, name, audit, limits };
        let lease = match permitted(&call.peer, &call.name) {
            Ok(()) => call.limits.call(&call.peer.actor),
            Err(cause) => {
                call.denied(&cause);
                Err(Status::permission_denied(cause))
            }
        };
        match lease {
            Ok(lease) => {
                let answer = CALL.scope(call, self.inner.call(request));
                Box::pin(async move { Ok(answer.await?.map(|body| held(body, lease))) })
            }
            Err(status) => Box::pin(async move { Ok(status.into_http()) }),
        }
    }
}

/// A body that gives the call's place back when it has ended, however it does.
fn held(body: Body, lease: Lease<Actor>) -> Body {
    Body::new(body.map_frame(move |frame| {
        let _until_dropped = &lease;
        frame
    }))
}

/// Whether somebody may call something, and if not, why not.
pub(super) fn permitted(peer: &Peer, call: &str) -> Result<(), String> {
    let Peer { actor, role, .. } = peer;
    let Some(role) = role else {
        return Err(format!("{actor}: has no role here; `tls-client` of the settings gives roles"));
    };
    match least(call) {
        _ if *role == Role::Admin => Ok(()),
        Some(least) if *role >= least => Ok(()),
        Some(least) => Err(format!("{actor}: is {role}, and {call} takes {least}")),
        None => Err(format!("{actor}: is {role}, and {call} takes admin")),
    }
}
