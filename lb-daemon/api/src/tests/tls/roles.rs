//! What clients with a role for plans or for some pools can do, and what they are shown.

use spillway_proto::v1::overrides_client::OverridesClient;

use super::*;

impl Remote {
    async fn channel_of(&self, name: &str) -> Channel {
        self.channel(Some(&self.ours.client(name))).await.unwrap()
    }

    async fn boss(&self) -> Channel {
        self.channel(Some(&self.ours.issue("ignored.example", uri))).await.unwrap()
    }
}

/// A request to drain a target.
fn drain(target: v1::OverrideTarget, validate_only: bool) -> v1::SetOverridesRequest {
    let kind = v1::OverrideKind::Drain.into();
    v1::SetOverridesRequest { targets: vec![target], kind, validate_only, ..Default::default() }
}

fn backend(pool: &str) -> v1::OverrideTarget {
    v1::OverrideTarget { backend: "10.0.0.1".into(), pool: pool.into(), ..Default::default() }
}

#[tokio::test]
async fn a_plan_is_made_by_who_may_not_carry_it_out() {
    let remote = Remote::start().await;
    let channel = remote.channel_of("ci.example").await;
    let mut client = SpillwayClient::new(channel.clone());
    let mut better = configuration();
    better.pools[0].backends[0].weight = Some(3);
    let dry = |configuration| v1::ApplyRequest { validate_only: true, ..apply(configuration) };

    let planned = client.apply(dry(better.clone())).await.unwrap().into_inner().result.unwrap();
    assert!(!planned.changes.is_empty());
    let refused = client.apply(apply(better.clone())).await.unwrap_err();
    let said = "certificate ci.example: is plan, but /spillway.v1.Spillway/Apply needs admin";
    assert_eq!((refused.code(), refused.message()), (Code::PermissionDenied, said));
    let info = tonic_types::StatusExt::get_details_error_info(&refused).expect("it has details");
    assert_eq!((&*info.reason, &*info.domain), ("PERMISSION_DENIED", "spillway"));

    // All mistakes of a file, as for an admin.
    let mut wrong = better.clone();
    wrong.pools[0].backends[0].region = "nowhere".into();
    wrong.services[0].pool = "nothing".into();
    let for_plan = client.apply(dry(wrong.clone())).await.unwrap_err();
    let for_admin = SpillwayClient::new(remote.boss().await).apply(dry(wrong)).await.unwrap_err();
    assert_eq!(for_plan.code(), Code::InvalidArgument);
    assert_eq!(
        (for_plan.message(), for_plan.details()),
        (for_admin.message(), for_admin.details())
    );

    let mut objects = ObjectsClient::new(channel.clone());
    let object = v1::Backend { pool: "web".into(), ..better.pools[0].backends[0].clone() };
    let update = |validate_only| v1::UpdateBackendRequest {
        backend: Some(object.clone()),
        validate_only,
        ..Default::default()
    };
    objects.update_backend(update(true)).await.unwrap();
    let refused = objects.update_backend(update(false)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().ends_with("UpdateBackend needs operator"), "{refused}");

    let mut overrides = OverridesClient::new(channel);
    overrides.set_overrides(drain(backend("web"), true)).await.unwrap();
    let refused = overrides.set_overrides(drain(backend("web"), false)).await.unwrap_err();
    assert!(refused.message().ends_with("SetOverrides needs operator"), "{refused}");

    let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!(status.generation, 1, "nothing was applied");
    let none =
        overrides.list_overrides(v1::ListOverridesRequest::default()).await.unwrap().into_inner();
    assert!(none.overrides.is_empty());
}

