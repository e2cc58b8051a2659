//! Calls that remove too much at once.

use spillway_proto::v1::objects_client::ObjectsClient;
use tonic::Code;
use tonic_types::StatusExt as _;

use super::*;
use crate::audit::tests::lines;
use lb_config::HINT_TRAILER;

/// Pool `web` of ten backends, pool `dns` of one, pool `empty`, and a service of each of the first two.
fn large() -> v1::Configuration {
    let pool = |name: &str, backends: std::ops::RangeInclusive<u8>| {
        let backends = backends.map(|last| {
            format!("[[pool.backend]]\naddress = \"10.0.0.{last}\"\nregion = \"eu\"\n")
        });
        format!("[[pool]]\nname = \"{name}\"\nslots = 31\n{}", backends.collect::<String>())
    };
    let service = |name: &str, port: u16| {
        format!(
            "[[service]]\nname = \"{name}\"\naddress = \"192.0.2.1\"\nport = {port}\nprotocol = \"tcp\"\npool = \"{name}\"\n"
        )
    };
    let pools = pool("web", 1..=10) + &pool("dns", 20..=20) + "[[pool]]\nname = \"empty\"\n";
    let text =
        format!("[[region]]\nname = \"eu\"\n{pools}{}{}", service("web", 80), service("dns", 53));
    Document::parse(&text).unwrap().into()
}

fn backends(pool: &str, last: std::ops::RangeInclusive<u8>) -> Vec<v1::Backend> {
    let backend = |last| v1::Backend {
        pool: pool.into(),
        address: format!("10.0.0.{last}"),
        ..v1::Backend::default()
    };
    last.map(backend).collect()
}

const WEB: &str = "pool web loses 4 of 10 backends, more than 30 %: this needs --force";
const DNS: &str = "service dns loses all backends, of which it has 1: this needs --force";

fn refused<T: std::fmt::Debug>(answer: Result<tonic::Response<T>, tonic::Status>) -> tonic::Status {
    let status = answer.unwrap_err();
    let reason = status.get_details_error_info().unwrap().reason;
    assert_eq!((status.code(), &*reason), (Code::FailedPrecondition, "FORCE_REQUIRED"));
    let hint = status.metadata().get(HINT_TRAILER).unwrap().to_str().unwrap();
    assert!(hint.contains("--force"), "{hint}");
    status
}

#[tokio::test]
async fn no_call_removes_too_much_without_force() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    let mut client = daemon.client().await;
    let mut objects = ObjectsClient::new(daemon.channel().await);
    client.apply(apply(large())).await.unwrap();

    let mut fewer = large();
    fewer.pools[0].backends.truncate(6);
    let status = refused(client.apply(apply(fewer.clone())).await);
    assert_eq!(status.message(), WEB);
    let metadata =
        [("backends", "10"), ("kind", "POOL"), ("name", "web"), ("pool", ""), ("removed", "4")];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(status.get_details_error_info().unwrap().metadata, metadata.into());

    let batch = v1::BatchDeleteBackendsRequest {
        backends: backends("web", 1..=4),
        ..v1::BatchDeleteBackendsRequest::default()
    };
    assert_eq!(refused(objects.batch_delete_backends(batch.clone()).await).message(), WEB);
    let three = backends("web", 1..=3);
    let allowed =
        v1::BatchDeleteBackendsRequest { backends: three, validate_only: true, ..batch.clone() };
    objects.batch_delete_backends(allowed).await.unwrap();
    let pool = v1::UpdatePoolRequest {
        pool: Some(fewer.pools[0].clone()),
        update_mask: Some(prost_types::FieldMask { paths: vec!["backends".into()] }),
        schema_revision: spillway_proto::SCHEMA_REVISION.into(),
        ..v1::UpdatePoolRequest::default()
    };
    assert_eq!(refused(objects.update_pool(pool.clone()).await).message(), WEB);
    let last = v1::DeleteBackendRequest {
        pool: "dns".into(),
        address: "10.0.0.20".into(),
        ..v1::DeleteBackendRequest::default()
    };
    assert_eq!(refused(objects.delete_backend(last.clone()).await).message(), DNS);
    let service =
        v1::Service { name: "dns".into(), pool: "empty".into(), ..v1::Service::default() };
    let service = v1::UpdateServiceRequest {
        service: Some(service),
        update_mask: Some(prost_types::FieldMask { paths: vec!["pool".into()] }),
        ..v1::UpdateServiceRequest::default()
    };
    assert_eq!(refused(objects.update_service(service.clone()).await).message(), DNS);
    let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(exported.generation, 1);

    // Each as a dry run, and then with force.
    let dry = v1::BatchDeleteBackendsRequest { validate_only: true, ..batch.clone() };
    let dry = objects.batch_delete_backends(dry).await.unwrap().into_inner().result.unwrap();
    let warned: Vec<_> = dry.warnings.iter().map(|it| (it.reason(), &*it.text)).collect();
    assert_eq!(warned, [(v1::WarningReason::ForceRequired, WEB)]);
    objects
        .batch_delete_backends(v1::BatchDeleteBackendsRequest { force: true, ..batch })
        .await
        .unwrap();
    objects.delete_backend(v1::DeleteBackendRequest { force: true, ..last }).await.unwrap();
    let to_first = v1::RollbackRequest { generation: 1, ..v1::RollbackRequest::default() };
    client.rollback(to_first).await.unwrap();
    objects.update_pool(v1::UpdatePoolRequest { force: true, ..pool }).await.unwrap();
    objects.update_service(v1::UpdateServiceRequest { force: true, ..service }).await.unwrap();
    // An earlier generation had less.
    let to_less = v1::RollbackRequest { generation: 3, ..v1::RollbackRequest::default() };
    let to_first = v1::RollbackRequest { generation: 1, ..v1::RollbackRequest::default() };
    client.rollback(to_first).await.unwrap();
    let status = refused(client.rollback(to_less.clone()).await);
    assert_eq!(
        status.message(),
        "service dns loses all backends, of which it has 1, pool web loses 4 of 10 backends, more than 30 %: this needs \
         --force"
    );
    client.rollback(v1::RollbackRequest { force: true, ..to_less }).await.unwrap();

    audit.flush().await;
    let lines = lines(&path);
    let of = |what: &str| lines.iter().filter(|line| line["what"] == what).collect::<Vec<_>>();
    let asked = of("intent").into_iter().filter(|line| line["force"] == true).count();
    assert_eq!(asked, 5);
    let forced: Vec<_> = of("apply").into_iter().filter_map(|line| line.get("forced")).collect();
    assert_eq!(forced.len(), 5, "{forced:?}");
    assert_eq!(forced[0][0], "pool web loses 4 of 10 backends, more than 30 %");
    let refusals = of("apply").into_iter().filter(|line| line["outcome"] == "refused").count();
    assert_eq!(refusals, 6);
}
