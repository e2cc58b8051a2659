use tokio::sync::broadcast::error::TryRecvError;

use super::*;
use crate::command::Subscription;

fn next(subscription: &mut Subscription) -> Event {
    subscription.events.try_recv().unwrap()
}

#[tokio::test]
async fn a_watcher_gets_a_snapshot_and_then_every_change_in_order() {
    let daemon = Daemon::new();
    let mut early = daemon.running.commands.watch().await.unwrap().unwrap();
    assert_eq!(early.snapshot.generation, 0);
    let applied = daemon.apply(WEB).await.unwrap();
    assert_eq!(next(&mut early), Event::Generation(applied));
    for address in ["10.0.0.1", "10.0.0.2"] {
        let expected = daemon.backend("web", address).await;
        assert_eq!(next(&mut early), Event::Backend(expected));
    }
    let mut late = daemon.running.commands.watch().await.unwrap().unwrap();
    assert_eq!(late.snapshot.backends, daemon.status().await.backends);

    daemon.judge("web", "10.0.0.1", Passing, "all checks pass").await;
    let expected = Event::Backend(daemon.backend("web", "10.0.0.1").await);
    assert_eq!(next(&mut early), expected);
    assert_eq!(next(&mut late), expected);

    // No news is no event.
    daemon.judge("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.apply(WEB).await.unwrap();
    assert_eq!(early.events.try_recv(), Err(TryRecvError::Empty));
}
