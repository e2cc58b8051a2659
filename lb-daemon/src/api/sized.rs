use std::task::{Context, Poll};

use futures::{FutureExt, future::BoxFuture, ready};
use tonic::{codegen::http, server::NamedService};
use tower::Service;

use super::access::takes_admin;

/// A service twice: for calls that take a whole configuration, and for all others, so that only those who may change
/// everything can have the daemon read a large request.
#[derive(Clone, Debug)]
pub(super) struct BySize<S> {
    pub(super) large: S,
    pub(super) small: S,
}

impl<S: NamedService> NamedService for BySize<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for BySize<S>
where
    S: Service<http::Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        ready!(self.large.poll_ready(context))?;
        self.small.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        match takes_admin(request.uri().path()) {
            true => self.large.call(request).boxed(),
            false => self.small.call(request).boxed(),
        }
    }
}
