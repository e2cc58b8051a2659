//! The calls of `spillway.v1.Objects`, with the same signatures for every kind.

use std::{fmt::Debug, mem};

use prost_types::FieldMask;
use spillway_proto::{SCHEMA_REVISION, v1, v1::objects_client::ObjectsClient};
use tonic::Status;

use crate::client::MAX_PAGE;

pub(crate) type Client = ObjectsClient;

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
}

/// Which objects are listed. Kinds ignore what they do not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListFilter {
    /// Empty: all.
    pub(crate) pool: String,
    /// Empty: all.
    pub(crate) region: String,
    /// A number of [`v1::AdminState`]; 0: any.
    pub(crate) admin_state: i32,
}

/// An object after a change, and what changed.
pub(crate) type Changed<K> = (ObjectAnswer<K>, v1::ApplyResult);

#[derive(Clone, Debug, Default)]
pub(crate) struct CreateOptions {
    pub(crate) dry_run: bool,
    /// As in `UpdateOptions`.
    pub(crate) force: bool,
    /// Empty: none.
    pub(crate) reason: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct UpdateOptions {
    pub(crate) paths: Vec<String>,
    pub(crate) etag: String,
    pub(crate) allow_missing: bool,
    pub(crate) dry_run: bool,
    /// Remove what the change removes, however much that is, and let a service have an address of a balancer.
    pub(crate) force: bool,
    /// Empty: none.
    pub(crate) reason: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) etag: String,
    pub(crate) allow_missing: bool,
    pub(crate) dry_run: bool,
    /// Remove what the change removes, however much that is.
    pub(crate) force: bool,
    /// Empty: none.
    pub(crate) reason: String,
}

/// The five calls of a kind.
pub(crate) trait ObjectCalls: Clone + Default + Debug {
    /// The generation and all objects that the filter selects.
    async fn list(
        client: &mut Client,
        filter: &ListFilter,
    ) -> Result<(u64, Vec<ObjectAnswer<Self>>), Status>;
    async fn get(client: &mut Client, id: ObjectId) -> Result<ObjectAnswer<Self>, Status>;
    async fn create(
        client: &mut Client,
        pool: String,
        object: Self,
        how: CreateOptions,
    ) -> Result<Changed<Self>, Status>;
    async fn update(
        client: &mut Client,
        pool: String,
        object: Self,
        how: UpdateOptions,
    ) -> Result<Changed<Self>, Status>;
    async fn delete(
        client: &mut Client,
        id: ObjectId,
        how: DeleteOptions,
    ) -> Result<v1::ApplyResult, Status>;
}

/// Implements the calls of each kind. Only backends have a pool.
macro_rules! calls {
    ($($kind:ident $field:ident $list:ident [$($pool:ident)?] [$($filter:ident)*] [$($create_force:ident)?] [$($update_force:ident)?]
       [$($delete_force:ident)?] $name:ident
       $list_call:ident $list_request:ident $get_call:ident $get_request:ident
       $create_call:ident $create_request:ident $update_call:ident $update_request:ident
       $delete_call:ident $delete_request:ident;)*) => {$(
        impl From<v1::$kind> for ObjectAnswer<v1::$kind> {
            fn from(mut object: v1::$kind) -> Self {
                let pool = [$(mem::take(&mut object.$pool),)?].into_iter().next();
                let etag = mem::take(&mut object.etag);
                Self { pool: pool.unwrap_or_default(), object, etag }
            }
        }

        impl ObjectCalls for v1::$kind {
            async fn list(
                client: &mut Client,
                filter: &ListFilter,
            ) -> Result<(u64, Vec<ObjectAnswer<Self>>), Status> {
                let _ = filter;
                let (mut listed, mut page_token) = (Vec::new(), String::new());
                loop {
                    let request = v1::$list_request {
                        page_size: MAX_PAGE,
                        page_token,
                        $($filter: filter.$filter.clone(),)*
                    };
                    let answer = client.$list_call(request).await?.into_inner();
                    listed.extend(answer.$list.into_iter().map(ObjectAnswer::from));
                    page_token = answer.next_page_token;
                    if page_token.is_empty() {
                        return Ok((answer.generation, listed));
                    }
                }
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
            ) -> Result<Changed<Self>, Status> {
                let _ = &pool;
                let request = v1::$create_request {
                    $field: Some(Self { $($pool: pool,)? ..object }),
                    validate_only: how.dry_run,
                    schema_revision: SCHEMA_REVISION.into(),
                    any_schema: false,
                    reason: how.reason,
                    $($create_force: how.force,)?
                };
                let answer = client.$create_call(request).await?.into_inner();
                Ok((answer.$field.unwrap_or_default().into(), answer.result.unwrap_or_default()))
            }

            async fn update(
                client: &mut Client,
                pool: String,
                object: Self,
                how: UpdateOptions,
            ) -> Result<Changed<Self>, Status> {
                let _ = &pool;
                let request = v1::$update_request {
                    $field: Some(Self { etag: how.etag, $($pool: pool,)? ..object }),
                    update_mask: Some(FieldMask { paths: how.paths }),
                    allow_missing: how.allow_missing,
                    validate_only: how.dry_run,
                    schema_revision: SCHEMA_REVISION.into(),
                    any_schema: false,
                    reason: how.reason,
                    $($update_force: how.force,)?
                };
                let answer = client.$update_call(request).await?.into_inner();
                Ok((answer.$field.unwrap_or_default().into(), answer.result.unwrap_or_default()))
            }

            async fn delete(
                client: &mut Client,
                id: ObjectId,
                how: DeleteOptions,
            ) -> Result<v1::ApplyResult, Status> {
                let request = v1::$delete_request {
                    $($pool: id.pool,)?
                    $name: id.name,
                    etag: how.etag,
                    allow_missing: how.allow_missing,
                    validate_only: how.dry_run,
                    reason: how.reason,
                    $($delete_force: how.force,)?
                };
                Ok(client.$delete_call(request).await?.into_inner().result.unwrap_or_default())
            }
        }
    )*};
}

calls! {
    Region region regions [] [] [] [] [] name
        list_regions ListRegionsRequest get_region GetRegionRequest
        create_region CreateRegionRequest update_region UpdateRegionRequest
        delete_region DeleteRegionRequest;
    HealthCheck health_check health_checks [] [] [] [] [] name
        list_health_checks ListHealthChecksRequest get_health_check GetHealthCheckRequest
        create_health_check CreateHealthCheckRequest update_health_check UpdateHealthCheckRequest
        delete_health_check DeleteHealthCheckRequest;
    Pool pool pools [] [] [] [force] [] name
        list_pools ListPoolsRequest get_pool GetPoolRequest
        create_pool CreatePoolRequest update_pool UpdatePoolRequest
        delete_pool DeletePoolRequest;
    Backend backend backends [pool] [pool region admin_state] [] [] [force] address
        list_backends ListBackendsRequest get_backend GetBackendRequest
        create_backend CreateBackendRequest update_backend UpdateBackendRequest
        delete_backend DeleteBackendRequest;
    Service service services [] [pool] [force] [force] [] name
        list_services ListServicesRequest get_service GetServiceRequest
        create_service CreateServiceRequest update_service UpdateServiceRequest
        delete_service DeleteServiceRequest;
}
