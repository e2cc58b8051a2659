//! What is marked out by agreement of the balancers of a region.

use std::collections::BTreeMap;

use tokio::time::sleep;

use super::*;
use lb_model::plan::MarkedOut;

/// Three backends in the first region and one in the second, with a settle time of a minute.
fn text() -> String {
    let text = web("slots = 31", "slots = 31\n    settle_time = \"60s\"");
    let backend = |last: u8, region: &str| {
        format!("[[pool.backend]]\naddress = \"10.0.0.{last}\"\nregion = \"{region}\"\n")
    };
    let more = format!("{}{}[[service]]", backend(3, "eu"), backend(4, "us"));
    format!("{}\n[[region]]\nname = \"us\"\n", text.replacen("[[service]]", &more, 1))
}

fn last(number: u8) -> IpAddr {
    [10, 0, 0, number].into()
}

fn out(members: &[u8], regions: &[&str]) -> Arc<MarkedOutByPool> {
    let members = members.iter().map(|number| last(*number)).collect();
    let regions = regions.iter().map(|region| name(region)).collect();
    Arc::new([(name("web"), MarkedOut { members, regions })].into())
}

pub(super) fn agreed(members: &[u8], regions: &[&str]) -> MarkOutDecision {
    MarkOutDecision::Agreed(out(members, regions))
}

pub(super) async fn seconds(number: u64) {
    sleep(Duration::from_secs(number)).await;
}

impl Daemon {
    /// With the backends up that are not `down`.
    pub(super) async fn with_down(down: &[u8]) -> Self {
        let daemon = Self::new();
        daemon.apply(&text()).await.unwrap();
        daemon.checked(down).await;
        daemon
    }

    pub(super) async fn checked(&self, down: &[u8]) {
        for number in 1..=4 {
            let (health, why) = match down.contains(&number) {
                true => (Silent, "check tcp: timed out"),
                false => (Passing, "all checks pass"),
            };
            self.report_health("web", &last(number).to_string(), health, why).await;
        }
    }

    pub(super) fn decide(&self, decision: MarkOutDecision) {
        self.running.fleet.mark_outs.decide(decision);
    }

    /// Members of the first group that are marked out, and the size of that group.
    pub(super) fn home(&self) -> (Vec<u8>, usize) {
        let content = self.path.content();
        let group = &content.plan.pools.values().next().unwrap().groups[0];
        let out = group.members.iter().filter(|member| member.out);
        let out = out.map(|member| (1..=9).find(|it| last(*it) == member.address).unwrap());
        (out.collect(), group.members.len())
    }

    /// What it would mark out itself.
    pub(super) fn own_view(&self) -> Vec<u8> {
        let view = self.running.fleet.mark_outs.own_view().borrow().clone().unwrap();
        let web = view.get(&name("web")).cloned().unwrap_or_default();
        web.members.iter().map(|it| (1..=9).find(|number| last(*number) == *it).unwrap()).collect()
    }

