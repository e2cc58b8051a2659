//! The HTTP listener: metrics, and a status page if the settings ask for it. Off by default. It answers GET only, changes
//! nothing. With a file of tokens only clients that have one may read, and with a certificate it speaks TLS.
//!
//! Its cost is bounded: the number of connections, of which an idle one gives way to a new one, the time of a
//! request and of a connection, and how often the state and the maps are read for all clients together.

mod connection;
mod connection_limit;
mod credentials;
mod page;
mod reader;
mod server;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::task::spawn_blocking;

use crate::metrics::{self, MEDIA_TYPE, ReceiverFacts};
use connection::ClientAddress;
use lb_base::error_chain;
use reader::ReadError;
use tokens::CHALLENGES;

pub use credentials::{HttpCredentials, HttpFiles, HttpFilesError};
pub use reader::Reader;
pub use server::{BindError, bind, serve};

/// Reads a receiver's facts, or returns why it cannot.
pub type ReadReceiver = Arc<dyn Fn() -> Result<ReceiverFacts, String> + Send + Sync>;

pub type HttpRoutes = Router;

/// The routes of a balancer: metrics, and the status page if the settings ask for it.
pub fn balancer(reader: Reader, status_page: bool) -> HttpRoutes {
    let mut routes = Router::new().route("/metrics", get(balancer_metrics));
    if status_page {
        routes = routes.route("/", get(page::document)).route("/data.json", get(page::data));
    }
    with_not_found(routes.with_state(Arc::new(reader)))
}

/// The routes of a receiver: metrics.
pub fn receiver(read: ReadReceiver) -> HttpRoutes {
    with_not_found(Router::new().route("/metrics", get(receiver_metrics)).with_state(read))
}

fn with_not_found(routes: Router) -> Router {
    routes.fallback(async || (StatusCode::NOT_FOUND, "not found; metrics are at /metrics\n"))
}

/// Puts the check of tokens before routes, and the headers of all answers around both.
fn with_auth(routes: Router, credentials: HttpCredentials) -> Router {
    let check = async |State(credentials): State<HttpCredentials>,
                       Extension(ClientAddress(client)): Extension<ClientAddress>,
                       request: Request,
                       next: Next| {
        match credentials.is_authorized(client, request.headers()) {
            true => next.run(request).await,
            false => unauthorized(),
        }
    };
    let check = middleware::from_fn_with_state(credentials, check);
    routes.layer(check).layer(middleware::map_response(async |answer| add_headers(answer)))
}

fn unauthorized() -> Response {
    let text = "a token is needed: as a bearer, or as the password of any user\n";
    let mut answer = (StatusCode::UNAUTHORIZED, text).into_response();
    for challenge in CHALLENGES {
        answer.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
    }
    answer
}

async fn balancer_metrics(State(reader): State<Arc<Reader>>) -> Result<Response, ReadError> {
    let exposition = reader.snapshot().await?.metrics().await?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], exposition).into_response())
}

async fn receiver_metrics(State(read): State<ReadReceiver>) -> Response {
    let written = spawn_blocking(move || {
        let facts = read()?;
        metrics::receiver_exposition(facts).map_err(|error| error_chain::message(&error))
    });
    match written.await {
        Ok(Ok(exposition)) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], exposition).into_response(),
        Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

impl IntoResponse for ReadError {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, self.line()).into_response()
    }
}

/// Adds headers against caching, content sniffing, framing and referrers.
fn add_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
        headers.insert(header::CONTENT_SECURITY_POLICY, nothing);
    }
    response
}
