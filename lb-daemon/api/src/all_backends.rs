//! The calls whose answers have all backends, `Status` and `Watch`. They are in front of the generated service, because
//! that one would encode each backend again for each caller, and here they are encoded once and shared until they change.

use std::{
    marker::PhantomData,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::BufMut as _;
use futures::{FutureExt as _, future::BoxFuture};
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};
use spillway_proto::v1::{
    BackendsChange, StatusRequest, StatusResponse, WatchRequest, WatchResponse,
    snapshot_begin::Cause as SnapshotCause,
};
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status,
    body::Body,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{Body as HttpBody, BoxStream, StdError, http},
    server::{Grpc, NamedService, ServerStreamingService, UnaryService},
};
use tower::Service;

use super::{
    access::{watching, working},
    backend_status::BackendSelection,
    convert::{self, OrStatus as _},
    server::{MAX_MESSAGE, MAX_SMALL_REQUEST},
    watch,
};
use lb_control::command::{self, BackendStatus, Commands};

const STATUS: &str = "/spillway.v1.Spillway/Status";
const WATCH: &str = "/spillway.v1.Spillway/Watch";
/// Number of the field `backends` of a `WatchResponse`.
const BACKENDS: u32 = 4;

/// Answers these calls and leaves all others to another service.
#[derive(Clone, Debug)]
pub(super) struct WithAllBackends<S> {
    pub(super) inner: S,
    pub(super) calls: Calls,
}

/// What answers the calls.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) commands: Commands,
    pub(super) stop: CancellationToken,
}

impl<S: NamedService> NamedService for WithAllBackends<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for WithAllBackends<S>
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
        let calls = self.calls.clone();
        match request.uri().path() {
            STATUS => async move { Ok(grpc().unary(calls, request).await) }.boxed(),
            WATCH => async move { Ok(grpc().server_streaming(calls, request).await) }.boxed(),
            _ => self.inner.call(request).boxed(),
        }
    }
}

fn grpc<T, U>() -> Grpc<SharedCodec<T, U>>
where
    SharedCodec<T, U>: Codec,
{
    Grpc::new(SharedCodec(PhantomData))
        .max_decoding_message_size(MAX_SMALL_REQUEST)
        .max_encoding_message_size(MAX_MESSAGE)
}

impl UnaryService<StatusRequest> for Calls {
    type Response = Answer;
    type Future = BoxFuture<'static, Result<Response<Answer>, Status>>;

    fn call(&mut self, request: Request<StatusRequest>) -> Self::Future {
        let Self { commands, .. } = self.clone();
        Box::pin(async move {
            let selection = BackendSelection::new(request.into_inner())?;
            let _at_work = working().await;
            let status = commands.status().await.or_status()?.or_status()?;
            Ok(Response::new(match selection.is_all() {
                true => Answer::Status(status.into()),
                false => Answer::Selected(selection.answer(&status).or_status()?.into()),
            }))
        })
    }
}

impl ServerStreamingService<WatchRequest> for Calls {
    type Response = Answer;
    type ResponseStream = BoxStream<Answer>;
    type Future = BoxFuture<'static, Result<Response<BoxStream<Answer>>, Status>>;

    fn call(&mut self, request: Request<WatchRequest>) -> Self::Future {
        let Self { commands, stop } = self.clone();
        Box::pin(async move {
            let place = watching()?;
            let _at_work = working().await;
            let token = request.into_inner().resume_token;
            let cause = match &*token {
                "" => SnapshotCause::First,
                _ => SnapshotCause::Token,
            };
            let subscription = commands.watch(token.parse().ok()).await.or_status()?.or_status()?;
            Ok(Response::new(watch::stream(commands, subscription, cause, place, stop)))
        })
    }
}

/// A message that may have all backends.
#[derive(Debug)]
pub(super) enum Answer {
    /// A `StatusResponse` with all backends.
    Status(Arc<command::Status>),
    /// One with some of them.
    Selected(Box<StatusResponse>),
    /// A `WatchResponse` with backends of a snapshot.
    SnapshotBackends(Vec<Arc<[u8]>>),
    /// Another `WatchResponse`.
    Watch(Box<WatchResponse>),
}

impl Answer {
    fn encode(&self, buffer: &mut EncodeBuf<'_>) -> Result<(), prost::EncodeError> {
        let (status, parts) = match self {
            Self::Selected(status) => return status.encode(buffer),
            Self::Watch(message) => return message.encode(buffer),
            Self::SnapshotBackends(parts) => (None, parts.clone()),
            Self::Status(status) => (Some(status), encoded_backends(status)),
        };
        let length: usize = parts.iter().map(|part| part.len()).sum();
        match status {
            Some(status) => {
                let head = convert::without_backends(status);
                buffer.reserve(head.encoded_len() + length);
                head.encode(buffer)?;
            }
            None => {
                buffer.reserve(key_len(BACKENDS) + encoded_len_varint(length as u64) + length);
                encode_key(BACKENDS, WireType::LengthDelimited, buffer);
                encode_varint(length as u64, buffer);
            }
        }
        parts.iter().for_each(|part| buffer.put_slice(part));
        Ok(())
    }
}

/// All backends, in parts that are encoded once. Fields of a message that follow those of another are fields of the same
/// message, and those of `StatusResponse` and `BackendsChange` have the same number.
pub(super) fn encoded_backends(status: &command::Status) -> Vec<Arc<[u8]>> {
    let encode = |backends: &[BackendStatus]| {
        let backends = backends.iter().map(convert::backend).collect();
        BackendsChange { backends, ..BackendsChange::default() }.encode_to_vec()
    };
    status.pools.iter().flat_map(|pool| pool.encoded(encode)).cloned().collect()
}

/// Takes messages `T` and answers `U`.
#[derive(Debug)]
struct SharedCodec<T, U>(PhantomData<(T, U)>);

impl<T: Message + Default + 'static> Codec for SharedCodec<T, Answer> {
    type Encode = Answer;
    type Decode = T;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(PhantomData)
    }

    fn decoder(&mut self) -> Self {
        Self(PhantomData)
    }
}

impl<T> Encoder for SharedCodec<T, Answer> {
    type Item = Answer;
    type Error = Status;

    fn encode(&mut self, answer: Answer, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        answer.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl<T: Message + Default> Decoder for SharedCodec<T, Answer> {
    type Item = T;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<T>, Status> {
        T::decode(buffer).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
