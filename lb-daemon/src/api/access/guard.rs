use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use tokio::task::futures::TaskLocalFuture;
use tonic::{Status, codegen::http};
use tower::{Layer, Service};

use super::calls::least;
use crate::{
    access::{Peer, Role},
    audit::Audit,
};

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

/// Notes that the call that is being answered is denied, for what it wants.
pub(super) fn denied(cause: &str) {
    let _outside_of_a_call = CALL.try_with(|call| call.denied(cause));
}

/// Lets through what the caller may call.
#[derive(Clone, Debug)]
pub(in crate::api) struct Guard(pub(in crate::api) Audit);

/// What is behind a [`Guard`].
#[derive(Clone, Debug)]
pub(in crate::api) struct Guarded<S> {
    inner: S,
    audit: Audit,
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, audit: self.0.clone() }
    }
}

impl<S, B, R> Service<http::Request<B>> for Guarded<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>>,
    R: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<Ready<Result<S::Response, S::Error>>, TaskLocalFuture<Call, S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
        // Whoever calls chooses it.
        let name = request.uri().path().escape_debug().take(LONGEST).collect();
        let call = Call { peer, name, audit: self.audit.clone() };
        match permitted(&call.peer, &call.name) {
            Ok(()) => Either::Right(CALL.scope(call, self.inner.call(request))),
            Err(cause) => {
                call.denied(&cause);
                Either::Left(ready(Ok(Status::permission_denied(cause).into_http())))
            }
        }
    }
}

/// Whether somebody may call something, and if not, why not.
pub(super) fn permitted(peer: &Peer, call: &str) -> Result<(), String> {
    let Peer { actor, role } = peer;
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
