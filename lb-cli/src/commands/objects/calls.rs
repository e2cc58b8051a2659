//! The calls of `spillway.v1.Objects`, with the same signatures for every kind.

use std::fmt::Debug;

use prost_types::FieldMask;
use spillway_proto::{SCHEMA_REVISION, v1, v1::objects_client::ObjectsClient};
use tonic::{Status, transport::Channel};

pub(crate) type Client = ObjectsClient<Channel>;

/// Identifies an object by name, and a backend also by its pool.
#[derive(Clone, Debug)]
pub(crate) struct ObjectId {
    pub(crate) pool: String,
    pub(crate) name: String,
}

/// An object in an answer of the daemon.
#[derive(Clone, Debug)]
pub(crate) struct ObjectAnswer<K> {
    /// The pool of a backend; empty for other kinds.
    pub(crate) pool: String,
    pub(crate) object: K,
    pub(crate) etag: String,
    /// The generation, and the changes of the call.
    pub(crate) applied: v1::ApplyResponse,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CreateOptions {
    pub(crate) dry_run: bool,
    /// Empty: none.
    pub(crate) reason: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct UpdateOptions {
    pub(crate) paths: Vec<String>,
    pub(crate) etag: String,
    pub(crate) allow_missing: bool,
    pub(crate) dry_run: bool,
    /// Empty: none.
    pub(crate) reason: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) etag: String,
    pub(crate) allow_missing: bool,
    pub(crate) dry_run: bool,
    /// Empty: none.
    pub(crate) reason: String,
}

/// The five calls of a kind.
pub(crate) trait ObjectCalls: Clone + Default + Debug {
    /// The generation and all objects; only the backends of `pool` unless it is empty.
    async fn list(
        client: &mut Client,
        pool: String,
    ) -> Result<(u64, Vec<ObjectAnswer<Self>>), Status>;
    async fn get(client: &mut Client, id: ObjectId) -> Result<ObjectAnswer<Self>, Status>;
    async fn create(
        client: &mut Client,
        pool: String,
        object: Self,
        how: CreateOptions,
    ) -> Result<ObjectAnswer<Self>, Status>;
    async fn update(
        client: &mut Client,
        pool: String,
        object: Self,
        how: UpdateOptions,
    ) -> Result<ObjectAnswer<Self>, Status>;
    async fn delete(
        client: &mut Client,
        id: ObjectId,
        how: DeleteOptions,
    ) -> Result<v1::ApplyResponse, Status>;
}

/// Implements the calls of each kind. Only backends have a pool.
macro_rules! calls {
    ($($kind:ident $field:ident $list:ident $answer:ident [$($pool:ident)?] $name:ident
       $list_call:ident $list_request:ident $get_call:ident $get_request:ident
       $create_call:ident $create_request:ident $update_call:ident $update_request:ident
       $delete_call:ident $delete_request:ident;)*) => {$(
        impl From<v1::$answer> for ObjectAnswer<v1::$kind> {
            fn from(message: v1::$answer) -> Self {
                Self {
                    pool: [$(message.$pool,)?].into_iter().next().unwrap_or_default(),
                    object: message.$field.unwrap_or_default(),
                    etag: message.etag,
                    applied: v1::ApplyResponse {
                        generation: message.generation,
                        changes: message.changes,
                        memory: message.memory,
                        movements: message.movements,
                        warnings: message.warnings,
                        movements_unknown: message.movements_unknown,
                    },
                }
            }
        }

        impl ObjectCalls for v1::$kind {
            async fn list(
                client: &mut Client,
                pool: String,
            ) -> Result<(u64, Vec<ObjectAnswer<Self>>), Status> {
                let _ = &pool;
                let request = v1::$list_request { $($pool: pool,)? };
                let answer = client.$list_call(request).await?.into_inner();
                Ok((answer.generation, answer.$list.into_iter().map(Into::into).collect()))
            }

            async fn get(client: &mut Client, id: ObjectId) -> Result<ObjectAnswer<Self>, Status> {
                let request = v1::$get_request { $($pool: id.pool,)? $name: id.name };
                Ok(client.$get_call(request).await?.into_inner().into())
            }

            async fn create(
                client: &mut Client,
                pool: String,
                object: Self,
                how: CreateOptions,
            ) -> Result<ObjectAnswer<Self>, Status> {
                let _ = &pool;
                let request = v1::$create_request {
                    $($pool: pool,)?
                    $field: Some(object),
                    dry_run: how.dry_run,
                    schema_revision: SCHEMA_REVISION.into(),
                    any_schema: false,
                    reason: how.reason,
                };
                Ok(client.$create_call(request).await?.into_inner().into())
            }

            async fn update(
                client: &mut Client,
                pool: String,
                object: Self,
                how: UpdateOptions,
            ) -> Result<ObjectAnswer<Self>, Status> {
                let _ = &pool;
                let request = v1::$update_request {
                    $($pool: pool,)?
                    $field: Some(object),
                    update_mask: Some(FieldMask { paths: how.paths }),
                    etag: how.etag,
                    allow_missing: how.allow_missing,
                    dry_run: how.dry_run,
                    schema_revision: SCHEMA_REVISION.into(),
                    any_schema: false,
                    reason: how.reason,
                };
                Ok(client.$update_call(request).await?.into_inner().into())
            }

            async fn delete(client: &mut Client, id: ObjectId, how: DeleteOptions) -> Result<v1::ApplyResponse, Status> {
                let request = v1::$delete_request {
                    $($pool: id.pool,)?
                    $name: id.name,
                    etag: how.etag,
                    allow_missing: how.allow_missing,
                    dry_run: how.dry_run,
                    reason: how.reason,
                };
                let answer = client.$delete_call(request).await?.into_inner();
                Ok(v1::ApplyResponse {
                    generation: answer.generation,
                    changes: answer.changes,
                    memory: answer.memory,
                    movements: answer.movements,
                    warnings: answer.warnings,
                    movements_unknown: answer.movements_unknown,
                })
            }
        }
    )*};
}

calls! {
    Region region regions RegionObject [] name
        list_regions ListRegionsRequest get_region GetRegionRequest
        create_region CreateRegionRequest update_region UpdateRegionRequest
        delete_region DeleteRegionRequest;
    HealthCheck health_check health_checks HealthCheckObject [] name
        list_health_checks ListHealthChecksRequest get_health_check GetHealthCheckRequest
        create_health_check CreateHealthCheckRequest update_health_check UpdateHealthCheckRequest
        delete_health_check DeleteHealthCheckRequest;
    Pool pool pools PoolObject [] name
        list_pools ListPoolsRequest get_pool GetPoolRequest
        create_pool CreatePoolRequest update_pool UpdatePoolRequest
        delete_pool DeletePoolRequest;
    Backend backend backends BackendObject [pool] address
        list_backends ListBackendsRequest get_backend GetBackendRequest
        create_backend CreateBackendRequest update_backend UpdateBackendRequest
        delete_backend DeleteBackendRequest;
    Service service services ServiceObject [] name
        list_services ListServicesRequest get_service GetServiceRequest
        create_service CreateServiceRequest update_service UpdateServiceRequest
        delete_service DeleteServiceRequest;
}
