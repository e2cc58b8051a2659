//! h2 is the judge: a server reads what passed, with a decoder and a dynamic table of its own.

use std::{collections::VecDeque, time::Duration};

use http::HeaderMap;
use proptest::{collection::vec, prelude::*, sample::select};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

/// A bound for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A preface and settings.
const START: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A frame of stream 1.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame_of(1, kind, flags, payload)
}

fn frame_of(stream: u32, kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    let stream = stream.to_be_bytes();
    FrameHeader { length: payload.len(), kind, flags, stream }.write(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes.to_vec()
}

/// What comes out of bytes that arrive in these pieces, up to their end.
fn passed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut frames = Frames::new();
    for piece in pieces {
        frames.receive(piece);
        assert!(frames.held.len() < MAX_BLOCK);
    }
    frames.end();
    frames.ready.to_vec()
}

/// What comes out behind the start of a connection.
fn passed_after_start(bytes: &[u8]) -> Vec<u8> {
    passed([START, bytes])[START.len()..].to_vec()
}

/// A request as h2 reads it: method, path, authority and fields.
type Request = (String, String, Option<String>, HeaderMap);

/// The last request of a client: for `/end`, without an authority.
const END: &[u8] = b"\x82\x86\x04\x04/end";

/// Requests of a client that sends these bytes, up to [`END`].
async fn read_by_h2(bytes: Vec<u8>) -> Result<Vec<Request>, h2::Error> {
    let (client, server) = duplex(64);
    let (mut read, mut write) = tokio::io::split(client);
    let client = async {
        write.write_all(&bytes).await.unwrap();
        read.read_to_end(&mut Vec::new()).await.unwrap();
    };
    tokio::select! {
        requests = requests(server) => requests,
        () = client => panic!("the server ended"),
        () = tokio::time::sleep(PATIENCE) => panic!("no answer"),
    }
}

/// Requests up to [`END`], or to the end of the connection.
async fn requests(stream: DuplexStream) -> Result<Vec<Request>, h2::Error> {
    let (read, write) = tokio::io::split(stream);
    let stream = tokio::io::join(WithoutAuthority::new(read), write);
    let mut server = h2::server::handshake(stream).await?;
    let mut requests = Vec::new();
    while let Some(accepted) = server.accept().await {
        let (request, mut answer) = accepted?;
        let (parts, _) = request.into_parts();
        let authority = parts.uri.authority().map(ToString::to_string);
        let path = parts.uri.path().to_owned();
        if path == "/end" {
            break;
        }
        requests.push((parts.method.to_string(), path, authority, parts.headers));
        answer.send_response(http::Response::new(()), true)?;
    }
    Ok(requests)
}

/// A field of a header block, and how it is written.
#[derive(Clone, Debug)]
struct Field {
    name: &'static str,
    value: Value,
    form: Form,
    name_form: NameForm,
}

/// A value, and its bytes in Huffman's code if it is sent so.
#[derive(Clone, Debug)]
struct Value(Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Copy, Debug)]
enum Form {
    Indexed,
    New,
    NotIndexed,
    NeverIndexed,
}

#[derive(Clone, Copy, Debug)]
enum NameForm {
    Index,
    Literal,
    Huffman,
}

