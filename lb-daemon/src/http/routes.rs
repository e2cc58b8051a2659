use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::task::spawn_blocking;

use super::{Reader, headers::guarded, page, reader::Unseen};
use crate::metrics::{self, MEDIA_TYPE, ReceiverFacts};
use lb_base::error_chain;

/// Reads what a receiver counted and knows, or says in words why it cannot.
pub type ReadReceiver = Arc<dyn Fn() -> Result<ReceiverFacts, String> + Send + Sync>;

/// What is shown, by path.
pub type Shown = Router;

/// What a balancer shows: its metrics, and where it is asked for its status page.
pub fn balancer(reader: Reader, status_page: bool) -> Shown {
    let mut routes = Router::new().route("/metrics", get(of_balancer));
    if status_page {
        routes = routes.route("/", get(page::document)).route("/data.json", get(page::data));
    }
    finished(routes.with_state(Arc::new(reader)))
}

/// What a receiver shows: its metrics.
pub fn receiver(read: ReadReceiver) -> Shown {
    finished(Router::new().route("/metrics", get(of_receiver)).with_state(read))
}

fn finished(routes: Router) -> Router {
    let nothing =
        async || (StatusCode::NOT_FOUND, "there is nothing here; metrics are at /metrics\n");
    routes.fallback(nothing).layer(middleware::map_response(async |answer| guarded(answer)))
}

async fn of_balancer(State(reader): State<Arc<Reader>>) -> Result<Response, Unseen> {
    let exposition = reader.seen().await?.metrics().await?;
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], exposition).into_response())
}

async fn of_receiver(State(read): State<ReadReceiver>) -> Response {
    let written = spawn_blocking(move || {
        let facts = read()?;
        metrics::of_receiver(facts).map_err(|error| error_chain::message(&error))
    });
    match written.await {
        Ok(Ok(exposition)) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], exposition).into_response(),
        Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

impl IntoResponse for Unseen {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, self.line()).into_response()
    }
}
