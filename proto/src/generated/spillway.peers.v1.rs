/// Backends whose packets are asked for.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CountPacketsRequest {
    /// Their addresses; at most 10,000. Unset: none.
    #[prost(string, repeated, tag = "1")]
    pub backends: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
/// What the receiver counted.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CountPacketsResponse {
    /// In the order of the request. A backend that the receiver does not know has 0.
    #[prost(uint64, repeated, tag = "1")]
    pub packets: ::prost::alloc::vec::Vec<u64>,
}
/// It has no fields: all tables are meant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DigestTablesRequest {}
/// What decides packets of each pool.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DigestTablesResponse {
    /// By name. Unset: there is no pool.
    #[prost(message, repeated, tag = "1")]
    pub pools: ::prost::alloc::vec::Vec<PoolDigest>,
}
/// What decides packets of a pool.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct PoolDigest {
    /// Name of the pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Equal at balancers that decide alike.
    #[prost(fixed64, tag = "2")]
    pub digest: u64,
}
/// One message of a balancer to one other.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ExchangeRequest {
    /// The protocol that the sender speaks. Must be set. It keeps its number in all protocols.
    #[prost(uint32, tag = "1")]
    pub protocol: u32,
    /// Version of the sender's program, at most 64 bytes of printable ASCII. Must be set. It keeps its number too.
    #[prost(string, tag = "2")]
    pub program_version: ::prost::alloc::string::String,
    /// Name of the sender. Must be set.
    #[prost(string, tag = "3")]
    pub from: ::prost::alloc::string::String,
    /// Which start of the sender it is; rises with each. Must be set.
    #[prost(uint64, tag = "4")]
    pub incarnation: u64,
    /// The latest start of the receiver that the sender heard of. Unset: none yet.
    #[prost(uint64, tag = "5")]
    pub receiver_incarnation: u64,
    /// Number among the messages of this incarnation to this receiver. Unset: 0.
    #[prost(uint64, tag = "6")]
    pub sequence: u64,
    /// The last epoch whose result the sender has applied. Unset: none yet.
    #[prost(uint64, tag = "7")]
    pub epoch: u64,
    /// Number of the last transfer that the sender ever sent to the receiver in this epoch. Unset: none yet.
    #[prost(uint64, tag = "8")]
    pub sent: u64,
    /// Number of the last transfer of the receiver that the sender has applied in this epoch. Unset: none yet.
    #[prost(uint64, tag = "9")]
    pub applied: u64,
    /// An encoded Groups: those that the sender speaks of. It is the same for all peers, so it is encoded once, and it rarely
    /// changes, so a receiver that knows it need not decode it. Unset: none.
    #[prost(bytes = "bytes", tag = "10")]
    pub groups: ::prost::bytes::Bytes,
    /// An encoded Reports: what the sender says of each of these groups, also the same for all peers. Unset: no group is named.
    #[prost(bytes = "bytes", tag = "12")]
    pub reports: ::prost::bytes::Bytes,
    /// Further groups, of which there are only transfers, in the order of pool, region and birth. Unset: none.
    #[prost(message, repeated, tag = "13")]
    pub others: ::prost::alloc::vec::Vec<Group>,
    /// Transfers to the receiver that are not known to be applied, in the order of their numbers. The last one has the number
    /// in sent. Unset: none.
    #[prost(message, repeated, tag = "11")]
    pub transfers: ::prost::alloc::vec::Vec<Transfer>,
    /// Names of the members that the sender has listened to for 30 seconds without an interruption, and has not heard from
    /// in that time, in their order. Unset: none.
    #[prost(string, repeated, tag = "17")]
    pub silent: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// The sender owns nothing, because its store is an old copy. Unset: it owns what it says.
    #[prost(bool, tag = "14")]
    pub store_is_old: bool,
    /// The sender gives everything away, and takes nothing. Unset: it stays.
    #[prost(bool, tag = "15")]
    pub is_leaving: bool,
    /// The sender knows that the receiver is leaving, and gives it nothing any more. Unset: it does not know.
    #[prost(bool, tag = "16")]
    pub receiver_is_leaving: bool,
    /// The sender's wall clock as it sent this, milliseconds since 1970. Unset: not known.
    #[prost(uint64, tag = "18")]
    pub sent_at_ms: u64,
}
/// The message was taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ExchangeResponse {}
/// Groups.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Groups {
    /// In the order of pool, region and birth, each once. Unset: none.
    #[prost(message, repeated, tag = "1")]
    pub groups: ::prost::alloc::vec::Vec<Group>,
}
/// What a balancer says of groups.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Reports {
    /// One for each of the groups, in their order.
    #[prost(message, repeated, tag = "1")]
    pub reports: ::prost::alloc::vec::Vec<GroupReport>,
}
/// A pool's backends in one region.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Group {
    /// Name of the pool.
    #[prost(string, tag = "1")]
    pub pool: ::prost::alloc::string::String,
    /// Name of the region.
    #[prost(string, tag = "2")]
    pub region: ::prost::alloc::string::String,
    /// Generation that created the group.
    #[prost(uint64, tag = "3")]
    pub birth: u64,
}
/// What a balancer says of a group.
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct GroupReport {
    /// Offered connections a second, with those that are refused.
    #[prost(double, tag = "1")]
    pub demand_per_second: f64,
    /// Parts of 2^32 that the sender owns.
    #[prost(uint64, tag = "2")]
    pub owned_parts: u64,
    /// Whether the group has a capacity, as the sender sees it. Must be set.
    #[prost(enumeration = "CapacityKind", tag = "3")]
    pub capacity_kind: i32,
    /// The capacity of the whole fleet, new connections a second. Unset where it is closed or unlimited.
    #[prost(double, tag = "4")]
    pub capacity_per_second: f64,
    /// Whether the group's region is in the sender's order of regions.
    #[prost(bool, tag = "5")]
    pub may_send: bool,
}
/// Parts on their way from the sender to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Transfer {
    /// Numbers rise by one.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Place of the group, from 0: in groups, and after them in others.
    #[prost(uint32, tag = "2")]
    pub group: u32,
    /// Parts of 2^32.
    #[prost(uint64, tag = "3")]
    pub parts: u64,
}
/// What limits a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum CapacityKind {
    /// Not a kind.
    Unspecified = 0,
    /// It takes no connections.
    Closed = 1,
    /// A number of new connections a second.
    PerSecond = 2,
    /// Nothing.
    Unlimited = 3,
}
impl CapacityKind {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "CAPACITY_KIND_UNSPECIFIED",
            Self::Closed => "CAPACITY_KIND_CLOSED",
            Self::PerSecond => "CAPACITY_KIND_PER_SECOND",
            Self::Unlimited => "CAPACITY_KIND_UNLIMITED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "CAPACITY_KIND_UNSPECIFIED" => Some(Self::Unspecified),
            "CAPACITY_KIND_CLOSED" => Some(Self::Closed),
            "CAPACITY_KIND_PER_SECOND" => Some(Self::PerSecond),
            "CAPACITY_KIND_UNLIMITED" => Some(Self::Unlimited),
            _ => None,
        }
    }
}
/// Generated client implementations.
pub mod peers_client {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    use tonic::codegen::http::Uri;
    /// A balancer, as its peers reach it.
    #[derive(Debug, Clone)]
    pub struct PeersClient {
        inner: tonic::client::Grpc<tonic::transport::Channel>,
    }
    impl PeersClient {
        pub fn new(inner: tonic::transport::Channel) -> Self {
            let inner = tonic::client::Grpc::new(inner);
            Self { inner }
        }
        pub fn with_origin(inner: tonic::transport::Channel, origin: Uri) -> Self {
            let inner = tonic::client::Grpc::with_origin(inner, origin);
            Self { inner }
        }
        /// Compress requests with the given encoding.
        ///
        /// This requires the server to support it otherwise it might respond with an
        /// error.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.send_compressed(encoding);
            self
        }
        /// Enable decompressing responses.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.inner = self.inner.accept_compressed(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_decoding_message_size(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.inner = self.inner.max_encoding_message_size(limit);
            self
        }
        /// Tells the receiver what the sender owns, has sent and has applied. Repeated four times a second, and at once when a
        /// group begins to refuse connections; a message that is lost does no harm. An answer says that the message was taken.
        /// FAILED_PRECONDITION: the sender speaks another protocol. UNAUTHENTICATED: the certificate is not the sender's.
        /// PERMISSION_DENIED: the sender is not a member of the fleet. INVALID_ARGUMENT: the message makes no sense.
        /// RESOURCE_EXHAUSTED or OUT_OF_RANGE: it is too large.
        pub fn exchange(
            &mut self,
            request: impl tonic::IntoRequest<super::ExchangeRequest>,
        ) -> BoxFuture<tonic::Response<super::ExchangeResponse>, tonic::Status> {
            self.send_exchange(request.into_request())
        }
        /// Packets that the receiver sent to backends since its counters began. PERMISSION_DENIED: the caller is not a member of
        /// the fleet. UNAVAILABLE: the counters cannot be read.
        pub fn count_packets(
            &mut self,
            request: impl tonic::IntoRequest<super::CountPacketsRequest>,
        ) -> BoxFuture<tonic::Response<super::CountPacketsResponse>, tonic::Status> {
            self.send_count_packets(request.into_request())
        }
        /// Digests of the receiver's tables. The errors are those of CountPackets.
        pub fn digest_tables(
            &mut self,
            request: impl tonic::IntoRequest<super::DigestTablesRequest>,
        ) -> BoxFuture<tonic::Response<super::DigestTablesResponse>, tonic::Status> {
            self.send_digest_tables(request.into_request())
        }
        fn send_exchange(
            &self,
            request: tonic::Request<super::ExchangeRequest>,
        ) -> BoxFuture<tonic::Response<super::ExchangeResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.peers.v1.Peers/Exchange",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.peers.v1.Peers", "Exchange"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_count_packets(
            &self,
            request: tonic::Request<super::CountPacketsRequest>,
        ) -> BoxFuture<tonic::Response<super::CountPacketsResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.peers.v1.Peers/CountPackets",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.peers.v1.Peers", "CountPackets"));
                inner.unary(req, path, codec).await
            })
        }
        fn send_digest_tables(
            &self,
            request: tonic::Request<super::DigestTablesRequest>,
        ) -> BoxFuture<tonic::Response<super::DigestTablesResponse>, tonic::Status> {
            let mut inner = self.inner.clone();
            Box::pin(async move {
                inner
                    .ready()
                    .await
                    .map_err(|e| {
                        tonic::Status::unknown(format!("Service was not ready: {e}"))
                    })?;
                let codec = tonic_prost::ProstCodec::default();
                let path = http::uri::PathAndQuery::from_static(
                    "/spillway.peers.v1.Peers/DigestTables",
                );
                let mut req = request;
                req.extensions_mut()
                    .insert(GrpcMethod::new("spillway.peers.v1.Peers", "DigestTables"));
                inner.unary(req, path, codec).await
            })
        }
    }
}
/// Generated server implementations.
pub mod peers_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with PeersServer.
    #[async_trait]
    pub trait Peers: std::marker::Send + std::marker::Sync + 'static {
        /// Tells the receiver what the sender owns, has sent and has applied. Repeated four times a second, and at once when a
        /// group begins to refuse connections; a message that is lost does no harm. An answer says that the message was taken.
        /// FAILED_PRECONDITION: the sender speaks another protocol. UNAUTHENTICATED: the certificate is not the sender's.
        /// PERMISSION_DENIED: the sender is not a member of the fleet. INVALID_ARGUMENT: the message makes no sense.
        /// RESOURCE_EXHAUSTED or OUT_OF_RANGE: it is too large.
        async fn exchange(
            &self,
            request: tonic::Request<super::ExchangeRequest>,
        ) -> std::result::Result<
            tonic::Response<super::ExchangeResponse>,
            tonic::Status,
        >;
        /// Packets that the receiver sent to backends since its counters began. PERMISSION_DENIED: the caller is not a member of
        /// the fleet. UNAVAILABLE: the counters cannot be read.
        async fn count_packets(
            &self,
            request: tonic::Request<super::CountPacketsRequest>,
        ) -> std::result::Result<
            tonic::Response<super::CountPacketsResponse>,
            tonic::Status,
        >;
        /// Digests of the receiver's tables. The errors are those of CountPackets.
        async fn digest_tables(
            &self,
            request: tonic::Request<super::DigestTablesRequest>,
        ) -> std::result::Result<
            tonic::Response<super::DigestTablesResponse>,
            tonic::Status,
        >;
    }
    /// A balancer, as its peers reach it.
    pub struct PeersServer {
        inner: Arc<dyn Peers>,
        accept_compression_encodings: EnabledCompressionEncodings,
        send_compression_encodings: EnabledCompressionEncodings,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    }
    impl PeersServer {
        pub fn new(inner: impl Peers) -> Self {
            Self::from_arc(Arc::new(inner))
        }
        pub fn from_arc(inner: Arc<dyn Peers>) -> Self {
            Self {
                inner,
                accept_compression_encodings: Default::default(),
                send_compression_encodings: Default::default(),
                max_decoding_message_size: None,
                max_encoding_message_size: None,
            }
        }
        /// Enable decompressing requests with the given encoding.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.accept_compression_encodings.enable(encoding);
            self
        }
        /// Compress responses with the given encoding, if the client supports it.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.send_compression_encodings.enable(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.max_decoding_message_size = Some(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.max_encoding_message_size = Some(limit);
            self
        }
    }
    impl tonic::codegen::Service<http::Request<tonic::body::Body>> for PeersServer {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<tonic::body::Body>) -> Self::Future {
            match req.uri().path() {
                "/spillway.peers.v1.Peers/Exchange" => {
                    #[allow(non_camel_case_types)]
                    struct ExchangeSvc(pub Arc<dyn Peers>);
                    impl tonic::server::UnaryService<super::ExchangeRequest>
                    for ExchangeSvc {
                        type Response = super::ExchangeResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::ExchangeRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Peers as Peers>::exchange(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ExchangeSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.peers.v1.Peers/CountPackets" => {
                    #[allow(non_camel_case_types)]
                    struct CountPacketsSvc(pub Arc<dyn Peers>);
                    impl tonic::server::UnaryService<super::CountPacketsRequest>
                    for CountPacketsSvc {
                        type Response = super::CountPacketsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::CountPacketsRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Peers as Peers>::count_packets(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CountPacketsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/spillway.peers.v1.Peers/DigestTables" => {
                    #[allow(non_camel_case_types)]
                    struct DigestTablesSvc(pub Arc<dyn Peers>);
                    impl tonic::server::UnaryService<super::DigestTablesRequest>
                    for DigestTablesSvc {
                        type Response = super::DigestTablesResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<super::DigestTablesRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <dyn Peers as Peers>::digest_tables(&*inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = DigestTablesSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => {
                    Box::pin(async move {
                        let mut response = http::Response::new(
                            tonic::body::Body::default(),
                        );
                        let headers = response.headers_mut();
                        headers
                            .insert(
                                tonic::Status::GRPC_STATUS,
                                (tonic::Code::Unimplemented as i32).into(),
                            );
                        headers
                            .insert(
                                http::header::CONTENT_TYPE,
                                tonic::metadata::GRPC_CONTENT_TYPE,
                            );
                        Ok(response)
                    })
                }
            }
        }
    }
    impl Clone for PeersServer {
        fn clone(&self) -> Self {
            let inner = self.inner.clone();
            Self {
                inner,
                accept_compression_encodings: self.accept_compression_encodings,
                send_compression_encodings: self.send_compression_encodings,
                max_decoding_message_size: self.max_decoding_message_size,
                max_encoding_message_size: self.max_encoding_message_size,
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "spillway.peers.v1.Peers";
    impl tonic::server::NamedService for PeersServer {
        const NAME: &'static str = SERVICE_NAME;
    }
}
