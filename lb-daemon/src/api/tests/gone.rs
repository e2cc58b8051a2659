//! Callers who go away before their command's turn comes.

use std::time::Duration;

use tonic::{Code, Request};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::*;

/// While the state is busy with one Apply, another one's deadline passes in the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_apply_whose_deadline_passes_in_the_queue_is_not_carried_out() {
    let daemon = Daemon::start();
    let (mut first, channel) = (daemon.client().await, daemon.channel().await);
    let mut second = SpillwayClient::new(channel.clone());
    let stall = daemon.packets.stall();
    let busy = tokio::spawn(async move { first.apply(apply(configuration())).await });
    let stall = stall.begun().await;

    let mut late = Request::new(apply(v1::Configuration::default()));
    late.set_timeout(Duration::from_millis(200));
    let status = second.apply(late).await.unwrap_err();
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");

    // The daemon hears of its end before it hears of later calls of the same connection.
    let mut health = HealthClient::new(channel);
    for _ in 0..50 {
        health.check(HealthCheckRequest::default()).await.unwrap();
    }

    drop(stall);
    busy.await.unwrap().unwrap();
    let exported = second.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(exported.generation, 1, "what nobody waits for is not in force");
    assert_eq!(exported.configuration.unwrap().services.len(), 1);
}
