//! What the generated clients and servers stand on. Encoding and decoding are at the edges: between them a call carries
//! bytes, so that tonic's machinery is compiled once and not for each of the messages.

use std::{convert::Infallible, future::Future, sync::Arc};

use prost::{
    DecodeError, EncodeError, Message,
    bytes::{Buf, Bytes},
};
use tonic::{
    Request, Response, Status, Streaming,
    body::Body,
    client,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{BoxFuture, BoxStream, http, http::uri::PathAndQuery},
    metadata::GRPC_CONTENT_TYPE,
    server::{self, ServerStreamingService, UnaryService},
    transport::Channel,
};
use tonic_prost::ProstCodec;

/// A message to be sent, of any type.
type Outgoing = Box<dyn Encodable>;

trait Encodable: Send + Sync {
    fn encode(&self, buffer: &mut EncodeBuf<'_>) -> Result<(), EncodeError>;
}

impl<M: Message> Encodable for M {
    fn encode(&self, buffer: &mut EncodeBuf<'_>) -> Result<(), EncodeError> {
        Message::encode(self, buffer)
    }
}

fn boxed<M: Message + 'static>(message: M) -> Outgoing {
    Box::new(message)
}

/// # Errors
/// The status that tonic's own codec makes of it.
fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error: DecodeError| Status::internal(error.to_string()))
}

/// Takes any message, and hands on the bytes of one.
#[derive(Debug, Clone, Copy)]
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Outgoing;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Outgoing;
    type Error = Status;

    fn encode(&mut self, message: Outgoing, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// How long messages may be, in bytes: unless set, of those that are received 4 MiB, of those that are sent anything.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) decoding: Option<usize>,
    pub(crate) encoding: Option<usize>,
}

/// A client of any service.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    channel: Channel,
    pub(crate) limits: Limits,
}

impl Client {
    pub(crate) fn new(channel: Channel) -> Self {
        Self { channel, limits: Limits::default() }
    }

    pub(crate) fn unary<M, A>(
        &self,
        path: &'static str,
        request: Request<M>,
    ) -> BoxFuture<Response<A>, Status>
    where
        M: Message + 'static,
        A: Message + Default,
    {
        let answer = self.send(path, request.map(boxed));
        Box::pin(async move {
            let (metadata, answer, extensions) = answer.await?.into_parts();
            Ok(Response::from_parts(metadata, decoded(answer)?, extensions))
        })
    }

    pub(crate) fn server_streaming<M, A>(
        &self,
        path: &'static str,
        request: Request<M>,
    ) -> BoxFuture<Response<Streaming<A>>, Status>
    where
        M: Message + 'static,
        A: Message + Default + 'static,
    {
        let client = self.clone();
        Box::pin(async move {
            let path = PathAndQuery::from_static(path);
            client
                .ready()
                .await?
                .server_streaming(request, path, ProstCodec::<M, A>::default())
                .await
        })
    }

    fn send(
        &self,
        path: &'static str,
        request: Request<Outgoing>,
    ) -> BoxFuture<Response<Bytes>, Status> {
        let client = self.clone();
        Box::pin(async move {
            client.ready().await?.unary(request, PathAndQuery::from_static(path), BytesCodec).await
        })
    }

    /// Waits until the channel takes a request.
    async fn ready(self) -> Result<client::Grpc<Channel>, Status> {
        let mut client = client::Grpc::new(self.channel);
        if let Some(limit) = self.limits.decoding {
            client = client.max_decoding_message_size(limit);
        }
        if let Some(limit) = self.limits.encoding {
            client = client.max_encoding_message_size(limit);
        }
        let is_ready = client.ready().await;
        is_ready.map_err(|error| Status::unknown(format!("Service was not ready: {error}")))?;
        Ok(client)
    }
}

/// What a server answers with.
pub(crate) type Answer = BoxFuture<http::Response<Body>, Infallible>;

type Method = Box<dyn FnMut(Request<Bytes>) -> BoxFuture<Response<Outgoing>, Status> + Send>;

struct Unary(Method);

impl UnaryService<Bytes> for Unary {
    type Response = Outgoing;
    type Future = BoxFuture<Response<Outgoing>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        (self.0)(request)
    }
}

/// Answers by a method of a service.
pub(crate) fn unary<S, M, A, F>(
    service: &Arc<S>,
    limits: Limits,
    request: http::Request<Body>,
    method: fn(Arc<S>, Request<M>) -> F,
) -> Answer
where
    S: ?Sized + Send + Sync + 'static,
    M: Message + Default + 'static,
    A: Message + 'static,
    F: Future<Output = Result<Response<A>, Status>> + Send + 'static,
{
    let service = Arc::clone(service);
    let method = move |request: Request<Bytes>| -> BoxFuture<Response<Outgoing>, Status> {
        let service = Arc::clone(&service);
        let (metadata, extensions, message) = request.into_parts();
        Box::pin(async move {
            let request = Request::from_parts(metadata, extensions, decoded(message)?);
            Ok(method(service, request).await?.map(boxed))
        })
    };
    answer(limits, request, Unary(Box::new(method)))
}

fn answer(limits: Limits, request: http::Request<Body>, method: Unary) -> Answer {
    Box::pin(async move {
        let mut server = server::Grpc::new(BytesCodec)
            .apply_max_message_size_config(limits.decoding, limits.encoding);
        Ok(server.unary(method, request).await)
    })
}

/// A call of a method that returns a stream.
type StreamingCall<A> = BoxFuture<Response<BoxStream<A>>, Status>;

struct Streamed<S: ?Sized, M, A> {
    service: Arc<S>,
    method: fn(Arc<S>, Request<M>) -> StreamingCall<A>,
}

impl<S, M, A> ServerStreamingService<M> for Streamed<S, M, A>
where
    S: ?Sized + Send + Sync + 'static,
{
    type Response = A;
    type ResponseStream = BoxStream<A>;
    type Future = StreamingCall<A>;

    fn call(&mut self, request: Request<M>) -> Self::Future {
        (self.method)(Arc::clone(&self.service), request)
    }
}

/// Answers by a method of a service that returns a stream.
pub(crate) fn server_streaming<S, M, A>(
    service: &Arc<S>,
    limits: Limits,
    request: http::Request<Body>,
    method: fn(Arc<S>, Request<M>) -> StreamingCall<A>,
) -> Answer
where
    S: ?Sized + Send + Sync + 'static,
    M: Message + Default + 'static,
    A: Message + 'static,
{
    let method = Streamed { service: Arc::clone(service), method };
    Box::pin(async move {
        let mut server = server::Grpc::new(ProstCodec::<A, M>::default())
            .apply_max_message_size_config(limits.decoding, limits.encoding);
        Ok(server.server_streaming(method, request).await)
    })
}

/// The answer to a method that the service does not have.
pub(crate) fn unimplemented() -> Answer {
    let mut response = http::Response::new(Body::default());
    let headers = response.headers_mut();
    headers.insert(Status::GRPC_STATUS, (tonic::Code::Unimplemented as i32).into());
    headers.insert(http::header::CONTENT_TYPE, GRPC_CONTENT_TYPE);
    Box::pin(async { Ok(response) })
}
