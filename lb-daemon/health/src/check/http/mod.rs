//! HTTP checks: an HTTP/1.1 request, and as much of the answer as decides.

mod body;
mod framing;
mod response;

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use self::{framing::Framing, response::Response};
use super::{Failure, LineResult};
use crate::agent_report::ReportLine;
use lb_model::{CheckTls, HttpCheck};

pub(super) use body::MOST as BODY_MOST;

/// Buffer for each read, bytes; most heads fit.
const READ: usize = 1024;

/// Sends the request and reads the answer's head, and its body if configured, each up to a limit. `line` is set to
/// the agent report in the head, whatever the status.
pub(super) async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    server: SocketAddr,
    probe: &HttpCheck,
    tls: Option<&CheckTls>,
    line: &mut Option<LineResult>,
) -> Result<(), Failure> {
    stream.write_all(request(server, probe, tls).as_bytes()).await?;
    stream.flush().await?;
    let mut response = Response::default();
    let status = loop {
        let buffer = response.buffer();
        buffer.reserve(READ);
        if stream.read_buf(buffer).await? == 0 {
            return Err(Failure::Closed);
        }
        if let Some(status) = response.status()? {
            break status;
        }
    };
    *line = probe.agent_header.as_deref().map(|name| word_in(response.head(), name));
    let (min, max) = (probe.status_min, probe.status_max);
    if !(min..=max).contains(&status) {
        return Err(Failure::Status { status, min, max });
    }
    let Some(text) = &probe.body_contains else { return Ok(()) };
    let framing = Framing::of(&probe.method, status, response.head());
    body::contains(stream, framing, response.rest(), text).await
}

/// The agent report in the first header of a name.
fn word_in(head: &[u8], name: &str) -> LineResult {
    let value = framing::values(head, name.as_bytes()).next();
    let value = value.ok_or_else(|| format!("the answer has no header {name}"))?;
    ReportLine::parse(&value).map_err(|why| format!("header {name}: {why}"))
}

/// The request, RFC 9112.
fn request(server: SocketAddr, probe: &HttpCheck, tls: Option<&CheckTls>) -> String {
    let HttpCheck { method, path, host, .. } = probe;
    let name = tls.and_then(|tls| tls.server_name.clone());
    let host = host.clone().or(name).unwrap_or_else(|| server.to_string());
    let version = env!("CARGO_PKG_VERSION");
    let length =
        if matches!(&**method, "POST" | "PUT" | "PATCH") { "Content-Length: 0\r\n" } else { "" };
    // A text is looked for in the body as it is sent.
    let coding = if probe.body_contains.is_some() { "Accept-Encoding: identity\r\n" } else { "" };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: spillway/{version}\r\n\
         Accept: */*\r\n{coding}{length}Connection: close\r\n\r\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_model::Trust;

    fn probe(host: Option<&str>) -> HttpCheck {
        HttpCheck {
            method: "GET".to_owned(),
            path: "/healthz?full=1".to_owned(),
            host: host.map(str::to_owned),
            status_min: 200,
            status_max: 299,
            body_contains: None,
            agent_header: None,
        }
    }

    #[test]
    fn the_request_asks_for_the_path_and_names_the_host() {
        let text = request("192.0.2.1:8080".parse().unwrap(), &probe(None), None);
        let head = format!(
            "GET /healthz?full=1 HTTP/1.1\r\nHost: 192.0.2.1:8080\r\nUser-Agent: spillway/{}\r\n",
            env!("CARGO_PKG_VERSION"),
        );
        assert_eq!(text, head + "Accept: */*\r\nConnection: close\r\n\r\n");
        let named = request("192.0.2.1:80".parse().unwrap(), &probe(Some("www.example")), None);
        assert!(named.contains("\r\nHost: www.example\r\n"));
        let six = request("[2001:db8::1]:80".parse().unwrap(), &probe(None), None);
        assert!(six.contains("\r\nHost: [2001:db8::1]:80\r\n"));
        let tls = CheckTls { server_name: Some("shop.example".to_owned()), trust: Trust::Anybody };
        let over_tls = request("192.0.2.1:443".parse().unwrap(), &probe(None), Some(&tls));
        assert!(over_tls.contains("\r\nHost: shop.example\r\n"));
        let body = HttpCheck { body_contains: Some("well".into()), ..probe(None) };
        let body = request("192.0.2.1:80".parse().unwrap(), &body, None);
        assert!(body.contains("\r\nAccept-Encoding: identity\r\n"), "{body}");
        let posted = HttpCheck { method: "POST".to_owned(), ..probe(None) };
        let posted = request("192.0.2.1:80".parse().unwrap(), &posted, None);
        assert!(posted.starts_with("POST /healthz?full=1 HTTP/1.1\r\n"), "{posted}");
        assert!(posted.contains("\r\nContent-Length: 0\r\n"), "{posted}");
    }
}
