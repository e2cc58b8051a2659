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

tokio::task_local! {
    /// Who made the call that is being answered.
    static CALLER: Peer;
}

/// Who made the call that is being answered; outside of one, somebody unknown who may do nothing.
pub(in crate::api) fn caller() -> Peer {
    CALLER.try_with(Clone::clone).unwrap_or_default()
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
    type Future = Either<Ready<Result<S::Response, S::Error>>, TaskLocalFuture<Peer, S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
        let call = request.uri().path();
        match permitted(&peer, call) {
            Ok(()) => Either::Right(CALLER.scope(peer, self.inner.call(request))),
            Err(cause) => {
                self.audit.denied(&peer.actor, call, &cause);
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
