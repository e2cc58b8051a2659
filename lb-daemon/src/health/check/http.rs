use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Failure, response::Response};
use crate::model::HttpProbe;

/// Room made before each read; most heads fit.
const READ: usize = 1024;

/// Sends the request and reads the answer's head, and no further than a bound.
pub(super) async fn ask(
    stream: &mut TcpStream,
    server: SocketAddr,
    probe: &HttpProbe,
) -> Result<(), Failure> {
    stream.write_all(request(server, probe).as_bytes()).await?;
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
    let (min, max) = (probe.status_min, probe.status_max);
    match (min..=max).contains(&status) {
        true => Ok(()),
        false => Err(Failure::Status { status, min, max }),
    }
}

/// The request, RFC 9112.
fn request(server: SocketAddr, probe: &HttpProbe) -> String {
    let host = probe.host.clone().unwrap_or_else(|| server.to_string());
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: spillway/{version}\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        probe.path,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(host: Option<&str>) -> HttpProbe {
        HttpProbe {
            path: "/healthz?full=1".to_owned(),
            host: host.map(str::to_owned),
            status_min: 200,
            status_max: 299,
        }
    }

    #[test]
    fn the_request_asks_for_the_path_and_names_the_host() {
        let text = request("192.0.2.1:8080".parse().unwrap(), &probe(None));
        let head = format!(
            "GET /healthz?full=1 HTTP/1.1\r\nHost: 192.0.2.1:8080\r\nUser-Agent: spillway/{}\r\n",
            env!("CARGO_PKG_VERSION"),
        );
        assert_eq!(text, head + "Accept: */*\r\nConnection: close\r\n\r\n");
        let named = request("192.0.2.1:80".parse().unwrap(), &probe(Some("www.example")));
        assert!(named.contains("\r\nHost: www.example\r\n"));
        let six = request("[2001:db8::1]:80".parse().unwrap(), &probe(None));
        assert!(six.contains("\r\nHost: [2001:db8::1]:80\r\n"));
    }
}
