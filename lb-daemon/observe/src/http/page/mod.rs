//! The status page: one document with style and script, and the data that it polls.

mod data;
mod fleet;

use std::sync::{Arc, LazyLock};

use axum::{
    Json,
    extract::{Query, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use serde::Deserialize;

use super::{Reader, reader::ReadError};
use data::Data;

/// Style and script are inline, and run because they carry the answer's nonce.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    include_str!("page.html")
        .replace("STYLE", include_str!("style.css"))
        .replace("SCRIPT", concat!(include_str!("script.js"), include_str!("fleet.js")))
});
/// Placeholder of the nonce.
const NONCE: &str = "NONCE";

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    /// The pool whose backends are shown; unset: of all pools if there are few backends, else of none.
    pool: Option<String>,
}

pub(super) async fn document() -> Response {
    let mut bytes = [0_u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        return (StatusCode::SERVICE_UNAVAILABLE, "no random number\n").into_response();
    }
    let nonce = format!("{:032x}", u128::from_ne_bytes(bytes));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let document = DOCUMENT.replace(NONCE, &nonce);
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(document)).into_response()
}

pub(super) async fn data(
    State(reader): State<Arc<Reader>>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Data>, ReadError> {
    let snapshot = reader.snapshot().await?;
    let mut data = Data::new(&snapshot.facts, query.pool.as_deref());
    for pool in data.told() {
        data.remember(&reader.history(&snapshot, &pool).await?);
    }
    Ok(Json(data))
}
