use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};

use super::*;
use crate::command::{Warning, WarningReason};

/// [`WEB`] with a settle time of a minute and more backends (last number, region).
fn text(more: &[(u8, &str)]) -> String {
    let backend = |(last, region): &(u8, &str)| {
        format!("[[pool.backend]]\naddress = \"10.0.0.{last}\"\nregion = \"{region}\"\n")
    };
    let text = web("slots = 31", "slots = 31\n    settle_time = \"60s\"");
    let (before, after) = text.split_once("[[service]]").unwrap();
    let more: String = more.iter().map(backend).collect();
    format!("{before}\n{more}\n[[service]]{after}\n[[region]]\nname = \"us\"\n")
}

async fn seconds(number: u64) {
    sleep(Duration::from_secs(number)).await;
}

async fn report_health(daemon: &Daemon, last: u8, healthy: bool) {
    let (health, reason) =
        if healthy { (Passing, "all checks pass") } else { (Silent, "check tcp: timed out") };
    daemon.report_health("web", &format!("10.0.0.{last}"), health, reason).await;
}

/// Whether some pool is in a remap.
fn is_settling(daemon: &Daemon) -> bool {
    !daemon.path.content().previous_homes.is_empty()
}

/// Sizes of the groups, in the order of regions, and last numbers of the members of the first that are marked
/// out.
fn home(daemon: &Daemon) -> (Vec<usize>, Vec<u8>) {
    let content = daemon.path.content();
    let pool = content.plan.pools.values().next().unwrap();
    let last = |address| match address {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(_) => panic!("{address}"),
    };
    let out = pool.groups[0].members.iter().filter(|member| member.out);
    let sizes = pool.groups.iter().map(|group| group.members.len()).collect();
    (sizes, out.map(|member| last(member.address)).collect())
}

#[tokio::test(start_paused = true)]
async fn a_remap_settles_and_ends() {
    let daemon = Daemon::new();
    daemon.apply(&text(&[])).await.unwrap();
    seconds(10).await;
    assert!(!is_settling(&daemon), "the first plan replaces nothing");
    daemon.apply(&text(&[(3, "eu")])).await.unwrap();
    assert!(is_settling(&daemon));
    let [status] = &daemon.status().await.settling[..] else { panic!("one pool settles") };
    assert_eq!((status.pool.as_str(), status.overdue), ("web", false));
    assert_eq!(status.ends_at.duration_since(status.since).unwrap().as_secs(), 60);

    seconds(58).await;
    assert!(is_settling(&daemon));
    seconds(4).await;
    assert!(!is_settling(&daemon));
    assert!(daemon.status().await.settling.is_empty());
}

/// Packets know two homes of a connection: a third one is that of a change that says what it costs.
#[tokio::test(start_paused = true)]
async fn the_next_change_ends_a_remap_that_others_have_kept_from_its_end() {
    let daemon = Daemon::new();
    let (two, three, four) = (text(&[]), text(&[(3, "eu")]), text(&[(3, "eu"), (4, "eu")]));
    daemon.apply(&two).await.unwrap();
    let table = |daemon: &Daemon| daemon.path.content().plan.pools.values().next().unwrap().clone();
    let before =
        |daemon: &Daemon| daemon.path.content().previous_homes.values().next().unwrap().clone();
    let first = table(&daemon);
    for change in [&three, &four, &three, &four] {
        assert_eq!(daemon.apply(change).await.unwrap().warnings, [""; 0]);
        seconds(50).await;
    }
    let [status] = &daemon.status().await.settling[..] else { panic!("one pool settles") };
    assert!(status.overdue);
    assert_eq!(*before(&daemon), *first);
    // What moves nobody ends nothing.
    let calmer = four.replace("slots = 31", "slots = 31\n    panic_threshold_percent = 50");
    assert_eq!(daemon.apply(&calmer).await.unwrap().warnings, [""; 0]);
    assert_eq!(*before(&daemon), *first);

    // Nor does the change back to what it was before: that ends every remap, and breaks nothing.
    let apply = Apply { configuration: request(&two), dry_run: true, ..Apply::default() };
    let planned = daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
    assert!(planned.warnings.iter().all(|it| it.reason != WarningReason::RemapEnded));

    // By hand: 31 slots of two backends of equal weight become those of four, so that at least half of them move.
    let apply = Apply { configuration: request(&three), dry_run: true, ..Apply::default() };
    let planned = daemon.running.commands.apply(apply, None).await.unwrap().unwrap();
    let applied = daemon.apply(&three).await.unwrap();
    let of_remap = |warnings: Vec<Warning>| -> Vec<Warning> {
        warnings.into_iter().filter(|it| it.reason == WarningReason::RemapEnded).collect()
    };
    let (planned, warnings) = (of_remap(planned.warnings), of_remap(applied.warnings));
    assert_eq!(planned, warnings);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let slots = warning.text.split(" of ").find_map(|word| word.parse::<u32>().ok()).unwrap();
    assert!((15..31).contains(&slots), "{}", warning.text);
    assert!(warning.text.contains(&format!("of {slots} of 31 slots")), "{}", warning.text);
    assert_eq!(before(&daemon).groups[0].members.len(), 4);
    let [status] = &daemon.status().await.settling[..] else { panic!("one pool settles") };
    assert!(!status.overdue);
    assert_eq!(status.ends_at.duration_since(status.since).unwrap().as_secs(), 60);
}

