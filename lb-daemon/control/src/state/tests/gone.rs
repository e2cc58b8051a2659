//! Commands whose caller is gone when their turn comes.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_caller_is_gone_is_not_carried_out() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::with(directory, FakePacketPath::default());
    let stall = daemon.path.stall();
    let commands = daemon.running.commands.clone();
    let apply = Apply { configuration: parse(WEB), ..Apply::default() };
    let applying = tokio::spawn(async move { commands.apply(apply, None).await });
    let stall = stall.begun().await;

    // It is in the queue, and then nobody waits for it.
    let removal = Apply::default();
    let mut queued = Box::pin(daemon.running.commands.apply(removal, None));
    assert!(tokio::time::timeout(std::time::Duration::ZERO, &mut queued).await.is_err());
    drop(queued);
    drop(stall);
    applying.await.unwrap().unwrap().unwrap();
    let exported = daemon.running.commands.export().await.unwrap();
    assert_eq!((exported.generation, exported.configuration.services.len()), (1, 1));
    // One whose caller waits is carried out.
    let removed = daemon.running.commands.apply(Apply::default(), None).await.unwrap().unwrap();
    assert_eq!(removed.generation, 2);
}
