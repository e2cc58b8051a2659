//! Clients and servers of services, on what `src/rpc.rs` has: of each message and method they hold what is its own, and
//! what does the work has no type parameters. So it is compiled once, in the package itself, and not again in each that
//! calls or serves.

use prost_build::{Comments, Method, Service, ServiceGenerator};

/// Writes the code of services.
pub(crate) struct Services;

impl ServiceGenerator for Services {
    fn generate(&mut self, service: Service, code: &mut String) {
        assert!(
            service.methods.iter().all(|it| !it.client_streaming),
            "{}: no stream of requests is known here",
            service.name
        );
        code.push_str(&client(&service));
        code.push_str(&server(&service));
    }
}

fn client(service: &Service) -> String {
    let (name, module) = (&service.name, module_name(&service.name));
    let mut methods = String::new();
    for method in &service.methods {
        let (kind, answer) = answer(method, "tonic::Streaming");
        let comments = comments(&method.comments);
        let Method { name, input_type, .. } = method;
        let path = path(service, method);
        methods += &format!(
            "{comments}
            pub fn {name}(
                &mut self,
                request: impl tonic::IntoRequest<super::{input_type}>,
            ) -> BoxFuture<tonic::Response<{answer}>, tonic::Status> {{
                self.send_{name}(request.into_request())
            }}

            fn send_{name}(
                &self,
                request: tonic::Request<super::{input_type}>,
            ) -> BoxFuture<tonic::Response<{answer}>, tonic::Status> {{
                self.client.{kind}({path:?}, request)
            }}"
        );
    }
    format!(
        "/// Generated client implementations.
        pub mod {module}_client {{
            use crate::rpc::Client;
            use tonic::{{codegen::BoxFuture, transport::Channel}};

            {comments}
            #[derive(Debug, Clone)]
            pub struct {name}Client {{
                client: Client,
            }}

            impl {name}Client {{
                pub fn new(channel: Channel) -> Self {{
                    Self {{ client: Client::new(channel) }}
                }}

                {limits}

                {methods}
            }}
        }}",
        comments = comments(&service.comments),
        limits = limits("client.limits"),
    )
}

fn server(service: &Service) -> String {
    let (name, module) = (&service.name, module_name(&service.name));
    let (mut signatures, mut arms) = (String::new(), String::new());
    for method in &service.methods {
        let (kind, answer) = answer(method, "tonic::codegen::BoxStream");
        let comments = comments(&method.comments);
        let Method { name: method_name, input_type, .. } = method;
        signatures += &format!(
            "{comments}
            async fn {method_name}(
                &self,
                request: tonic::Request<super::{input_type}>,
            ) -> Result<tonic::Response<{answer}>, tonic::Status>;"
        );
        let call = format!("service.{method_name}(request).await");
        let future = match method.server_streaming {
            true => format!("Box::pin(async move {{ {call} }})"),
            false => format!("async move {{ {call} }}"),
        };
        let path = path(service, method);
        arms += &format!(
            "{path:?} => rpc::{kind}(
                &self.service,
                self.limits,
                request,
                |service: Arc<dyn {name}>, request| {future},
            ),"
        );
    }
    format!(
        "/// Generated server implementations.
        pub mod {module}_server {{
            use crate::rpc::{{self, Answer, Limits}};
            use std::{{convert::Infallible, sync::Arc, task::{{Context, Poll}}}};
            use tonic::{{body::Body, codegen::{{Service, http}}}};

            /// What {name}Server serves by.
            #[tonic::async_trait]
            pub trait {name}: Send + Sync + 'static {{
                {signatures}
            }}

            {comments}
            #[derive(Clone)]
            pub struct {name}Server {{
                service: Arc<dyn {name}>,
                limits: Limits,
            }}

            impl {name}Server {{
                pub fn new(service: impl {name}) -> Self {{
                    Self {{ service: Arc::new(service), limits: Limits::default() }}
                }}

                {limits}
            }}

            impl Service<http::Request<Body>> for {name}Server {{
                type Response = http::Response<Body>;
                type Error = Infallible;
                type Future = Answer;

                fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {{
                    Poll::Ready(Ok(()))
                }}

                fn call(&mut self, request: http::Request<Body>) -> Answer {{
                    match request.uri().path() {{
                        {arms}
                        _ => rpc::unimplemented(),
                    }}
                }}
            }}

            /// Full name of the service.
            pub const SERVICE_NAME: &str = {full_name:?};

            impl tonic::server::NamedService for {name}Server {{
                const NAME: &'static str = SERVICE_NAME;
            }}
        }}",
        comments = comments(&service.comments),
        limits = limits("limits"),
        full_name = full_name(service),
    )
}

/// What of `rpc` a method is called by, and the type of what it returns.
fn answer(method: &Method, stream: &str) -> (&'static str, String) {
    let message = format!("super::{}", method.output_type);
    match method.server_streaming {
        true => ("server_streaming", format!("{stream}<{message}>")),
        false => ("unary", message),
    }
}

fn limits(field: &str) -> String {
    format!(
        "/// Limits the size of a received message, in bytes. Unless set it is 4 MiB.
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {{
            self.{field}.decoding = Some(limit);
            self
        }}

        /// Limits the size of a sent message, in bytes. Unless set there is no limit.
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {{
            self.{field}.encoding = Some(limit);
            self
        }}"
    )
}

fn full_name(service: &Service) -> String {
    format!("{}.{}", service.package, service.proto_name)
}

fn path(service: &Service, method: &Method) -> String {
    format!("/{}/{}", full_name(service), method.proto_name)
}

/// A name of one word, which those of services are.
fn module_name(service: &str) -> String {
    service.to_lowercase()
}

fn comments(comments: &Comments) -> String {
    let mut text = String::new();
    comments.append_with_indent(0, &mut text);
    text
}
