use tokio_stream::StreamExt;
use tonic::{Code, Streaming};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_client::HealthClient,
};

use super::*;

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

/// Waits until a watch says so; what it says in between is of no interest.
async fn until(watch: &mut Streaming<HealthCheckResponse>, status: ServingStatus) {
    while watch.next().await.unwrap().unwrap().status() != status {}
}

#[tokio::test]
async fn health_is_that_of_state_and_packet_path() {
    let daemon = Daemon::start();
    let mut client = HealthClient::new(daemon.channel().await);
    let mut watch = client.watch(of("spillway.v1.Objects")).await.unwrap().into_inner();
    until(&mut watch, ServingStatus::Serving).await;
    for service in ["", "spillway.v1.Spillway", "spillway.v1.Objects"] {
        let answer = client.check(of(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    assert_eq!(client.check(of("other")).await.unwrap_err().code(), Code::NotFound);

    daemon.packets.content().detached = true;
    until(&mut watch, ServingStatus::NotServing).await;
    assert_eq!(
        client.check(of("")).await.unwrap().into_inner().status(),
        ServingStatus::NotServing
    );
    daemon.packets.content().detached = false;
    until(&mut watch, ServingStatus::Serving).await;

    // In force, but not in the packet path until the failures are over.
    daemon.packets.content().failures = usize::MAX;
    daemon.client().await.apply(apply(configuration())).await.unwrap_err();
    until(&mut watch, ServingStatus::NotServing).await;
    daemon.packets.content().failures = 0;
    until(&mut watch, ServingStatus::Serving).await;
}

#[tokio::test]
async fn a_state_that_is_gone_does_not_serve() {
    let mut daemon = Daemon::start();
    let mut client = HealthClient::new(daemon.channel().await);
    let mut watch = client.watch(of("")).await.unwrap().into_inner();
    until(&mut watch, ServingStatus::Serving).await;
    daemon.state.abort();
    let _ = (&mut daemon.state).await;
    until(&mut watch, ServingStatus::NotServing).await;
}

#[tokio::test]
async fn who_watches_health_does_not_keep_the_daemon_from_stopping() {
    let daemon = Daemon::start();
    let mut client = HealthClient::new(daemon.channel().await);
    let mut watch = client.watch(of("")).await.unwrap().into_inner();
    until(&mut watch, ServingStatus::Serving).await;
    let start = std::time::Instant::now();
    daemon.stop.cancel();
    while let Some(Ok(_)) = watch.next().await {}
    daemon.server.await.unwrap().unwrap();
    // The deadline of calls under way is 5 s.
    assert!(start.elapsed() < std::time::Duration::from_secs(4), "{:?}", start.elapsed());
}
