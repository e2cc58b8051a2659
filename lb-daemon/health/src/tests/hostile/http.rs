//! HTTP.

use super::*;

const TEXT: &str = "all is well";
const BODY_BOUND: usize = 65_536;
const HEAD_BOUND: usize = 16_384;

/// A check that looks for [`TEXT`].
fn looking(check: HealthCheck) -> HealthCheck {
    let CheckKind::Http(probe) = check.kind else { unreachable!("it is http") };
    let probe = HttpCheck { body_contains: Some(TEXT.to_owned()), ..probe };
    HealthCheck { kind: CheckKind::Http(probe), ..check }
}

/// The verdict on an answer that begins so, goes on with `part` without end, and comes at once.
async fn endless(begin: &str, part: &str) -> (Health, String) {
    let endless = |mut stream: TcpStream| async move {
        request(&mut stream).await;
        if stream.write_all(begin.as_bytes()).await.is_ok() {
            flood(&mut stream, part.as_bytes()).await;
        }
    };
    verdict(&looking(patient()), endless).await
}

#[tokio::test]
async fn what_has_no_end_is_cut_off() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let head = "the answer's head is over 16384 bytes";
    let body = "the body's first 65536 bytes have no \"all is well\"";
    let chunks = "the body's chunks are not HTTP/1.1";
    for (begin, part, expected) in [
        ("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n", head),
        ("HTTP/1.1 200 OK", "and why", head),
        ("", "HTTP/1.1 100 Continue\r\n\r\n", head),
        ("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", head),
        ("HTTP/1.1 200 OK\r\n\r\n", "all is wel", body),
        ("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", "all is wel", body),
        (chunked, "1\r\na\r\n", body),
        (chunked, "a\r\nall is wel\r\n", body),
        (&format!("{chunked}ffffffffffffffff\r\n"), "all is wel", body),
        (chunked, "0", chunks),
        (&format!("{chunked}1;"), "extension", chunks),
        ("", "\0", "the answer is not HTTP/1"),
    ] {
        assert_eq!(endless(begin, part).await, fails(expected), "{begin:?} {part:?}");
    }
}

#[tokio::test]
async fn a_body_counts_up_to_the_bound_and_not_a_byte_further() {
    let ending_at = |end: usize| format!("{}{TEXT}", "x".repeat(end - TEXT.len()));
    let lacks = fails("the body's first 65536 bytes have no \"all is well\"");
    for (end, expected) in
        [(BODY_BOUND - 1, passes()), (BODY_BOUND, passes()), (BODY_BOUND + 1, lacks)]
    {
        // With the head in one piece, and after it.
        for gap in [Duration::ZERO, Duration::from_millis(5)] {
            let body = ending_at(end);
            let answer = |mut stream: TcpStream| async move {
                request(&mut stream).await;
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n";
                if gap.is_zero() {
                    let whole = [head.as_bytes(), body.as_bytes()].concat();
                    let _ = stream.write_all(&whole).await;
                } else {
                    stream.write_all(head.as_bytes()).await.unwrap();
                    tokio::time::sleep(gap).await;
                    let _ = stream.write_all(body.as_bytes()).await;
                }
                silence(stream).await;
            };
            assert_eq!(verdict(&looking(patient()), answer).await, expected, "{end}, {gap:?}");
        }
    }
}

#[tokio::test]
async fn a_head_counts_up_to_the_bound_however_it_comes() {
    const BEGIN: &str = "HTTP/1.1 200 OK\r\nX: ";
    let long = |bytes: usize| format!("{BEGIN}{}\r\n\r\n", "x".repeat(bytes - BEGIN.len() - 4));
    let over = fails("the answer's head is over 16384 bytes");
    for (bytes, expected) in [(HEAD_BOUND, passes()), (HEAD_BOUND + 1, over)] {
        for parts in [1, 2, 8, 1000] {
            let head = long(bytes);
            assert_eq!(head.len(), bytes);
            let answer = |mut stream: TcpStream| async move {
                stream.set_nodelay(true).unwrap();
                request(&mut stream).await;
                for part in head.as_bytes().chunks(bytes.div_ceil(parts)) {
                    if stream.write_all(part).await.is_err() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                silence(stream).await;
            };
            assert_eq!(verdict(&patient(), answer).await, expected, "{bytes} in {parts}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_its_status_and_nobody_goes_there() {
    let elsewhere = Server::start("127.0.0.1:0").await;
    for status in [300, 301, 302, 303, 307, 308] {
        let there = elsewhere.address;
        let redirect = |mut stream: TcpStream| async move {
            request(&mut stream).await;
            let head = format!(
                "HTTP/1.1 {status} Moved\r\nLocation: http://{there}/health\r\n\
                 Refresh: 0; url=http://{there}/\r\nContent-Length: 0\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            silence(stream).await;
        };
        let expected = format!("status {status}, expected 200 to 299");
        assert_eq!(verdict(&patient(), redirect).await, fails(&expected));
    }
    assert_eq!(elsewhere.waiting(), 0);
}

#[tokio::test]
async fn a_byte_now_and_then_is_waited_for_until_the_time_is_up() {
    let late = fails("no answer within 300 ms");
    for (begin, part) in [
        ("", "HTTP/1.1 200 OK\r\nX-More: and more of it\r\nX: "),
        ("HTTP/1.1 200 OK\r\n", "X: y\r\n"),
        ("HTTP/1.1 200 OK\r\n\r\n", "all is wel"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n"),
    ] {
        let slow = |mut stream: TcpStream| async move {
            request(&mut stream).await;
            stream.write_all(begin.as_bytes()).await.unwrap();
            drip(&mut stream, part.as_bytes()).await;
        };
        assert_eq!(verdict(&looking(hasty()), slow).await, late, "{begin:?} {part:?}");
    }
    // As slow, but with the text before the time is up.
    let slow = |mut stream: TcpStream| async move {
        request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        drip(&mut stream, TEXT.as_bytes()).await;
    };
    assert_eq!(verdict(&looking(patient()), slow).await, passes());
}

#[tokio::test]
async fn who_accepts_and_says_nothing_has_no_more_than_the_time() {
    assert_eq!(verdict(&hasty(), silence).await, fails("no answer within 300 ms"));
    // Of tcp the connection is all that is asked for.
    let tcp = HealthCheck { kind: CheckKind::Tcp, ..patient() };
    assert_eq!(verdict(&tcp, silence).await, passes());
}
