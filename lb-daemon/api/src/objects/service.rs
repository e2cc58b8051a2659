//! The calls of `spillway.v1.Objects`: each converts its request for [`Objects`].

use spillway_proto::v1::{self, objects_server};
use tonic::{Request, Response, Status};

use super::{
    Object, Objects, Options, Sender, Sent, Update,
    list::{BackendFilter, Page},
};
use crate::{convert::WrongField, page::PageRequest};
use lb_config::message::ApiEnum;
use lb_model::AdminState;

type Answered<T> = Result<Response<T>, Status>;

/// The object of a request.
fn sent<O: Object>(object: Option<O>) -> Result<Sent<O>, Status> {
    Ok(Sent::new(object, O::FIELD)?)
}

#[tonic::async_trait]
impl objects_server::Objects for Objects {
    async fn create_region(
        &self,
        request: Request<v1::CreateRegionRequest>,
    ) -> Answered<v1::CreateRegionResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (region, result) = self.create(sent(r.region)?, sender, options).await?;
        Ok(Response::new(v1::CreateRegionResponse { region, result }))
    }

    async fn get_region(&self, request: Request<v1::GetRegionRequest>) -> Answered<v1::Region> {
        let r = request.into_inner();
        Ok(Response::new(self.get(&v1::Region::id(None, &r.name, "")?).await?))
    }

    async fn list_regions(
        &self,
        request: Request<v1::ListRegionsRequest>,
    ) -> Answered<v1::ListRegionsResponse> {
        let r = request.into_inner();
        let request = PageRequest::new(r.page_size, &r.page_token, "regions")?;
        let page = self.list::<v1::Region>(&request).await?;
        let Page { objects: regions, next_page_token, generation } = page;
        Ok(Response::new(v1::ListRegionsResponse { regions, next_page_token, generation }))
    }

    async fn update_region(
        &self,
        request: Request<v1::UpdateRegionRequest>,
    ) -> Answered<v1::UpdateRegionResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let update = Update::new(r.update_mask.as_ref(), r.allow_missing)?;
        let (region, result) = self.update(sent(r.region)?, update, sender, options).await?;
        Ok(Response::new(v1::UpdateRegionResponse { region, result }))
    }

    async fn delete_region(
        &self,
        request: Request<v1::DeleteRegionRequest>,
    ) -> Answered<v1::DeleteRegionResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let id = v1::Region::id(None, &r.name, "")?;
        let result = self.delete::<v1::Region>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(v1::DeleteRegionResponse { result }))
    }

    async fn create_health_check(
        &self,
        request: Request<v1::CreateHealthCheckRequest>,
    ) -> Answered<v1::CreateHealthCheckResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (health_check, result) = self.create(sent(r.health_check)?, sender, options).await?;
        Ok(Response::new(v1::CreateHealthCheckResponse { health_check, result }))
    }

    async fn get_health_check(
        &self,
        request: Request<v1::GetHealthCheckRequest>,
    ) -> Answered<v1::HealthCheck> {
        let r = request.into_inner();
        Ok(Response::new(self.get(&v1::HealthCheck::id(None, &r.name, "")?).await?))
    }

    async fn list_health_checks(
        &self,
        request: Request<v1::ListHealthChecksRequest>,
    ) -> Answered<v1::ListHealthChecksResponse> {
        let r = request.into_inner();
        let request = PageRequest::new(r.page_size, &r.page_token, "health_checks")?;
        let page = self.list::<v1::HealthCheck>(&request).await?;
        let Page { objects: health_checks, next_page_token, generation } = page;
        Ok(Response::new(v1::ListHealthChecksResponse {
            health_checks,
            next_page_token,
            generation,
        }))
    }

    async fn update_health_check(
        &self,
        request: Request<v1::UpdateHealthCheckRequest>,
    ) -> Answered<v1::UpdateHealthCheckResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let update = Update::new(r.update_mask.as_ref(), r.allow_missing)?;
        let (health_check, result) =
            self.update(sent(r.health_check)?, update, sender, options).await?;
        Ok(Response::new(v1::UpdateHealthCheckResponse { health_check, result }))
    }

    async fn delete_health_check(
        &self,
        request: Request<v1::DeleteHealthCheckRequest>,
    ) -> Answered<v1::DeleteHealthCheckResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let id = v1::HealthCheck::id(None, &r.name, "")?;
        let result = self.delete::<v1::HealthCheck>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(v1::DeleteHealthCheckResponse { result }))
    }

    async fn create_pool(
        &self,
        request: Request<v1::CreatePoolRequest>,
    ) -> Answered<v1::CreatePoolResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (pool, result) = self.create(sent(r.pool)?, sender, options).await?;
        Ok(Response::new(v1::CreatePoolResponse { pool, result }))
    }

    async fn get_pool(&self, request: Request<v1::GetPoolRequest>) -> Answered<v1::Pool> {
        let r = request.into_inner();
        Ok(Response::new(self.get(&v1::Pool::id(None, &r.name, "")?).await?))
    }

    async fn list_pools(
        &self,
        request: Request<v1::ListPoolsRequest>,
    ) -> Answered<v1::ListPoolsResponse> {
        let r = request.into_inner();
        let request = PageRequest::new(r.page_size, &r.page_token, "pools")?;
        let page = self.list_pools(&request).await?;
        let Page { objects: pools, next_page_token, generation } = page;
        Ok(Response::new(v1::ListPoolsResponse { pools, next_page_token, generation }))
    }

    async fn update_pool(
        &self,
        request: Request<v1::UpdatePoolRequest>,
    ) -> Answered<v1::UpdatePoolResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?.forced(r.force);
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let update = Update::new(r.update_mask.as_ref(), r.allow_missing)?;
        let (pool, result) = self.update(sent(r.pool)?, update, sender, options).await?;
        Ok(Response::new(v1::UpdatePoolResponse { pool, result }))
    }

    async fn delete_pool(
        &self,
        request: Request<v1::DeletePoolRequest>,
    ) -> Answered<v1::DeletePoolResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let id = v1::Pool::id(None, &r.name, "")?;
        let result = self.delete::<v1::Pool>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(v1::DeletePoolResponse { result }))
    }

    async fn create_backend(
        &self,
        request: Request<v1::CreateBackendRequest>,
    ) -> Answered<v1::CreateBackendResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (backend, result) = self.create(sent(r.backend)?, sender, options).await?;
        Ok(Response::new(v1::CreateBackendResponse { backend, result }))
    }

    async fn get_backend(&self, request: Request<v1::GetBackendRequest>) -> Answered<v1::Backend> {
        let r = request.into_inner();
        Ok(Response::new(self.get(&v1::Backend::id(Some(&*r.pool), &r.address, "")?).await?))
    }

    async fn list_backends(
        &self,
        request: Request<v1::ListBackendsRequest>,
    ) -> Answered<v1::ListBackendsResponse> {
        let r = request.into_inner();
        let admin_state = AdminState::from_api(r.admin_state)
            .map_err(|unknown| WrongField::new("admin_state", unknown.to_string()))?;
        let filter = BackendFilter { pool: r.pool, region: r.region, admin_state };
        let request = PageRequest::new(r.page_size, &r.page_token, &filter.list())?;
        let page = self.list_backends(&request, &filter).await?;
        let Page { objects: backends, next_page_token, generation } = page;
        Ok(Response::new(v1::ListBackendsResponse { backends, next_page_token, generation }))
    }

    async fn update_backend(
        &self,
        request: Request<v1::UpdateBackendRequest>,
    ) -> Answered<v1::UpdateBackendResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let update = Update::new(r.update_mask.as_ref(), r.allow_missing)?;
        let (backend, result) = self.update(sent(r.backend)?, update, sender, options).await?;
        Ok(Response::new(v1::UpdateBackendResponse { backend, result }))
    }

    async fn delete_backend(
        &self,
        request: Request<v1::DeleteBackendRequest>,
    ) -> Answered<v1::DeleteBackendResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?.forced(r.force);
        let id = v1::Backend::id(Some(&*r.pool), &r.address, "")?;
        let result = self.delete::<v1::Backend>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(v1::DeleteBackendResponse { result }))
    }

    async fn create_service(
        &self,
        request: Request<v1::CreateServiceRequest>,
    ) -> Answered<v1::CreateServiceResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?.forced(r.force);
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (service, result) = self.create(sent(r.service)?, sender, options).await?;
        Ok(Response::new(v1::CreateServiceResponse { service, result }))
    }

    async fn get_service(&self, request: Request<v1::GetServiceRequest>) -> Answered<v1::Service> {
        let r = request.into_inner();
        Ok(Response::new(self.get(&v1::Service::id(None, &r.name, "")?).await?))
    }

    async fn list_services(
        &self,
        request: Request<v1::ListServicesRequest>,
    ) -> Answered<v1::ListServicesResponse> {
        let r = request.into_inner();
        let list = format!("services {:?}", r.pool);
        let request = PageRequest::new(r.page_size, &r.page_token, &list)?;
        let page = self.list_services(&request, &r.pool).await?;
        let Page { objects: services, next_page_token, generation } = page;
        Ok(Response::new(v1::ListServicesResponse { services, next_page_token, generation }))
    }

    async fn update_service(
        &self,
        request: Request<v1::UpdateServiceRequest>,
    ) -> Answered<v1::UpdateServiceResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?.forced(r.force);
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let update = Update::new(r.update_mask.as_ref(), r.allow_missing)?;
        let (service, result) = self.update(sent(r.service)?, update, sender, options).await?;
        Ok(Response::new(v1::UpdateServiceResponse { service, result }))
    }

    async fn delete_service(
        &self,
        request: Request<v1::DeleteServiceRequest>,
    ) -> Answered<v1::DeleteServiceResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let id = v1::Service::id(None, &r.name, "")?;
        let result = self.delete::<v1::Service>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(v1::DeleteServiceResponse { result }))
    }

    async fn batch_create_backends(
        &self,
        request: Request<v1::BatchCreateBackendsRequest>,
    ) -> Answered<v1::BatchCreateBackendsResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (backends, result) = self.batch_create(r.backends, sender, options).await?;
        Ok(Response::new(v1::BatchCreateBackendsResponse { backends, result }))
    }

    async fn batch_update_backends(
        &self,
        request: Request<v1::BatchUpdateBackendsRequest>,
    ) -> Answered<v1::BatchUpdateBackendsResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let update = Update::new(r.update_mask.as_ref(), r.allow_missing)?;
        let (backends, result) = self.batch_update(r.backends, update, sender, options).await?;
        Ok(Response::new(v1::BatchUpdateBackendsResponse { backends, result }))
    }

    async fn batch_delete_backends(
        &self,
        request: Request<v1::BatchDeleteBackendsRequest>,
    ) -> Answered<v1::BatchDeleteBackendsResponse> {
        let r = request.into_inner();
        let options = Options::new(r.validate_only, &r.reason)?.forced(r.force);
        let result = self.batch_delete(r.backends, r.allow_missing, options).await?;
        Ok(Response::new(v1::BatchDeleteBackendsResponse { result }))
    }
}