    fn followed(&self) -> Option<MarkOutDecision> {
        self.running.fleet.mark_outs.in_force().borrow().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_agreed_on_is_in_force_and_nothing_else() {
    let daemon = Daemon::with_down(&[2]).await;
    seconds(2).await;
    assert_eq!(
        daemon.running.fleet.mark_outs.own_view().borrow().as_deref(),
        Some(&BTreeMap::new())
    );
    daemon.decide(agreed(&[], &[]));
    seconds(70).await;
    assert_eq!((daemon.home(), daemon.own_view()), ((vec![], 3), vec![2]), "it only says so");
    assert!(!daemon.backend("web", "10.0.0.2").await.marked_out);
    daemon.decide(agreed(&[1, 2], &[]));
    seconds(2).await;
    assert_eq!((daemon.home(), daemon.own_view()), ((vec![1, 2], 3), vec![2]));
    assert!(daemon.backend("web", "10.0.0.1").await.marked_out);
    assert_eq!(daemon.followed(), Some(agreed(&[1, 2], &[])));
    // It is back here, and the others do not say so yet.
    daemon.checked(&[]).await;
    seconds(100).await;
    assert_eq!((daemon.home(), daemon.own_view()), ((vec![1, 2], 3), vec![]));
    daemon.decide(agreed(&[3], &["eu"]));
    seconds(2).await;
    assert_eq!(daemon.home(), (vec![], 1), "the other region is first");
    let regions = daemon.running.commands.regions(None).await.unwrap().unwrap().regions;
    let marked: Vec<_> = regions.iter().map(|it| (it.region.as_str(), it.marked_out)).collect();
    assert_eq!(marked, [("us", false), ("eu", true)]);
    daemon.decide(agreed(&[], &[]));
    seconds(2).await;
    assert_eq!(daemon.home(), (vec![], 3));
    let applied = daemon.path.content().applied;
    seconds(60).await;
    assert_eq!(daemon.path.content().applied, applied, "nothing changes, nothing is written");
    assert_eq!(daemon.status().await.generation, 1);
}

/// A member that is not available stays out by its own view as long as it is out by agreement.
#[tokio::test(start_paused = true)]
async fn the_own_view_keeps_out_what_is_out_until_it_is_back() {
    let daemon = Daemon::with_down(&[2, 3]).await;
    daemon.decide(agreed(&[2], &[]));
    seconds(3).await;
    assert_eq!(daemon.own_view(), [2], "long before the settle time");
    seconds(60).await;
    assert_eq!(daemon.own_view(), [2, 3]);
    daemon.checked(&[3]).await;
    seconds(2).await;
    assert_eq!((daemon.own_view(), daemon.home().0), (vec![3], vec![2]));
}

#[tokio::test(start_paused = true)]
async fn applies_are_planned_with_what_is_agreed() {
    let daemon = Daemon::with_down(&[1]).await;
    // It may know of a backend and a pool before this balancer has them.
    let mut ahead = (*out(&[2, 5, 4], &["nowhere"])).clone();
    ahead.insert(name("later"), MarkedOut::default());
    daemon.decide(MarkOutDecision::Agreed(Arc::new(ahead.clone())));
    let applied = daemon.path.content().applied;
    daemon
        .apply(&text().replace("port = 80\n    protocol", "port = 81\n    protocol"))
        .await
        .unwrap();
    assert_eq!(daemon.path.content().applied, applied + 1, "with the apply, in one go");
    assert_eq!(daemon.home(), (vec![2], 3));
    seconds(2).await;
    let backend = "[[pool.backend]]\naddress = \"10.0.0.3\"\n";
    let more = format!("[[pool.backend]]\naddress = \"10.0.0.5\"\nregion = \"eu\"\n{backend}");
    daemon.apply(&text().replace(backend, &more)).await.unwrap();
    assert!(daemon.backend("web", "10.0.0.5").await.marked_out, "from its first packet on");
    assert_eq!(daemon.home().1, 4);
    // Not known yet what they agree on: what is in force stays, also with the next apply.
    daemon.decide(MarkOutDecision::Unknown);
    seconds(100).await;
    daemon.apply(&text()).await.unwrap();
    seconds(2).await;
    assert_eq!((daemon.home(), daemon.own_view()), ((vec![2], 3), vec![1]));
    // A backend that goes takes its mark along.
    daemon.apply(&text().replace("10.0.0.2", "10.0.0.9")).await.unwrap();
    daemon.apply(&text()).await.unwrap();
    assert_eq!(daemon.home(), (vec![], 3));
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_what_the_maps_have_until_it_knows_better() {
    let mut daemon = Daemon::with_down(&[3]).await;
    daemon.decide(agreed(&[2], &[]));
    seconds(70).await;
    assert_eq!((daemon.home(), daemon.own_view()), ((vec![2], 3), vec![3]));
    let plan = daemon.path.content().plan.clone();
    let unknown = FleetHandles::default();
    unknown.mark_outs.decide(MarkOutDecision::Unknown);
    daemon.restart_in_fleet(unknown.clone()).await;
    seconds(2).await;
    assert_eq!(daemon.own_view(), [2], "nothing was checked since");
    daemon.checked(&[3]).await;
    seconds(100).await;
    assert_eq!((&daemon.path.content().plan, daemon.own_view()), (&plan, vec![3]));
    assert_eq!(daemon.followed(), Some(MarkOutDecision::Unknown));
    daemon.decide(agreed(&[1], &[]));
    seconds(2).await;
    assert_eq!(daemon.home(), (vec![1], 3));
    // What is known at the start is followed at once.
    unknown.mark_outs.decide(agreed(&[3], &[]));
    daemon.restart_in_fleet(unknown).await;
    seconds(2).await;
    assert_eq!(daemon.home(), (vec![3], 3));
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_decides_alone_again_begins_with_what_is_in_force() {
    let daemon = Daemon::with_down(&[2]).await;
    daemon.decide(agreed(&[1, 2], &[]));
    seconds(5).await;
    assert_eq!(daemon.home().0, [1, 2]);
    daemon.decide(MarkOutDecision::Alone);
    seconds(2).await;
    assert_eq!(daemon.home().0, [2], "the other one is available");
    // The time of another one counts from when it was lost.
    daemon.decide(agreed(&[2], &[]));
    seconds(2).await;
    daemon.checked(&[2, 3]).await;
    seconds(50).await;
    daemon.decide(MarkOutDecision::Alone);
    seconds(2).await;
    assert_eq!(daemon.home().0, [2]);
    seconds(10).await;
    assert_eq!((daemon.home().0, daemon.own_view()), (vec![2, 3], vec![2, 3]));
}

#[tokio::test(start_paused = true)]
async fn a_decision_without_room_is_followed_later() {
    let daemon = Daemon::with_down(&[2]).await;
    daemon.decide(agreed(&[], &[]));
    seconds(2).await;
    daemon.path.content().full = true;
    daemon.decide(agreed(&[1], &[]));
    seconds(70).await;
    assert_eq!((daemon.home().0, daemon.own_view()), (vec![], vec![2]));
    assert_eq!(daemon.followed(), Some(agreed(&[], &[])));
    daemon.path.content().full = false;
    seconds(2).await;
    assert_eq!((daemon.home().0, daemon.followed()), (vec![1], Some(agreed(&[1], &[]))));
}
