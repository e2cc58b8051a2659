//! The gRPC health protocol: one call of `grpc.health.v1.Health/Check` over HTTP/2.

use std::{fmt, net::SocketAddr};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::{RecvStream, client};
use http::{HeaderMap, Method, Request, Uri, Version, header, uri::Scheme};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Failure, stream::ErrorRecorder};
use lb_model::{CheckTls, GrpcCheck};

const PATH: &str = "/grpc.health.v1.Health/Check";

/// Longest message that is read, bytes: the answer is one small number.
const MOST: usize = 1024;

/// Limit of headers, bytes; most are far shorter.
const MOST_HEADERS: u32 = 16 * 1024;

/// Bytes before a message: compression flag and length.
const PREFIX: usize = 5;

/// `grpc.health.v1.HealthCheckRequest`
#[derive(Clone, PartialEq, Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

/// `grpc.health.v1.HealthCheckResponse`
#[derive(Clone, PartialEq, Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// Calls the health service and reads its answer.
pub(super) async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    server: SocketAddr,
    probe: &GrpcCheck,
    tls: Option<&CheckTls>,
) -> Result<(), Failure> {
    let stream = ErrorRecorder::new(stream);
    let broken = stream.broken();
    ask_on(stream, server, probe, tls).await.map_err(|failure| match failure {
        Failure::Io(_) | Failure::Http2(_) | Failure::Closed => {
            broken.take().map_or(failure, Failure::from)
        }
        failure => failure,
    })
}

async fn ask_on<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    server: SocketAddr,
    probe: &GrpcCheck,
    tls: Option<&CheckTls>,
) -> Result<(), Failure> {
    let mut builder = client::Builder::new();
    // Data that is not read fills the window and stops.
    builder
        .enable_push(false)
        .max_header_list_size(MOST_HEADERS)
        .max_send_buffer_size(PREFIX + MOST);
    let (sender, connection) = builder.handshake::<_, Bytes>(stream).await?;
    let calling = call(sender, server, probe, tls);
    tokio::pin!(calling, connection);
    let mut closed = None;
    loop {
        tokio::select! {
            biased;
            answer = &mut calling => {
                // The connection's error is more specific than the call's.
                return match (answer, closed) {
                    (Err(_), Some(Err(error))) => Err(error),
                    (Err(Failure::Http2(_)), Some(Ok(()))) => Err(Failure::Closed),
                    (answer, _) => answer,
                };
            }
            end = &mut connection, if closed.is_none() => closed = Some(end.map_err(Failure::from)),
        }
    }
}

async fn call(
    sender: client::SendRequest<Bytes>,
    server: SocketAddr,
    probe: &GrpcCheck,
    tls: Option<&CheckTls>,
) -> Result<(), Failure> {
    let mut sender = sender.ready().await?;
    let (answer, mut body) = sender.send_request(request(server, probe, tls)?, false)?;
    body.send_data(message(&probe.service), true)?;
    let (head, mut body) = answer.await?.into_parts();
    let is_grpc = |value: &http::HeaderValue| value.as_bytes().starts_with(b"application/grpc");
    if !head.headers.get(header::CONTENT_TYPE).is_some_and(is_grpc) {
        return Err(Failure::NotGrpc(head.status.as_u16()));
    }
    // A response without a message has its status in the head.
    succeeded(&head.headers)?;
    let answer = read(&mut body).await?;
    if answer.is_none() {
        succeeded(&body.trailers().await?.unwrap_or_default())?;
    }
    match answer.map(|answer| ServingStatus::from(answer.status)) {
        Some(ServingStatus::Serving) => Ok(()),
        Some(other) => Err(Failure::NotServing(other)),
        None => Err(Failure::NotHealth),
    }
}

fn request(
    server: SocketAddr,
    probe: &GrpcCheck,
    tls: Option<&CheckTls>,
) -> Result<Request<()>, Failure> {
    let name = tls.and_then(|tls| tls.server_name.clone());
    let authority = probe.authority.clone().or(name).unwrap_or_else(|| server.to_string());
    let scheme = if tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(PATH).build();
    let request = Request::builder()
        .version(Version::HTTP_2)
        .method(Method::POST)
        .uri(uri.map_err(|_| Failure::NotHealth)?)
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, concat!("spillway/", env!("CARGO_PKG_VERSION")))
        .body(());
    request.map_err(|_| Failure::NotHealth)
}

/// The request message with its prefix.
fn message(service: &str) -> Bytes {
    let request = HealthCheckRequest { service: service.to_owned() }.encode_to_vec();
    let mut bytes = BytesMut::with_capacity(PREFIX + request.len());
    bytes.put_u8(0);
    // Validation limits a service's name to 255 bytes.
    bytes.put_u32(u32::try_from(request.len()).unwrap_or_default());
    bytes.put_slice(&request);
    bytes.freeze()
}

/// The first message of a response; `None`: there is none.
async fn read(body: &mut RecvStream) -> Result<Option<HealthCheckResponse>, Failure> {
    let mut bytes = BytesMut::new();
    while let Some(part) = body.data().await {
        let part = part?;
        if body.flow_control().release_capacity(part.len()).is_err() {
            return Err(Failure::NotHealth);
        }
        bytes.extend_from_slice(&part);
        if bytes.len() < PREFIX {
            continue;
        }
        let mut prefix = &bytes[..PREFIX];
        let (compressed, length) = (prefix.get_u8() != 0, prefix.get_u32());
        let length = usize::try_from(length).ok().filter(|length| *length <= MOST);
        let (Some(length), false) = (length, compressed) else { return Err(Failure::NotHealth) };
        if let Some(message) = bytes.get(PREFIX..PREFIX + length) {
            let answer = HealthCheckResponse::decode(message);
            return answer.map(Some).map_err(|_| Failure::NotHealth);
        }
    }
    match bytes.is_empty() {
        true => Ok(None),
        false => Err(Failure::NotHealth),
    }
}

/// Whether headers, or trailers, say that the call succeeded.
fn succeeded(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(status) = headers.get("grpc-status") else { return Ok(()) };
    let code = status.to_str().ok().and_then(|code| code.parse::<u8>().ok());
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::GrpcStatus(code)),
        None => Err(Failure::NotHealth),
    }
}

/// `HealthCheckResponse.ServingStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServingStatus {
    Unknown,
    Serving,
    NotServing,
    ServiceUnknown,
    /// A number that the protocol does not define.
    Other(i32),
}

impl From<i32> for ServingStatus {
    fn from(number: i32) -> Self {
        match number {
            0 => Self::Unknown,
            1 => Self::Serving,
            2 => Self::NotServing,
            3 => Self::ServiceUnknown,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for ServingStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("UNKNOWN"),
            Self::Serving => f.write_str("SERVING"),
            Self::NotServing => f.write_str("NOT_SERVING"),
            Self::ServiceUnknown => f.write_str("SERVICE_UNKNOWN"),
            Self::Other(number) => write!(f, "status {number}"),
        }
    }
}
