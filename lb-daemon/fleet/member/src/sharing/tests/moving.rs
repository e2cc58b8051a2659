//! Parts move to where they are needed, in the right order.

use std::sync::atomic::Ordering;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn fractions_follow_demand_over_tls() {
    let (fleet, _) = Fleet::with_tls(4).await;
    fleet.demand(&[56.0, 8.0, 8.0, 8.0]);
    // Its target is 0.632 (`target.rs`). Once nobody refuses, each of the others may keep a tenth of an equal share: 0.025.
    until("the first one has most", || (0.56..0.70).contains(&fleet.enforced()[0])).await;
    fleet.whole().await;
    // On a slow host some give before they know what others have.
    let wants = [0.56, 0.08, 0.08, 0.08];
    let lacks_nothing = || fleet.enforced().iter().zip(wants).all(|(has, wants)| *has >= wants);
    until("nobody lacks anything", lacks_nothing).await;
    fleet.demand(&[0.0, 80.0, 0.0, 0.0]);
    until("the second one has what it needs", || fleet.enforced()[1] >= 0.8).await;
    fleet.whole().await;
    let status = fleet.nodes[0].status();
    assert_eq!(status.groups[&web()].demand.map(|demand| demand < 100.0), Some(true));
    for (peer, status) in &status.peers {
        assert_eq!(status.version, PROGRAM_VERSION, "{peer}");
        assert_eq!((status.incarnation, status.epoch), (1, 0), "{peer}");
        assert_eq!(status.errors, PeerErrors::default(), "{peer}");
        assert!(status.last_heard.unwrap().elapsed() < LIMIT, "{peer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_crashes_and_starts_again_has_what_it_had() {
    let mut fleet = Fleet::plain(3).await;
    for round in 0..4_u32 {
        // Parts are moving when it is killed.
        let wants = if round % 2 == 0 { [10.0, 60.0, 10.0] } else { [60.0, 10.0, 10.0] };
        let before = fleet.enforced();
        fleet.demand(&wants);
        until("parts move", || fleet.enforced() != before).await;
        fleet.nodes[0].kill().await;
        fleet.start(0).await;
        fleet.nodes[0].handle().adopted(1).await.unwrap();
        assert_eq!(fleet.nodes[0].status().incarnation, u64::from(round) + 2);
        assert!(!fleet.nodes[0].status().store_is_old);
    }
    until("it has what it needs", || fleet.enforced()[0] >= 0.6).await;
    fleet.whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_generation_is_adopted_before_it_is_applied() {
    let fleet = Fleet::plain(2).await;
    let (handle, later) = (fleet.nodes[0].handle().clone(), group("api", 2));
    let is_early = timeout(Duration::from_millis(100), handle.adopted(2)).await;
    assert!(is_early.is_err(), "there is no such generation");
    let owners: BTreeSet<Name> = [name("a"), name("b")].into();
    fleet.view.send_modify(|view| {
        view.generation = 2;
        view.births.insert(later.clone(), owners);
    });
    handle.adopted(2).await.unwrap();
    let enforced = fleet.fakes.enforced("a", &name_of(&later));
    assert_eq!(enforced, Parts(Parts::WHOLE.0 / 2));
    let stored = fleet.nodes[0].file.read().unwrap();
    assert_eq!((stored.adopted, stored.owned(&later)), (2, enforced));
    // The one has applied it, and its clients want all. The other one has not, and keeps its portion.
    fleet.nodes[1].handle().adopted(2).await.unwrap();
    fleet.fakes.demand("b", &name_of(&later), CAPACITY);
    let knows =
        || fleet.nodes[1].status().groups[&later].demand.is_some_and(|demand| demand > 900.0);
    until("the demand is known", knows).await;
    let heard = fleet.nodes[1].status().peers[&name("a")].last_heard;
    let again = || fleet.nodes[1].status().peers[&name("a")].last_heard > heard;
    until("they have talked about it", again).await;
    assert_eq!(fleet.fakes.enforced("a", &name_of(&later)), enforced);
    // It applies it, and does not send there.
    fleet.fakes.apply(2);
    let all = || fleet.fakes.enforced("b", &name_of(&later)) == Parts::WHOLE;
    until("the other one has all", all).await;
    fleet.fakes.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_leaves_gives_everything_away() {
    let fleet = Fleet::plain(3).await;
    fleet.demand(&[30.0, 10.0, 10.0]);
    assert_eq!(fleet.nodes[0].handle().has_left(), None);
    fleet.nodes[0].handle().leave();
    until("it has left", || fleet.nodes[0].handle().has_left() == Some(1)).await;
    assert_eq!(fleet.enforced()[0], 0.0);
    fleet.whole().await;
    let handle = fleet.nodes[0].handle();
    handle.stop().await;
    assert_eq!(handle.adopted(2).await, Err(SharingStopped));
    // Its address is free again.
    std::net::TcpListener::bind(fleet.nodes[0].address).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_of_limits_that_are_not_in_force() {
    let fleet = Fleet::plain(2).await;
    let paths = || fleet.nodes.iter().map(|node| &node.path);
    let giver = &fleet.nodes[0];
    giver.path.fails.store(true, Ordering::SeqCst);
    fleet.demand(&[0.0, 90.0]);
    until("a limit cannot be written", || giver.status().enforce_error.is_some()).await;
    let status = giver.status();
    assert_eq!(status.enforce_error.as_deref(), Some("the maps cannot be written"));
    // What it gave is stored, and has not arrived.
    let share = status.groups[&web()];
    assert!(share.on_its_way > Parts::NONE && share.owned < Parts(Parts::WHOLE.0 / 2));
    // After what it said before has arrived, it says nothing.
    let heard = || fleet.nodes[1].status().peers[&name("a")].last_heard.unwrap();
    until("it is silent", || heard().elapsed() > 4 * Duration::from_millis(250)).await;
    assert_eq!(fleet.enforced(), [0.5, 0.5]);
    paths().for_each(|path| path.fails.store(false, Ordering::SeqCst));
    until("the other one has what it needs", || fleet.enforced()[1] >= 0.9).await;
    fleet.whole().await;
    assert_eq!(giver.status().enforce_error, None);
    // A limit that is being written is waited for, and after the end nothing is written any more.
    giver.path.hangs.store(true, Ordering::SeqCst);
    fleet.demand(&[90.0, 0.0]);
    let is_hanging = || giver.path.is_hanging.load(Ordering::SeqCst);
    until("its limits are late", is_hanging).await;
    let handle = giver.handle().clone();
    let stop = tokio::spawn(async move { handle.stop().await });
    sleep(Duration::from_millis(300)).await;
    assert!(!stop.is_finished());
    giver.path.hangs.store(false, Ordering::SeqCst);
    stop.await.unwrap();
    let at_the_end = fleet.enforced()[0];
    sleep(Duration::from_millis(300)).await;
    assert_eq!(fleet.enforced()[0], at_the_end);
    fleet.fakes.check();
}
