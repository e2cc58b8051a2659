//! The call `Status`, whose answer has all backends. It is in front of the generated service, because that one would encode
//! each backend again for each caller, and here they are encoded once and shared until they change.

use std::{
    marker::PhantomData,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::BufMut;
use futures::{FutureExt as _, future::BoxFuture};
use prost::Message;
use spillway_proto::v1::{StatusRequest, StatusResponse};
use tonic::{
    Request, Response, Status,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{Body as HttpBody, StdError, http},
    server::{Grpc, NamedService, UnaryService},
};
use tower::Service;

use super::{
    access::working,
    convert::{self, OrStatus as _},
    server::{MAX_MESSAGE, MAX_SMALL_REQUEST},
};
use lb_control::command::{BackendStatus, Commands, PoolBackends};

const PATH: &str = "/spillway.v1.Spillway/Status";

/// Answers `Status` and leaves all other calls to another service.
#[derive(Clone, Debug)]
pub(super) struct WithStatus<S> {
    pub(super) inner: S,
    pub(super) commands: Commands,
}

impl<S: NamedService> NamedService for WithStatus<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for WithStatus<S>
where
    S: Service<http::Request<B>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        if request.uri().path() != PATH {
            return self.inner.call(request).boxed();
        }
        let call = StatusCall(self.commands.clone());
        async move {
            let mut grpc = Grpc::new(StatusCodec::default())
                .max_decoding_message_size(MAX_SMALL_REQUEST)
                .max_encoding_message_size(MAX_MESSAGE);
            Ok(grpc.unary(call, request).await)
        }
        .boxed()
    }
}

/// One call.
struct StatusCall(Commands);

impl UnaryService<StatusRequest> for StatusCall {
    type Response = Answer;
    type Future = BoxFuture<'static, Result<Response<Answer>, Status>>;

    fn call(&mut self, _: Request<StatusRequest>) -> Self::Future {
        let commands = self.0.clone();
        Box::pin(async move {
            let _at_work = working().await;
            let status = commands.status().await.or_status()?.or_status()?;
            let head = convert::without_backends(&status);
            Ok(Response::new(Answer { head, pools: status.pools }))
        })
    }
}

/// A [`StatusResponse`].
#[derive(Debug)]
struct Answer {
    /// Without backends.
    head: StatusResponse,
    pools: Vec<Arc<PoolBackends>>,
}

/// Fields of a message that follow those of another are fields of the same message.
fn encode(backends: &[BackendStatus]) -> Vec<u8> {
    let backends = backends.iter().map(convert::backend).collect();
    StatusResponse { backends, ..StatusResponse::default() }.encode_to_vec()
}

#[derive(Debug, Default)]
struct StatusCodec(PhantomData<Answer>);

impl Codec for StatusCodec {
    type Encode = Answer;
    type Decode = StatusRequest;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl Encoder for StatusCodec {
    type Item = Answer;
    type Error = Status;

    fn encode(&mut self, answer: Answer, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        let parts: Vec<_> = answer.pools.iter().map(|pool| pool.encoded(encode)).collect();
        buffer.reserve(
            answer.head.encoded_len() + parts.iter().map(|part| part.len()).sum::<usize>(),
        );
        answer.head.encode(buffer).map_err(|error| Status::internal(error.to_string()))?;
        parts.into_iter().for_each(|part| buffer.put_slice(part));
        Ok(())
    }
}

impl Decoder for StatusCodec {
    type Item = StatusRequest;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<StatusRequest>, Status> {
        let request = StatusRequest::decode(buffer);
        request.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