/// Who plans all the time asks for more than the loop has time for.
#[tokio::test(start_paused = true)]
async fn a_remap_ends_under_a_stream_of_dry_runs() {
    let daemon = Daemon::new();
    daemon.apply(&text(&[])).await.unwrap();
    seconds(10).await;
    daemon.apply(&text(&[(3, "eu")])).await.unwrap();
    assert!(is_settling(&daemon));
    let answered = Arc::new(AtomicU64::new(0));
    let mut plans = JoinSet::new();
    for _ in 0..4 {
        let (commands, answered) = (daemon.running.commands.clone(), Arc::clone(&answered));
        plans.spawn(async move {
            loop {
                let apply =
                    Apply { configuration: request(&text(&[])), dry_run: true, ..Apply::default() };
                commands.apply(apply, None).await.unwrap().unwrap();
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for _ in 0..62 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let until = answered.load(Ordering::Relaxed) + 8;
        while answered.load(Ordering::Relaxed) < until {
            tokio::task::yield_now().await;
        }
    }
    assert!(!is_settling(&daemon));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_keeps_homes_is_no_remap() {
    let daemon = Daemon::new();
    daemon.apply(&text(&[])).await.unwrap();
    let more = text(&[]).replace("slots = 31", "slots = 31\n    panic_threshold_percent = 50");
    daemon.apply(&more).await.unwrap();
    assert!(!is_settling(&daemon));
    // In the last region.
    daemon.apply(&text(&[(3, "us")])).await.unwrap();
    assert!(!is_settling(&daemon));
    daemon.apply(&text(&[(3, "us")]).replace("slots = 31", "slots = 251")).await.unwrap();
    assert!(is_settling(&daemon));
}

#[tokio::test(start_paused = true)]
async fn the_next_hop_of_a_removed_backend_is_watched_until_the_remap_ends() {
    let daemon = Daemon::new();
    daemon.apply(&text(&[(3, "eu")])).await.unwrap();
    report_health(&daemon, 3, true).await;
    let id = daemon.path.content().plan.backends[&ip("10.0.0.3")].id;
    daemon.apply(&text(&[])).await.unwrap();
    let watched = |daemon: &Daemon| -> BTreeSet<IpAddr> {
        daemon.running.next_hop_targets.borrow().as_ref().clone()
    };
    let both = BTreeSet::from([ip("10.0.0.1"), ip("10.0.0.2")]);
    let all = BTreeSet::from_iter(both.iter().copied().chain([ip("10.0.0.3")]));
    assert_eq!(watched(&daemon), all);
    let targets = daemon.running.targets.borrow().clone();
    assert_eq!(targets.len(), 2, "nobody asks for its health");
    // Its number stays in use until the remap ends, and is then in quarantine.
    daemon.apply(&text(&[(4, "eu")])).await.unwrap();
    assert_ne!(daemon.path.content().plan.backends[&ip("10.0.0.4")].id.index, id.index);
    assert!(daemon.path.content().named().backends.contains_key(&id.index));
    seconds(62).await;
    assert!(!is_settling(&daemon));
    assert!(!daemon.path.content().named().backends.contains_key(&id.index));
    assert_eq!(watched(&daemon), BTreeSet::from_iter(both.into_iter().chain([ip("10.0.0.4")])));
}

#[tokio::test(start_paused = true)]
async fn a_member_out_of_service_for_long_is_marked_out() {
    let daemon = Daemon::new();
    daemon.apply(&text(&[])).await.unwrap();
    report_health(&daemon, 1, true).await;
    report_health(&daemon, 2, false).await;
    seconds(58).await;
    assert_eq!((home(&daemon), is_settling(&daemon)), ((vec![2], vec![]), false));
    seconds(4).await;
    assert_eq!((home(&daemon), is_settling(&daemon)), ((vec![2], vec![2]), true));
    assert!(daemon.backend("web", "10.0.0.2").await.marked_out);
    assert_eq!(daemon.status().await.generation, 1, "nobody applied anything");
    seconds(200).await;
    assert_eq!((home(&daemon), is_settling(&daemon)), ((vec![2], vec![2]), false));
    let applied = daemon.path.content().applied;
    report_health(&daemon, 2, true).await;
    seconds(2).await;
    assert_eq!((home(&daemon), is_settling(&daemon)), ((vec![2], vec![]), true));
    assert!(!daemon.backend("web", "10.0.0.2").await.marked_out);
    seconds(30).await;
    assert_eq!(daemon.path.content().applied, applied + 1);
}

#[tokio::test(start_paused = true)]
async fn a_region_scaled_to_zero_is_used_last() {
    let daemon = Daemon::new();
    let text = text(&[(3, "us")]);
    let settle = "settle_time = \"60s\"";
    let group = "[[pool.group]]\n    region = \"eu\"\n    scaler = 0.0";
    let drained = text.replace(settle, &format!("{settle}\n    {group}"));
    daemon.apply(&text).await.unwrap();
    for last in [1, 2, 3] {
        report_health(&daemon, last, true).await;
    }
    daemon.apply(&drained).await.unwrap();
    seconds(58).await;
    assert_eq!(home(&daemon).0, [2, 1]);
    seconds(4).await;
    assert_eq!(home(&daemon).0, [1, 2]);
    let regions = daemon.running.commands.regions(None).await.unwrap().unwrap().regions;
    let marked: Vec<_> = regions.iter().map(|r| (r.region.as_str(), r.marked_out)).collect();
    assert_eq!(marked, [("us", false), ("eu", true)]);
    daemon.apply(&text).await.unwrap();
    assert_eq!(home(&daemon).0, [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_continues_remaps_and_marks() {
    let mut daemon = Daemon::new();
    daemon.apply(&text(&[(3, "us"), (4, "us")])).await.unwrap();
    for (last, healthy) in [(1, false), (2, false), (3, true), (4, true)] {
        report_health(&daemon, last, healthy).await;
    }
    seconds(62).await;
    assert_eq!((home(&daemon), is_settling(&daemon)), ((vec![2, 2], vec![]), true));
    report_health(&daemon, 4, false).await;
    seconds(62).await;
    let before = (home(&daemon), is_settling(&daemon));
    assert_eq!(before.0.1, [4]);
    let applied = daemon.path.content().plan.clone();

    daemon.restart().await;
    assert_eq!(daemon.path.content().plan, applied);
    assert_eq!((home(&daemon), is_settling(&daemon)), before);
    seconds(38).await;
    assert_eq!((home(&daemon), is_settling(&daemon)), (before.0, true), "time begins anew");
    seconds(30).await;
    assert!(!is_settling(&daemon));
    // No backend was checked since the start. One that passes is back.
    assert_eq!(daemon.path.content().plan, applied);
    report_health(&daemon, 1, true).await;
    seconds(2).await;
    assert_eq!(home(&daemon), (vec![2, 2], vec![]));
    assert_eq!(daemon.path.content().plan.pools.values().next().unwrap().groups[0].region, 1);
}

#[tokio::test(start_paused = true)]
async fn marking_out_waits_for_room() {
    let daemon = Daemon::new();
    daemon.apply(&text(&[])).await.unwrap();
    report_health(&daemon, 1, true).await;
    report_health(&daemon, 2, false).await;
    daemon.path.content().full = true;
    seconds(70).await;
    assert_eq!(home(&daemon).1, [0; 0]);
    assert!(!daemon.backend("web", "10.0.0.2").await.marked_out);
    daemon.path.content().full = false;
    seconds(2).await;
    assert_eq!(home(&daemon).1, [2]);
}
