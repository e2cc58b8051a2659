//! Ledgers that cannot be stored, or are lost.

use super::*;
use crate::sharing::ledger_file::LEDGER_FILE;

/// Takes steps of epochs as etcd does, without its transactions: in these tests nobody is late.
fn commit(fleet: &Fleet, from: &Name, step: EpochStep) {
    fleet.view.send_if_modified(|view| {
        let before = view.epoch.clone();
        let epoch = &mut view.epoch;
        match step {
            EpochStep::Open { number, forgotten } => {
                if epoch.as_ref().is_none_or(|epoch| epoch.closed && epoch.number < number) {
                    let (generation, forgotten) = (view.generation, forgotten.names());
                    *epoch = Some(Epoch { number, generation, forgotten, ..Epoch::default() });
                }
            }
            EpochStep::Forget(_) => panic!("nobody is gone"),
            EpochStep::Contribute(contribution) => {
                let epoch = epoch.as_mut().unwrap();
                if !epoch.closed {
                    epoch.contributions.entry(from.clone()).or_insert(contribution);
                }
            }
            EpochStep::Close => epoch.as_mut().unwrap().closed = true,
        }
        view.epoch != before
    });
}

/// Each that was forgotten says once it has given up what it owned.
fn note_epoch(fleet: &Fleet, node: &Node) {
    let epoch = node.status().epoch;
    fleet.view.send_if_modified(|view| {
        let forgotten = view.epoch.as_ref().is_some_and(|e| e.forgotten.contains(&node.name));
        let since = view.membership.members.get_mut(&node.name).unwrap();
        let is_news = forgotten && epoch > *since;
        *since = if is_news { epoch } else { *since };
        is_news
    });
}

/// Commits what the balancers ask for until something is so.
async fn with_epochs(fleet: &Fleet, what: &str, is_so: impl Fn() -> bool) {
    let commit_all = async {
        loop {
            for node in &fleet.nodes {
                let request = node.epoch_requests.borrow().clone();
                if let Some(request) = request.filter(EpochRequest::is_current) {
                    commit(fleet, &node.name, request.step);
                }
                note_epoch(fleet, node);
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = commit_all => {}
        () = until(what, is_so) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_store_fails_nothing_moves() {
    let fleet = Fleet::plain(2).await;
    // It is in the way of the next version.
    let obstacle = fleet.nodes[0].directory.path().join("ledger.json.next");
    fs::create_dir(&obstacle).unwrap();
    fleet.demand(&[0.0, 90.0]);
    until("the store fails", || fleet.nodes[0].status().store_error.is_some()).await;
    let conditions = fleet.nodes[0].conditions.clone();
    assert_eq!(conditions.now().len(), 1);
    assert_eq!(conditions.now()[0].subject, "ledger of the fleet");
    // It goes on talking, and gives nothing.
    let last = fleet.nodes[1].status().peers[&name("a")].last_heard;
    let again = || fleet.nodes[1].status().peers[&name("a")].last_heard > last;
    until("it is heard", again).await;
    assert_eq!(fleet.enforced(), [0.5, 0.5]);
    // Nor does the other one take what it cannot store.
    fs::rename(&obstacle, fleet.nodes[1].directory.path().join("ledger.json.next")).unwrap();
    until("the other store fails", || fleet.nodes[1].status().store_error.is_some()).await;
    until("the first one gave", || fleet.enforced()[0] < 0.5).await;
    assert_eq!(fleet.enforced()[1], 0.5);
    assert!(fleet.nodes[0].status().groups[&web()].on_its_way > Parts::NONE);
    fs::remove_dir(fleet.nodes[1].directory.path().join("ledger.json.next")).unwrap();
    until("the other one has what it needs", || fleet.enforced()[1] >= 0.9).await;
    fleet.whole().await;
    assert_eq!(conditions.now().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_disk_does_not_answer_nothing_moves() {
    let fleet = Fleet::plain(2).await;
    let (disk, handle) = (fleet.nodes[0].file.disk.clone(), fleet.nodes[0].handle().clone());
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (hold, is_held) = std::sync::mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        let _held = disk.lock().unwrap();
        hold.send(()).unwrap();
        released.recv().unwrap();
    });
    is_held.recv().unwrap();
    fleet.demand(&[0.0, 90.0]);
    until("the disk is late", || fleet.nodes[0].status().store_error.is_some()).await;
    let error = fleet.nodes[0].status().store_error;
    assert_eq!(error.as_deref(), Some("the disk does not answer"));
    // It goes on talking and listening.
    let heard = |by: usize, of: &str| fleet.nodes[by].status().peers[&name(of)].last_heard;
    let last = (heard(0, "b"), heard(1, "a"));
    until("both are heard", || heard(0, "b") > last.0 && heard(1, "a") > last.1).await;
    assert_eq!(fleet.enforced(), [0.5, 0.5]);
    // A later start may not find the write still under way.
    let stop = tokio::spawn(async move { handle.stop().await });
    sleep(Duration::from_millis(300)).await;
    assert!(!stop.is_finished());
    release.send(()).unwrap();
    stop.await.unwrap();
    holder.join().unwrap();
    assert_eq!(fleet.enforced(), [0.5, 0.5], "nothing is enforced after the end");
    let stored = fleet.nodes[0].file.read().unwrap();
    assert!(stored.on_its_way(&name("b"), &web()) > Parts::NONE, "the gift was stored");
    fleet.fakes.check();
}

/// A ledger that is not there, damaged, or older than what etcd knows.
#[tokio::test(flavor = "multi_thread")]
async fn one_whose_ledger_is_lost_owns_nothing_until_it_was_forgotten() {
    let mut fleet = Fleet::plain(3).await;
    let path = fleet.nodes[2].directory.path().join(LEDGER_FILE);
    for lose in [
        |path: &Path| fs::remove_file(path).unwrap(),
        |path: &Path| fs::write(path, "{}").unwrap(),
        |path: &Path| {
            let text = fs::read_to_string(path).unwrap();
            let mut content: serde_json::Value = serde_json::from_str(&text).unwrap();
            content["ledger"]["incarnation"] = 1.into();
            fs::write(path, content.to_string()).unwrap();
        },
    ] {
        let before = fleet.view.borrow().epoch.as_ref().map_or(0, |epoch| epoch.number);
        fleet.nodes[2].kill().await;
        lose(&path);
        fleet.start(2).await;
        fleet.nodes[2].handle().enforced(1).await.unwrap();
        let status = fleet.nodes[2].status();
        assert!(status.store_is_old && status.lost_ledger.is_some());
        assert_eq!(fleet.enforced()[2], 0.0);
        fleet.demand(&[20.0, 20.0, 50.0]);
        let is_over = || {
            let has_it =
                |node: &Node| node.status().epoch > before && node.status().frozen.is_none();
            fleet.nodes.iter().all(has_it) && !fleet.nodes[2].status().store_is_old
        };
        with_epochs(&fleet, "it was forgotten", is_over).await;
        // Another epoch may follow, if it was given something meanwhile.
        let has_enough = || fleet.enforced()[2] >= 0.5;
        with_epochs(&fleet, "it was given what it needs", has_enough).await;
        with_epochs(&fleet, "the whole is in force", || {
            fleet.enforced().iter().sum::<f64>() == 1.0
        })
        .await;
        fleet.fakes.check();
    }
}
