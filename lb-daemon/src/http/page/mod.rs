//! The status page: one document with everything in it, and the data that it asks for again and again.

mod data;

use std::sync::{Arc, LazyLock};

use axum::{
    Json,
    extract::{Query, State},
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use serde::Deserialize;

use super::{Reader, reader::Unseen};
use data::Data;

/// One file with style and script in it; they run because they bear the answer's nonce.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    include_str!("page.html")
        .replace("STYLE", include_str!("style.css"))
        .replace("SCRIPT", include_str!("script.js"))
});
/// What stands for the nonce in the document.
const NONCE: &str = "NONCE";

/// Which pool's backends are wanted.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    /// Name; all of them where there are few, else of none.
    pool: Option<String>,
}

/// The document.
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

/// What the document shows.
pub(super) async fn data(
    State(reader): State<Arc<Reader>>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Data>, Unseen> {
    let seen = reader.seen().await?;
    let mut data = Data::new(&seen.facts, wanted.pool.as_deref());
    for pool in data.told() {
        data.remember(&reader.history(&seen, &pool).await?);
    }
    Ok(Json(data))
}
