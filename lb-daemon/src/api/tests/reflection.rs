use prost_reflect::DescriptorPool;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use tokio_stream::StreamExt;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use super::*;

/// What a tool does that knows nothing but the address.
#[tokio::test]
async fn a_stranger_learns_the_whole_api() {
    let daemon = Daemon::start();
    let mut client = ServerReflectionClient::new(daemon.channel().await);
    let ask = async |client: &mut ServerReflectionClient<Channel>, question| {
        let request =
            ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let mut answers = client
            .server_reflection_info(tokio_stream::iter([request]))
            .await
            .unwrap()
            .into_inner();
        answers.next().await.unwrap().unwrap().message_response.unwrap()
    };
    let MessageResponse::ListServicesResponse(services) =
        ask(&mut client, MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list")
    };
    let mut names: Vec<_> = services.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "spillway.v1.Objects",
            "spillway.v1.Spillway",
        ]
    );

    // From the symbol to a call: every file that is needed comes on request.
    let mut files: Vec<FileDescriptorProto> = Vec::new();
    let symbol = MessageRequest::FileContainingSymbol("spillway.v1.Objects".into());
    let mut questions = vec![symbol];
    while let Some(question) = questions.pop() {
        let MessageResponse::FileDescriptorResponse(answer) = ask(&mut client, question).await
        else {
            panic!("no file")
        };
        for bytes in answer.file_descriptor_proto {
            let file: FileDescriptorProto = prost::Message::decode(&*bytes).unwrap();
            let known = |name: &String| files.iter().any(|file| file.name.as_ref() == Some(name));
            let missing = file.dependency.iter().filter(|name| !known(name)).cloned();
            questions.extend(missing.map(MessageRequest::FileByFilename));
            if !known(file.name.as_ref().unwrap()) {
                files.push(file);
            }
        }
    }
    let pool = DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: files }).unwrap();
    let objects = pool.get_service_by_name("spillway.v1.Objects").unwrap();
    assert_eq!(objects.methods().len(), 25);
    let update = objects.methods().find(|method| method.name() == "UpdateBackend").unwrap();
    let fields: Vec<_> = update.input().fields().map(|field| field.name().to_owned()).collect();
    assert_eq!(
        fields,
        [
            "pool",
            "backend",
            "update_mask",
            "etag",
            "allow_missing",
            "dry_run",
            "schema_revision",
            "any_schema"
        ]
    );
}
