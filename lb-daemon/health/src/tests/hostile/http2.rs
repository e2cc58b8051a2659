//! HTTP/2 frames by hand, RFC 9113: length, type, flags, stream; then what is in it.

use super::*;
use lb_model::GrpcCheck;

pub(super) const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// Status 200, and "application/grpc" as content type: static table 8, and literal with name 31.
pub(super) const HEAD: &[u8] = b"\0\0\x14\x01\x04\0\0\0\x01\x88\x0f\x10\x10application/grpc";

pub(super) fn grpc(check: HealthCheck) -> HealthCheck {
    let probe = GrpcCheck { service: String::new(), authority: None };
    HealthCheck { probe: Probe::Grpc(probe), ..check }
}

/// A frame of the stream that the question is on, or of none.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// The verdict on who sends `begin` and goes on with `part` without end.
async fn endless(begin: &[u8], part: &[u8]) -> (Health, String) {
    let endless = |stream: TcpStream| async move {
        let (read, mut write) = stream.into_split();
        let flooding = async {
            if write.write_all(begin).await.is_ok() {
                flood(&mut write, part).await;
            }
        };
        // What the check answers to all that is read, or neither could go on.
        tokio::join!(silence(read), flooding);
    };
    verdict(&grpc(patient()), endless).await
}

/// Headers that take little room on the way and much when they are read: one of 4,000 bytes goes into
/// the table of HPACK (RFC 7541), and is then named by a byte as often as fits.
fn bomb() -> Vec<u8> {
    let long = [b"\x40\x01x\x7f\xa1\x1e".as_slice(), &[b'x'; 4000]].concat();
    let block = [b"\x88".as_slice(), &long, &[0xbe; 12_000]].concat();
    frame(1, 4, 1, &block)
}

#[tokio::test]
async fn what_has_no_end_is_cut_off() {
    let over = "over 262144 bytes came, and no answer";
    let none = "the answer is not HTTP/2";
    let begun = [SETTINGS, HEAD].concat();
    let mut wrong = Vec::new();
    for (name, begin, part, expected) in [
        ("settings", SETTINGS.to_vec(), SETTINGS.to_vec(), over),
        ("pings", SETTINGS.to_vec(), frame(6, 0, 0, b"12345678"), over),
        ("frames that nobody knows", SETTINGS.to_vec(), frame(0xbe, 0, 0, b"garbage"), over),
        ("priorities", SETTINGS.to_vec(), frame(2, 0, 1, &[0, 0, 0, 3, 7]), over),
        ("interim answers", SETTINGS.to_vec(), frame(1, 4, 1, b"\x08\x03100"), over),
        ("data without bytes", begun, frame(0, 0, 1, b""), none),
        ("data before the head", SETTINGS.to_vec(), frame(0, 0, 1, b"data"), none),
        (
            "continuations",
            [SETTINGS, &frame(1, 0, 1, b"\x88")].concat(),
            frame(9, 0, 1, b"\x88"),
            none,
        ),
        (
            "empty continuations",
            [SETTINGS, &frame(1, 0, 1, b"\x88")].concat(),
            frame(9, 0, 1, b""),
            none,
        ),
        ("bombs", SETTINGS.to_vec(), bomb(), none),
        ("windows", SETTINGS.to_vec(), frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), none),
    ] {
        let change = endless(&begin, &part).await;
        if change != fails(expected) {
            wrong.push(format!("{name}: {change:?}, expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_byte_now_and_then_is_waited_for_until_the_time_is_up() {
    for (begin, part) in [
        (&b""[..], SETTINGS),
        (SETTINGS, SETTINGS),
        (b"\0\0\0\x04\0\0\0\0\0\0\0\xff\x01\x04\0\0\0\x01\x88\x0f\x10\x10app", b"x"),
    ] {
        let slow = |mut stream: TcpStream| async move {
            stream.write_all(begin).await.unwrap();
            drip(&mut stream, part).await;
        };
        let late = fails("no answer within 300 ms");
        assert_eq!(verdict(&grpc(hasty()), slow).await, late, "{begin:?} {part:?}");
    }
    assert_eq!(verdict(&grpc(hasty()), silence).await, fails("no answer within 300 ms"));
}

/// All of the above is the backend's doing: one that answers in between passes.
#[tokio::test]
async fn the_answer_counts_amid_what_means_nothing() {
    let serving = frame(0, 0, 1, b"\0\0\0\0\x02\x08\x01");
    let noise = [frame(6, 0, 0, b"12345678"), frame(0xbe, 0, 0, b"garbage"), SETTINGS.to_vec()];
    let noise = noise.concat().repeat(100);
    let answer = [SETTINGS, &noise, HEAD, &noise, &serving].concat();
    let noisy = |mut stream: TcpStream| async move {
        stream.write_all(&answer).await.unwrap();
        silence(stream).await;
    };
    assert_eq!(verdict(&grpc(patient()), noisy).await, passes());
}
