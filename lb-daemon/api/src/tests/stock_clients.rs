//! Bytes that clients send through a unix socket if nothing is set, as they were recorded. In tests/e2e grpcio itself makes
//! calls in each run, grpc-go and grpcurl in long ones.

use prost::Message as _;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Duration, timeout},
};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `Status` of grpcio 1.85.1 at `unix:/run/spillway/spillwayd.sock`. The authority, `run%2Fspillway%2Fspillwayd.sock`, is
/// a literal with a literal name. The same is sent for `unix:///run/spillway/spillwayd.sock`.
const GRPCIO: &[&str] = &[
    "000024040000000000000200000000000300000000000400400000000500400000000600004000fe0300000001",
    "000004080000000000003f0001",
    "000000040100000000",
    "0000e901040000000140053a706174681c2f7370696c6c7761792e76312e5370696c6c7761792f537461747573400a3a617574686f72",
    "6974791f72756e2532467370696c6c7761792532467370696c6c776179642e736f636b8386400c636f6e74656e742d74797065106170",
    "706c69636174696f6e2f677270634002746508747261696c6572734014677270632d6163636570742d656e636f64696e67176964656e",
    "746974792c206465666c6174652c20677a6970400a757365722d6167656e7430677270632d707974686f6e2f312e38352e3120677270",
    "632d632f35382e302e3020286c696e75783b2063687474703229",
    "00000408000000000100000005",
    "0000050001000000010000000000",
];

/// Its second call. Path, authority and the other fields are indices of what the first one left in the dynamic table.
const GRPCIO_AGAIN: &[&str] = &[
    "000008010400000003c3c28386c1c0bfbe",
    "00000408000000000300000005",
    "0000050001000000030000000000",
];

/// `Status` of grpc-go 1.85.0 at `unix:///run/spillway/spillwayd.sock`, with the authority `localhost`.
const GRPC_GO: &[&str] = &[
    "000000040000000000",
    "000000040100000000",
    "0000450104000000018386459561159a8a3c0fd2fdc2beeacd451e07e98dc91a6d474186a0e41d139d095f8b1d75d0620d263d4c4d65",
    "647a8a9acac8b4c7602bbcdae040027465864d833505b11f",
    "0000050001000000010000000000",
];

/// `grpcurl -plaintext -unix /run/spillway/spillwayd.sock list` of grpcurl 1.9.4, with the authority `localhost`, and the end
/// of the stream.
const GRPCURL: &[&str] = &[
    "000000040000000000",
    "000000040100000000",
    "000088010400000001838645a9626b2b22f6165a0a4498f52fdc2bee2d9dcb66d2cb4148931ea63716cee5b36965a0a4498f564aa53f",
    "4186a0e41d139d095f8b1d75d0620d263d4c4d65647aa59acac96d9431217bad1da6a2453faa8ea772d8831ea51054ff6a4d65645a63",
    "b015de65717f40027465864d833505b11f408e9acac8b0c842d6958b510f21aa9b839bd9ab",
    "00000800000000000100000000033a012a",
    "000000000100000001",
];

fn frames(hex: &[&str]) -> Vec<u8> {
    let digits: Vec<_> = hex.concat().chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Types of frames (RFC 9113, 6), and the flag of a stream's last one.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

/// Sends a connection's bytes, and reads until each stream has ended with trailers. Returns the message of each, without its
/// prefix.
async fn answers(daemon: &Daemon, sent: &[&[&str]], streams: usize) -> Vec<Vec<u8>> {
    let mut stream = UnixStream::connect(&daemon.path).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    for frames_of_call in sent {
        stream.write_all(&frames(frames_of_call)).await.unwrap();
    }
    let mut answers = vec![Vec::new(); streams];
    let mut missing = streams;
    while missing > 0 {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await.unwrap();
        let [a, b, c, kind, flags, number @ ..] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).await.unwrap();
        let number = u32::from_be_bytes(number) as usize;
        if number == 0 {
            let goes_away = kind == 7;
            assert!(!goes_away, "{payload:?}");
            continue;
        }
        let answer = &mut answers[number / 2];
        match (kind, flags & END_STREAM) {
            (HEADERS, 0) | (4 | 8, _) => {}
            (DATA, 0) => answer.extend(payload),
            (HEADERS, _) => missing -= 1,
            _ => panic!("frame of type {kind} with flags {flags} and {payload:?}"),
        }
    }
    answers.into_iter().map(|answer| answer.get(5..).expect("a message").to_vec()).collect()
}

#[tokio::test]
async fn clients_get_through_with_the_authority_that_they_choose() {
    let daemon = Daemon::start();
    for (client, sent, streams) in [
        ("grpcio", &[GRPCIO, GRPCIO_AGAIN][..], 2),
        ("grpc-go", &[GRPC_GO], 1),
        ("grpcurl", &[GRPCURL], 1),
    ] {
        let answers = timeout(Duration::from_secs(60), answers(&daemon, sent, streams)).await;
        let answers = answers.unwrap_or_else(|_| panic!("{client}: no answer"));
        for answer in answers {
            if client == "grpcurl" {
                let named = b"spillway.v1.Objects";
                assert!(answer.windows(named.len()).any(|text| text == named), "{answer:?}");
            } else {
                let status = v1::StatusResponse::decode(&answer[..]).unwrap();
                assert!(!status.version.is_empty(), "{client}: {status:?}");
            }
        }
    }
}
