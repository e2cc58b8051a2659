//! The calls of `spillway.v1.Objects`: each converts its request for [`Objects`].

use spillway_proto::v1::{self, objects_server};
use tonic::{Request, Response, Status};

use super::{Id, Object, ObjectAnswer, ObjectRefused, Objects, Options, Sender, Update};

type Answered<T> = Result<Response<T>, Status>;

/// The object of a request, and its id.
fn sent<O: Object>(pool: Option<&str>, object: Option<O>) -> Result<(Id, O), ObjectRefused> {
    let object = object.ok_or_else(|| ObjectRefused::wrong(O::FIELD, "must be set"))?;
    Ok((O::id(pool, object.name(), &format!("{}.", O::FIELD))?, object))
}

fn listed<O: Object, A: From<ObjectAnswer<O>>>(
    list: &[O],
    pool: Option<&str>,
    generation: u64,
) -> Vec<A> {
    let id = |object: &O| Id::from_listed::<O>(pool, object);
    list.iter().map(|object| ObjectAnswer::new(object, &id(object), generation).into()).collect()
}

#[tonic::async_trait]
impl objects_server::Objects for Objects {
    async fn create_region(
        &self,
        request: Request<v1::CreateRegionRequest>,
    ) -> Answered<v1::RegionObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.region)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        Ok(Response::new(self.create(&id, &object, sender, options).await?.into()))
    }

    async fn get_region(
        &self,
        request: Request<v1::GetRegionRequest>,
    ) -> Answered<v1::RegionObject> {
        let r = request.into_inner();
        let id = v1::Region::id(None, &r.name, "")?;
        Ok(Response::new(self.get::<v1::Region>(&id).await?.into()))
    }

    async fn list_regions(
        &self,
        _: Request<v1::ListRegionsRequest>,
    ) -> Answered<v1::ListRegionsResponse> {
        let in_force = self.read().await?;
        let (generation, configuration) = (in_force.generation, in_force.whole());
        let regions = listed(&configuration.regions, None, generation);
        Ok(Response::new(v1::ListRegionsResponse { regions, generation }))
    }

    async fn update_region(
        &self,
        request: Request<v1::UpdateRegionRequest>,
    ) -> Answered<v1::RegionObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.region)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (mask, allow_missing) = (r.update_mask.as_ref(), r.allow_missing);
        let update = Update { object: &object, mask, etag: &r.etag, allow_missing };
        Ok(Response::new(self.update(&id, &update, sender, options).await?.into()))
    }

    async fn delete_region(
        &self,
        request: Request<v1::DeleteRegionRequest>,
    ) -> Answered<v1::DeleteRegionResponse> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let id = v1::Region::id(None, &r.name, "")?;
        let gone = self.delete::<v1::Region>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(gone.into()))
    }

    async fn create_health_check(
        &self,
        request: Request<v1::CreateHealthCheckRequest>,
    ) -> Answered<v1::HealthCheckObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.health_check)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        Ok(Response::new(self.create(&id, &object, sender, options).await?.into()))
    }

    async fn get_health_check(
        &self,
        request: Request<v1::GetHealthCheckRequest>,
    ) -> Answered<v1::HealthCheckObject> {
        let r = request.into_inner();
        let id = v1::HealthCheck::id(None, &r.name, "")?;
        Ok(Response::new(self.get::<v1::HealthCheck>(&id).await?.into()))
    }

    async fn list_health_checks(
        &self,
        _: Request<v1::ListHealthChecksRequest>,
    ) -> Answered<v1::ListHealthChecksResponse> {
        let in_force = self.read().await?;
        let (generation, configuration) = (in_force.generation, in_force.whole());
        let health_checks = listed(&configuration.health_checks, None, generation);
        Ok(Response::new(v1::ListHealthChecksResponse { health_checks, generation }))
    }

    async fn update_health_check(
        &self,
        request: Request<v1::UpdateHealthCheckRequest>,
    ) -> Answered<v1::HealthCheckObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.health_check)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (mask, allow_missing) = (r.update_mask.as_ref(), r.allow_missing);
        let update = Update { object: &object, mask, etag: &r.etag, allow_missing };
        Ok(Response::new(self.update(&id, &update, sender, options).await?.into()))
    }

    async fn delete_health_check(
        &self,
        request: Request<v1::DeleteHealthCheckRequest>,
    ) -> Answered<v1::DeleteHealthCheckResponse> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let id = v1::HealthCheck::id(None, &r.name, "")?;
        let gone = self.delete::<v1::HealthCheck>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(gone.into()))
    }

    async fn create_pool(
        &self,
        request: Request<v1::CreatePoolRequest>,
    ) -> Answered<v1::PoolObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.pool)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        Ok(Response::new(self.create(&id, &object, sender, options).await?.into()))
    }

    async fn get_pool(&self, request: Request<v1::GetPoolRequest>) -> Answered<v1::PoolObject> {
        let r = request.into_inner();
        let id = v1::Pool::id(None, &r.name, "")?;
        Ok(Response::new(self.get::<v1::Pool>(&id).await?.into()))
    }

    async fn list_pools(
        &self,
        _: Request<v1::ListPoolsRequest>,
    ) -> Answered<v1::ListPoolsResponse> {
        let in_force = self.read().await?;
        let (generation, configuration) = (in_force.generation, in_force.whole());
        let pools = listed(&configuration.pools, None, generation);
        Ok(Response::new(v1::ListPoolsResponse { pools, generation }))
    }

    async fn update_pool(
        &self,
        request: Request<v1::UpdatePoolRequest>,
    ) -> Answered<v1::PoolObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.pool)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (mask, allow_missing) = (r.update_mask.as_ref(), r.allow_missing);
        let update = Update { object: &object, mask, etag: &r.etag, allow_missing };
        Ok(Response::new(self.update(&id, &update, sender, options).await?.into()))
    }

    async fn delete_pool(
        &self,
        request: Request<v1::DeletePoolRequest>,
    ) -> Answered<v1::DeletePoolResponse> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let id = v1::Pool::id(None, &r.name, "")?;
        let gone = self.delete::<v1::Pool>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(gone.into()))
    }

    async fn create_backend(
        &self,
        request: Request<v1::CreateBackendRequest>,
    ) -> Answered<v1::BackendObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(Some(&*r.pool), r.backend)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        Ok(Response::new(self.create(&id, &object, sender, options).await?.into()))
    }

    async fn get_backend(
        &self,
        request: Request<v1::GetBackendRequest>,
    ) -> Answered<v1::BackendObject> {
        let r = request.into_inner();
        let id = v1::Backend::id(Some(&*r.pool), &r.address, "")?;
        Ok(Response::new(self.get::<v1::Backend>(&id).await?.into()))
    }

    async fn list_backends(
        &self,
        request: Request<v1::ListBackendsRequest>,
    ) -> Answered<v1::ListBackendsResponse> {
        let r = request.into_inner();
        let in_force = self.read().await?;
        let (generation, configuration) = (in_force.generation, in_force.whole());
        let pools: Vec<_> = configuration
            .pools
            .iter()
            .filter(|pool| r.pool.is_empty() || pool.name == r.pool)
            .collect();
        if pools.is_empty() && !r.pool.is_empty() {
            return Err(ObjectRefused::Missing(v1::Pool::id(None, &r.pool, "")?).into());
        }
        let backends =
            pools.into_iter().flat_map(|pool| listed(&pool.backends, Some(&pool.name), generation));
        Ok(Response::new(v1::ListBackendsResponse { backends: backends.collect(), generation }))
    }

    async fn update_backend(
        &self,
        request: Request<v1::UpdateBackendRequest>,
    ) -> Answered<v1::BackendObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(Some(&*r.pool), r.backend)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (mask, allow_missing) = (r.update_mask.as_ref(), r.allow_missing);
        let update = Update { object: &object, mask, etag: &r.etag, allow_missing };
        Ok(Response::new(self.update(&id, &update, sender, options).await?.into()))
    }

    async fn delete_backend(
        &self,
        request: Request<v1::DeleteBackendRequest>,
    ) -> Answered<v1::DeleteBackendResponse> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let id = v1::Backend::id(Some(&*r.pool), &r.address, "")?;
        let gone = self.delete::<v1::Backend>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(gone.into()))
    }

    async fn create_service(
        &self,
        request: Request<v1::CreateServiceRequest>,
    ) -> Answered<v1::ServiceObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.service)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        Ok(Response::new(self.create(&id, &object, sender, options).await?.into()))
    }

    async fn get_service(
        &self,
        request: Request<v1::GetServiceRequest>,
    ) -> Answered<v1::ServiceObject> {
        let r = request.into_inner();
        let id = v1::Service::id(None, &r.name, "")?;
        Ok(Response::new(self.get::<v1::Service>(&id).await?.into()))
    }

    async fn list_services(
        &self,
        _: Request<v1::ListServicesRequest>,
    ) -> Answered<v1::ListServicesResponse> {
        let in_force = self.read().await?;
        let (generation, configuration) = (in_force.generation, in_force.whole());
        let services = listed(&configuration.services, None, generation);
        Ok(Response::new(v1::ListServicesResponse { services, generation }))
    }

    async fn update_service(
        &self,
        request: Request<v1::UpdateServiceRequest>,
    ) -> Answered<v1::ServiceObject> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let (id, object) = sent(None, r.service)?;
        let sender = Sender::new(r.schema_revision, r.any_schema);
        let (mask, allow_missing) = (r.update_mask.as_ref(), r.allow_missing);
        let update = Update { object: &object, mask, etag: &r.etag, allow_missing };
        Ok(Response::new(self.update(&id, &update, sender, options).await?.into()))
    }

    async fn delete_service(
        &self,
        request: Request<v1::DeleteServiceRequest>,
    ) -> Answered<v1::DeleteServiceResponse> {
        let r = request.into_inner();
        let options = Options::new(r.dry_run, &r.reason)?;
        let id = v1::Service::id(None, &r.name, "")?;
        let gone = self.delete::<v1::Service>(&id, &r.etag, r.allow_missing, options).await?;
        Ok(Response::new(gone.into()))
    }
}