#[tokio::test]
async fn the_hash_key_is_for_admins_of_all_pools() {
    let remote = Remote::start().await;
    let shown = async |channel| {
        let mut client = SpillwayClient::new(channel);
        let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
        exported.configuration.unwrap()
    };
    let whole = shown(remote.boss().await).await;
    assert_eq!(whole.hash_key, configuration().hash_key);
    let without = v1::Configuration { hash_key: String::new(), ..whole };
    for name in ["eye.example", "ci.example", "hand.example", "web.example", "team.example"] {
        assert_eq!(shown(remote.channel_of(name).await).await, without, "{name}");
    }
}

#[tokio::test]
async fn a_role_for_some_pools_ends_at_them() {
    let remote = Remote::start().await;
    let (web, other) =
        (remote.channel_of("web.example").await, remote.channel_of("other.example").await);
    let (mut of_web, mut of_other) =
        (OverridesClient::new(web.clone()), OverridesClient::new(other.clone()));

    of_web.set_overrides(drain(backend("web"), false)).await.unwrap();
    let everywhere = v1::OverrideTarget { region: "eu".into(), ..Default::default() };
    for (client, target, of) in [
        (&of_other, backend("web"), "other.example: is for the pools api-*"),
        (&of_web, everywhere, "web.example: is for the pools web*"),
        (&of_web, backend(""), "web.example: is for the pools web*"),
    ] {
        for validate_only in [false, true] {
            let request = drain(target.clone(), validate_only);
            let refused = client.clone().set_overrides(request).await.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
            assert!(refused.message().contains(of), "{refused}");
        }
    }
    let names: Vec<_> = {
        let list = of_other
            .list_overrides(v1::ListOverridesRequest::default())
            .await
            .unwrap()
            .into_inner();
        list.overrides.into_iter().map(|it| it.name).collect()
    };
    assert_eq!(names.len(), 1, "{names:?}");
    let remove = v1::RemoveOverridesRequest { names, ..Default::default() };
    let refused = of_other.remove_overrides(remove.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    of_web.remove_overrides(remove).await.unwrap();

    // Objects: an operator's fields in its pools, an admin's pool and service, and nothing of others.
    let mut backend = configuration().pools[0].backends[0].clone();
    (backend.pool, backend.weight) = ("web".into(), Some(7));
    let update = v1::UpdateBackendRequest { backend: Some(backend), ..Default::default() };
    let refused = ObjectsClient::new(other).update_backend(update.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let said = "certificate other.example: is for the pools api-*, but this concerns pool web";
    assert!(refused.message().contains(said), "{refused}");
    ObjectsClient::new(web).update_backend(update).await.unwrap();

    let mut team = ObjectsClient::new(remote.channel_of("team.example").await);
    let pool = |name: &str| v1::CreatePoolRequest {
        pool: Some(v1::Pool { name: name.into(), ..Default::default() }),
        ..Default::default()
    };
    team.create_pool(pool("api-new")).await.unwrap();
    for refused in [
        team.create_pool(pool("mail")).await.unwrap_err(),
        team.create_region(v1::CreateRegionRequest {
            region: Some(v1::Region { name: "us".into(), ..Default::default() }),
            ..Default::default()
        })
        .await
        .unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    }
    let denied = remote.audit().await;
    let denied: Vec<_> = denied.iter().filter(|line| line["what"] == "denied").collect();
    assert!(denied.len() >= 8, "{}", denied.len());
}

#[tokio::test]
async fn the_second_socket_is_only_for_reading() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(configuration())).await.unwrap();
    let channel = channel(read_only(&daemon.path)).await;
    let mut client = SpillwayClient::new(channel.clone());
    assert_eq!(
        client.status(v1::StatusRequest::default()).await.unwrap().into_inner().generation,
        1
    );
    let shown = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(shown.configuration.unwrap().hash_key, "");
    for validate_only in [false, true] {
        let request = v1::ApplyRequest { validate_only, ..apply(configuration()) };
        let refused = client.apply(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("is viewer, but"), "{refused}");
    }
    let refused = OverridesClient::new(channel).set_overrides(drain(backend("web"), false)).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
}