/// The client's dynamic table, newest entry first, and its limit.
struct Table(VecDeque<(&'static str, Vec<u8>)>, usize);

impl Table {
    fn resize(&mut self, limit: usize) {
        self.1 = limit;
        let size = |table: &VecDeque<(&str, Vec<u8>)>| -> usize {
            table.iter().map(|(name, value)| 32 + name.len() + value.len()).sum()
        };
        while size(&self.0) > limit {
            self.0.pop_back();
        }
    }

    fn write(&mut self, field: &Field, block: &mut Vec<u8>) {
        let Field { name, value: Value(value, coded), form, name_form } = field;
        let known = self.0.iter().position(|(n, v)| n == name && v == value);
        let (flag, prefix) = match (form, known) {
            (Form::Indexed, Some(position)) => return write_int(block, 0x80, 7, 62 + position),
            (Form::NotIndexed, _) => (0, 4),
            (Form::NeverIndexed, _) => (0x10, 4),
            _ => (0x40, 6),
        };
        let static_index = [":authority", ":path", ":method", ":scheme", "accept", "user-agent"]
            .iter()
            .position(|other| other == name)
            .map(|at| [1, 4, 2, 6, 19, 58][at]);
        match (name_form, static_index) {
            (NameForm::Index, Some(index)) => write_int(block, flag, prefix, index),
            (NameForm::Huffman, _) if *name == ":authority" => {
                write_int(block, flag, prefix, 0);
                write_string(block, 0x80, &hex("b83b5339ec327d7f"));
            }
            _ => {
                write_int(block, flag, prefix, 0);
                write_string(block, 0, name.as_bytes());
            }
        }
        match coded {
            Some(coded) => write_string(block, 0x80, coded),
            None => write_string(block, 0, value),
        }
        if flag == 0x40 {
            self.0.push_front((name, value.clone()));
            self.resize(self.1);
        }
    }
}

fn write_int(to: &mut Vec<u8>, flag: u8, prefix: u32, value: usize) {
    let most = (1 << prefix) - 1;
    if value < most {
        return to.push(flag | value as u8);
    }
    to.push(flag | most as u8);
    let mut rest = value - most;
    while rest > 127 {
        to.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    to.push(rest as u8);
}

fn write_string(to: &mut Vec<u8>, flag: u8, bytes: &[u8]) {
    write_int(to, flag, 7, bytes.len());
    to.extend_from_slice(bytes);
}

/// Paths of sockets as clients name them, and their bytes in the code of Python's hpack.
const NAMED: &[(&str, &str)] = &[
    ("run%2Fspillway%2Fspillwayd.sock", "b2da951614566a28f03f4a8b0a2b3514781fa91741c9d7"),
    ("/run/spillway/spillwayd.sock", "62cb6a61159a8a3c0fd308acd451e07ea45d07275f"),
    ("localhost", "a0e41d139d09"),
];

fn named_authority() -> impl Strategy<Value = Value> {
    let named = select(NAMED).prop_map(|(plain, coded)| Value(plain.into(), Some(hex(coded))));
    let plain = vec(any::<u8>(), 1..300).prop_map(|bytes| Value(bytes, None));
    prop_oneof![named, plain]
}

fn forms() -> impl Strategy<Value = (Form, NameForm)> {
    let forms = [Form::Indexed, Form::New, Form::NotIndexed, Form::NeverIndexed];
    let names = [NameForm::Index, NameForm::Literal, NameForm::Huffman];
    (select(forms.to_vec()), select(names.to_vec()))
}

fn field(name: &'static str, value: impl Strategy<Value = Value>) -> impl Strategy<Value = Field> {
    (value, forms()).prop_map(move |(value, (form, name_form))| Field {
        name,
        value,
        form,
        name_form,
    })
}

fn text(pattern: &'static str) -> impl Strategy<Value = Value> {
    pattern.prop_map(|text| Value(text.into_bytes(), None))
}

/// How a header block is cut into frames.
#[derive(Clone, Debug)]
struct Layout {
    cuts: Vec<prop::sample::Index>,
    padding: Option<u8>,
    has_priority: bool,
    /// New limit of the dynamic table.
    resize: Option<usize>,
}

fn layout() -> impl Strategy<Value = Layout> {
    let cuts = vec(any::<prop::sample::Index>(), 0..4);
    let resize = proptest::option::weighted(0.2, 0..4096usize);
    (cuts, any::<Option<u8>>(), any::<bool>(), resize).prop_map(
        |(cuts, padding, has_priority, resize)| Layout { cuts, padding, has_priority, resize },
    )
}

fn request() -> impl Strategy<Value = (Vec<Field>, Layout)> {
    let fields = (
        field(":method", select(&["GET", "POST"][..]).prop_map(|it| Value(it.into(), None))),
        field(":path", text("/path/[a-z]{0,200}")),
        field(":scheme", Just(Value(b"http".to_vec(), None))),
        proptest::option::of(field(":authority", named_authority())),
        vec(
            prop_oneof![
                field("accept", text("[a-z:,]{0,40}")),
                field("user-agent", text("[ -~]{0,900}")),
                field("x-authority", text("[a-z%]{0,9}")),
            ],
            0..6,
        ),
    );
    let fields = fields.prop_map(|(method, path, scheme, authority, others)| {
        let pseudo = [Some(method), authority, Some(path), Some(scheme)];
        pseudo.into_iter().flatten().chain(others).collect()
    });
    (fields, layout())
}

/// Frames of a whole request.
fn write_request((number, table): (u32, &mut Table), fields: &[Field], layout: &Layout) -> Vec<u8> {
    let mut block = Vec::new();
    if let Some(limit) = layout.resize {
        table.resize(limit);
        write_int(&mut block, 0x20, 5, limit);
    }
    for field in fields {
        table.write(field, &mut block);
    }
    let mut cuts: Vec<_> = layout.cuts.iter().map(|cut| cut.index(block.len())).collect();
    cuts.extend([0, block.len()]);
    cuts.sort_unstable();
    let mut frames = Vec::new();
    let stream = 2 * number + 1;
    for (at, range) in cuts.windows(2).enumerate() {
        let (is_first, is_last) = (at == 0, at + 2 == cuts.len());
        let mut payload = block[range[0]..range[1]].to_vec();
        let mut flags = if is_last { END_HEADERS } else { 0 };
        if is_first {
            flags |= 1;
            if layout.has_priority {
                payload.splice(0..0, [0, 0, 0, 0, 7]);
                flags |= PRIORITY;
            }
            if let Some(padding) = layout.padding {
                payload.insert(0, padding);
                payload.resize(payload.len() + usize::from(padding), 0);
                flags |= PADDED;
            }
        }
        let kind = if is_first { HEADERS } else { CONTINUATION };
        frames.extend(frame_of(stream, kind, flags, &payload));
    }
    frames
}

/// What h2 has to read of a request.
fn expected(fields: &[Field]) -> Request {
    let value = |name| fields.iter().find(|field| field.name == name).map(|field| &field.value.0);
    let string = |name| String::from_utf8(value(name).unwrap().clone()).unwrap();
    let others = fields.iter().filter(|field| !field.name.starts_with(':'));
    let mut headers = HeaderMap::new();
    for Field { name, value, .. } in others {
        headers.append(*name, http::HeaderValue::from_bytes(&value.0).unwrap());
    }
    let authority = value(":authority").map(|value| "0".repeat(value.len()));
    (string(":method"), string(":path"), authority, headers)
}

proptest! {
    #[test]
    fn h2_reads_every_request_as_it_was_but_for_its_authority(
        requests in vec(request(), 1..8)
    ) {
        let (mut table, mut bytes) = (Table(VecDeque::new(), 4096), START.to_vec());
        for (number, (fields, layout)) in (0..).zip(&requests) {
            bytes.extend(write_request((number, &mut table), fields, layout));
            bytes.extend(frame_of(0, 6, 0, b"ping 678"));
        }
        bytes.extend(frame_of(2 * requests.len() as u32 + 1, HEADERS, END_HEADERS | 1, END));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let read = runtime.block_on(read_by_h2(bytes)).unwrap();
        let expected: Vec<_> = requests.iter().map(|(fields, _)| expected(fields)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn the_result_is_the_same_however_bytes_arrive(
        parts in vec(
            prop_oneof![
                request().prop_map(|(fields, layout)| {
                    write_request((0, &mut Table(VecDeque::new(), 4096)), &fields, &layout)
                }),
                vec(any::<u8>(), 0..40),
                (any::<u8>(), any::<u8>(), vec(any::<u8>(), 0..40))
                    .prop_map(|(kind, flags, payload)| frame(kind % 10, flags, &payload)),
            ],
            0..8,
        ),
        size in 1..300usize,
    ) {
        let bytes = [START, &parts.concat()].concat();
        let whole = passed([&bytes[..]]);
        prop_assert!(whole.len() <= bytes.len());
        prop_assert_eq!(passed(bytes.chunks(size)), &whole[..]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(async {
            let (mut client, server) = duplex(size);
            let mut server = WithoutAuthority::new(server);
            let send = async move { client.write_all(&bytes).await };
            let mut read = Vec::new();
            let (sent, end) = tokio::join!(send, server.read_to_end(&mut read));
            sent.and(end).unwrap();
            read
        });
        prop_assert_eq!(read, whole);
    }
}

/// Requests of h2's own client, whose encoder uses Huffman's code and indices.
#[tokio::test]
async fn authorities_of_h2_s_client_have_their_length() {
    let (client, server) = duplex(1 << 10);
    let names = ["a", "localhost:1", "user:%7Esome!$&'()*+,;=@[::1]:65535", "localhost:1", "XYZ"];
    let client = async move {
        let (mut client, connection) = h2::client::handshake(client).await.unwrap();
        let connection = tokio::spawn(connection);
        for name in names {
            let request = http::Request::get(format!("http://{name}/{name}")).body(()).unwrap();
            client = client.ready().await.unwrap();
            client.send_request(request, true).unwrap().0.await.unwrap();
        }
        drop(client);
        connection.await.unwrap().unwrap();
    };
    let read = tokio::join!(client, requests(server)).1.unwrap();
    let read: Vec<_> = read.into_iter().map(|(_, path, authority, _)| (path, authority)).collect();
    assert_eq!(read, names.map(|name| (format!("/{name}"), Some("0".repeat(name.len())))));
}

#[test]
fn what_is_malformed_passes_as_it_is() {
    let authority = b"\x01\x03%2F";
    let good = frame(HEADERS, END_HEADERS, authority);
    assert_eq!(passed_after_start(&good), frame(HEADERS, END_HEADERS, b"\x01\x03000"));
    for (case, bytes) in [
        ("value beyond the block", frame(HEADERS, END_HEADERS, b"\x01\x04%2F")),
        ("endless length", frame(HEADERS, END_HEADERS, b"\x01\x7f\xff\xff\xff\xff\xff\xff%2F")),
        ("no code", frame(HEADERS, END_HEADERS, b"\x01\x82\xff\xff")),
        ("empty authority", frame(HEADERS, END_HEADERS, b"\x01\0")),
        ("rest is malformed", frame(HEADERS, END_HEADERS, b"\x01\x03%2F\x40")),
        ("no room for a priority", frame(HEADERS, END_HEADERS | PRIORITY, b"\0\0\0\0")),
        ("padding of everything", frame(HEADERS, END_HEADERS | PADDED, b"\x06\x01\x03%2F")),
        ("no padding", frame(HEADERS, END_HEADERS | PADDED, b"")),
        (
            "another stream's continuation",
            [
                frame(HEADERS, 0, authority),
                frame_of(3, CONTINUATION, END_HEADERS, b""),
                frame(6, 0, b"12345678"),
            ]
            .concat(),
        ),
        ("a frame between", [frame(HEADERS, 0, authority), frame(6, 0, b"12345678")].concat()),
        ("no headers", frame(CONTINUATION, END_HEADERS, authority)),
        ("a frame that is too large", frame(HEADERS, END_HEADERS, &[0x82; MAX_PAYLOAD + 1])),
        ("an end within", good[..good.len() - 1].to_vec()),
    ] {
        assert_eq!(passed_after_start(&bytes), bytes, "{case}");
        // What follows is looked at again.
        if case != "an end within" {
            let more = passed_after_start(&[&bytes[..], &good].concat());
            assert_eq!(more[bytes.len()..], frame(HEADERS, END_HEADERS, b"\x01\x03000"), "{case}");
        }
    }
}

#[test]
fn an_endless_header_block_is_not_kept() {
    let mut frames = Frames::new();
    frames.receive(START);
    frames.receive(&frame(HEADERS, 0, b"\x01\x03%2F"));
    let (mut most, mut read) = (0, START.len() + 14);
    for _ in 0..10_000 {
        let more = frame(CONTINUATION, 0, &[0x82; 91]);
        frames.receive(&more);
        read += more.len();
        most = most.max(frames.held.len());
    }
    assert!(most < MAX_BLOCK, "{most}");
    assert_eq!(frames.ready.len(), read, "everything passes");
}
