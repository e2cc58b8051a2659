use lb_common::abi::sizes::{MapSizes, Size};

use super::*;
use lb_base::conditions::STORED;
use lb_model::plan::Plan;

fn sized(size: Size, number: u32) -> FakePacketPath {
    let path = FakePacketPath::default();
    path.content().sizes = MapSizes::DEFAULT.with(size, number);
    path
}

/// Maps that are made anew, so they are empty.
fn remade(path: &FakePacketPath, size: Size, number: u32) {
    let mut content = path.content();
    *content = fake::Content::default();
    content.sizes = MapSizes::DEFAULT.with(size, number);
}

fn numbers(daemon: &Daemon) -> Vec<(IpAddr, u32, u8)> {
    let content = daemon.path.content();
    let backends = content.plan.backends.iter();
    backends.map(|(address, it)| (*address, it.id.index, it.id.incarnation)).collect()
}

async fn stored(daemon: &Daemon) -> Option<String> {
    let conditions = daemon.status().await.conditions;
    conditions.into_iter().find(|it| it.subject == STORED.text()).map(|it| it.cause)
}

#[tokio::test]
async fn what_the_maps_have_no_room_for_is_refused_by_the_setting() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::with(directory, sized(Size::Backends, 1));
    let refused = daemon.apply(WEB).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "2 distinct backend addresses exceed the 1 that the setting `backends` allows"
    );
    let status = daemon.status().await;
    assert_eq!((status.generation, daemon.path.content().applied), (0, 0));
}

#[tokio::test]
async fn a_stored_configuration_waits_for_maps_with_room() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    let before = numbers(&daemon);
    daemon.restart_after(|path| remade(path, Size::PoolBackends, 1)).await;
    let cause = stored(&daemon).await.unwrap();
    let expected = "generation 1 cannot be used: 2 backends in all exceed the 1 that the setting \
                    `pool-backends` allows; set `pool-backends` to 2 or more, at most 400000; then stop";
    assert!(cause.starts_with(expected), "{cause}");
    assert_eq!(daemon.path.content().plan, Plan::default());
    assert!(matches!(daemon.apply(WEB).await, Err(Refusal::TooMany(_))));

    daemon.restart_after(|path| remade(path, Size::PoolBackends, 2)).await;
    assert_eq!((stored(&daemon).await, numbers(&daemon)), (None, before));
}

/// A number beyond smaller maps becomes a low one, the same at each start until the next generation stores it.
#[tokio::test]
async fn numbers_fit_the_maps() {
    let mut daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.apply(&web("10.0.0.1", "10.0.0.3")).await.unwrap();
    let [second, third] = [ip("10.0.0.2"), ip("10.0.0.3")];
    assert_eq!(numbers(&daemon), [(second, 2, 0), (third, 3, 0)]);
    daemon.restart_after(|path| remade(path, Size::Backends, 2)).await;
    let fitting = [(second, 2, 0), (third, 1, 1)];
    assert_eq!((stored(&daemon).await, numbers(&daemon)), (None, fitting.to_vec()));
    daemon.restart().await;
    assert_eq!(numbers(&daemon), fitting);
    daemon
        .apply(
            &web("10.0.0.1", "10.0.0.3")
                .replace("port = 80\n    protocol", "port = 81\n    protocol"),
        )
        .await
        .unwrap();
    daemon.restart().await;
    assert_eq!(numbers(&daemon), fitting);
}
