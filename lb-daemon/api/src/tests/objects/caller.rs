//! Calls as people type them: the method's name, the request in protobuf's text format.

use std::collections::BTreeMap;

use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, Value,
    prost::{Message, bytes::Buf},
};
use tonic::{
    Code, Request, Status,
    client::Grpc,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Channel,
};
use tonic_types::StatusExt as _;

use super::super::Daemon;

/// Method, request, and how it is refused: code, message, and the field of the trailer.
pub(super) type Refusal = (&'static str, &'static str, Code, &'static str, &'static str);

/// A connection that knows the service by its descriptors alone.
pub(super) struct Caller {
    grpc: Grpc<Channel>,
    descriptors: DescriptorPool,
}

impl Caller {
    pub(super) async fn of(daemon: &Daemon) -> Self {
        let descriptors = DescriptorPool::decode(spillway_proto::DESCRIPTORS).unwrap();
        Self { grpc: Grpc::new(daemon.channel().await), descriptors }
    }

    /// The answer to a call.
    pub(super) async fn call(
        &mut self,
        method: &str,
        request: &str,
    ) -> Result<DynamicMessage, Status> {
        let method = self.method(method);
        let mut request = DynamicMessage::parse_text_format(method.input(), request)
            .unwrap_or_else(|error| panic!("{request}: {error}"));
        if method.input().get_field_by_name("schema_revision").is_some() {
            let own = Value::EnumNumber(spillway_proto::SCHEMA_REVISION.into());
            request.set_field_by_name("schema_revision", own);
        }
        self.grpc.ready().await.unwrap();
        let path = format!("/spillway.v1.Objects/{}", method.name());
        let codec = Dynamic(method.output());
        let answer = self.grpc.unary(Request::new(request), path.parse().unwrap(), codec).await?;
        Ok(answer.into_inner())
    }

    /// Makes a call that is refused as a row says, and with a reason for programs that fits its code.
    pub(super) async fn refused(&mut self, (method, request, code, message, field): &Refusal) {
        let Err(status) = self.call(method, request).await else {
            panic!("{method} {request}: was not refused")
        };
        let trailer = status.metadata().get(lb_config::FIELD_TRAILER);
        let trailer = trailer.map_or("", |field| field.to_str().unwrap());
        assert_eq!(
            (status.code(), status.message(), trailer),
            (*code, *message, *field),
            "{method} {request}"
        );
        let (reason, _) = error_info(&status);
        let expected: &[&str] = match code {
            Code::NotFound => &["OBJECT_NOT_FOUND"],
            Code::AlreadyExists => &["OBJECT_EXISTS"],
            Code::FailedPrecondition => &["OBJECT_IN_USE"],
            Code::Aborted => &["ETAG_CONFLICT"],
            Code::InvalidArgument => &["INVALID_FIELD", "INVALID_CONFIGURATION"],
            _ => &[],
        };
        assert!(expected.contains(&&*reason), "{method} {request}: {reason}");
    }

    /// An answer of a method from its text.
    pub(super) fn answer(&self, method: &str, text: &str) -> DynamicMessage {
        DynamicMessage::parse_text_format(self.method(method).output(), text)
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn method(&self, name: &str) -> MethodDescriptor {
        let service = self.descriptors.get_service_by_name("spillway.v1.Objects").unwrap();
        service.methods().find(|method| method.name() == name).unwrap()
    }
}

/// Reason and metadata of the details of an error.
pub(super) fn error_info(status: &Status) -> (String, BTreeMap<String, String>) {
    let info = status.get_details_error_info().unwrap_or_else(|| panic!("{status}: no details"));
    assert_eq!(info.domain, "spillway");
    (info.reason, info.metadata.into_iter().collect())
}

/// The object of an answer about one: the answer itself, or its first field beside the result.
pub(super) fn object(answer: &DynamicMessage) -> DynamicMessage {
    match answer.get_field_by_name("result") {
        None => answer.clone(),
        Some(_) => {
            let object = answer.fields().find(|(field, _)| field.name() != "result");
            object.unwrap().1.as_message().unwrap().clone()
        }
    }
}

/// A field of the result of an answer.
pub(super) fn of_result(answer: &DynamicMessage, field: &str) -> Value {
    let result = answer.get_field_by_name("result").unwrap().into_owned();
    result.as_message().unwrap().get_field_by_name(field).unwrap().into_owned()
}

/// The etag of an answer about one object.
pub(super) fn etag(answer: &DynamicMessage) -> String {
    object(answer).get_field_by_name("etag").unwrap().as_str().unwrap().to_owned()
}

/// An answer without its etags and what maps take, which are looked at by themselves.
pub(super) fn essence(mut answer: DynamicMessage) -> DynamicMessage {
    answer.clear_field_by_name("etag");
    for (_, value) in answer.fields_mut() {
        let (one, many) = match value {
            Value::Message(message) => (Some(message), None),
            Value::List(list) => (None, Some(list.iter_mut().filter_map(Value::as_message_mut))),
            _ => (None, None),
        };
        for message in one.into_iter().chain(many.into_iter().flatten()) {
            message.clear_field_by_name("etag");
            message.clear_field_by_name("memory");
        }
    }
    answer
}

struct Dynamic(MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(self.0.clone())
    }

    fn decoder(&mut self) -> Self {
        Self(self.0.clone())
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: DynamicMessage, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(to).map_err(|error| Status::internal(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        let message = DynamicMessage::decode(self.0.clone(), bytes);
        message.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
