//! HTTP answers whose body counts.

use super::*;

const TEXT: &str = "all is well";

fn with_text(server: SocketAddr) -> HealthCheck {
    let mut check = http(server);
    check.interval = Duration::from_secs(3600);
    let CheckKind::Http(probe) = &mut check.kind else { unreachable!("it is http") };
    probe.body_contains = Some(TEXT.to_owned());
    check
}

/// The verdict on a server that answers `parts`, each in a packet of its own, and leaves the
/// connection as `close` says.
async fn after(parts: &[&str], close: bool) -> String {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { timeout: Duration::from_millis(2000), ..with_text(server.address) };
    let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let answering = async {
        let mut held = server.next().await;
        held.request().await;
        for part in parts {
            held.send(part).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if close {
            held.shut().await;
        }
        held
    };
    let ((_, _, _, reason), _held) = tokio::join!(probing.next(), answering);
    reason.strip_prefix("check up: ").unwrap_or(&reason).to_owned()
}

#[tokio::test]
async fn the_text_must_be_in_the_body() {
    let head = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let lacks = "the body has no \"all is well\"";
    for (parts, close, expected) in [
        (&[head, "Content-Length: 13\r\n\r\n<all is well>"][..], false, PASSES),
        (&[head, "Content-Length: 13\r\n\r\n<all ", "is well>"], false, PASSES),
        // As soon as it is there, however much is to come.
        (&[head, "Content-Length: 99999\r\n\r\n<all is well>"], false, PASSES),
        (&[head, "\r\n<all is well>"], true, PASSES),
        (&[chunked, "5\r\n<all \r\n8\r\nis", " well>\r\n0\r\n\r\n"], false, PASSES),
        (&[head, "Content-Length: 3\r\n\r\nok\nall is well"], false, lacks),
        (&[head, "X: all is well\r\nContent-Length: 0\r\n\r\n"], false, lacks),
        (&[head, "\r\nall is not well"], true, lacks),
        (&[chunked, "3\r\nall\r\n0\r\n\r\n is well"], false, lacks),
        (&[chunked, "3\r\nall is well"], false, "the body's chunks are not HTTP/1.1"),
        (&[head, "Content-Length: 9\r\n\r\nall"], true, "connection closed before the answer"),
        (&[head, "Content-Length: 9\r\n\r\nall"], false, "no answer within 2000 ms"),
        (&["HTTP/1.1 500 X\r\n\r\nall is well"], true, "status 500, expected 200 to 299"),
    ] {
        assert_eq!(after(parts, close).await, expected, "{parts:?}");
    }
}

#[tokio::test]
async fn the_method_is_the_one_given() {
    let mut server = Server::start("127.0.0.1:0").await;
    let mut check = http(server.address);
    let CheckKind::Http(probe) = &mut check.kind else { unreachable!("it is http") };
    probe.method = "HEAD".to_owned();
    let _probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let request = server.next().await.request().await;
    assert!(request.starts_with("HEAD /health HTTP/1.1\r\n"), "{request}");
}

#[tokio::test]
async fn an_endless_body_is_looked_at_up_to_a_bound() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = with_text(server.address);
    let mut probing = Probing::start(vec![target("web", server.address, &[("up", &check)])]);
    let endless = async {
        let mut held = server.next().await;
        held.request().await;
        held.send("HTTP/1.1 200 OK\r\n\r\n").await;
        held.send_forever("all is wel, all is wel, ").await
    };
    let ((_, health, _, reason), _) = tokio::join!(probing.next(), endless);
    let expected = "check up: the body's first 65536 bytes have no \"all is well\"";
    assert_eq!((health, &*reason), (Failing, expected));
}
