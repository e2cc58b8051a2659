//! Overrides over the API.

use spillway_proto::v1::{OverrideKind, overrides_client::OverridesClient, watch_response};
use tonic::Code;

use super::*;
use crate::audit::tests::lines;
use lb_config::{FIELD_TRAILER, HINT_TRAILER};

fn backend(address: &str, pool: &str) -> v1::OverrideTarget {
    v1::OverrideTarget { backend: address.into(), pool: pool.into(), region: String::new() }
}

fn set(targets: Vec<v1::OverrideTarget>, kind: OverrideKind) -> v1::SetOverridesRequest {
    v1::SetOverridesRequest { targets, kind: kind.into(), ..Default::default() }
}

fn remove(names: &[&str]) -> v1::RemoveOverridesRequest {
    let names = names.iter().map(ToString::to_string).collect();
    v1::RemoveOverridesRequest { names, ..Default::default() }
}

fn names(overrides: &[v1::Override]) -> Vec<&str> {
    overrides.iter().map(|it| &*it.name).collect()
}

#[tokio::test]
async fn an_override_is_shown_wherever_the_configuration_is_and_is_no_part_of_it() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let before = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    let mut watch = client.watch(v1::WatchRequest::default()).await.unwrap().into_inner();
    let mut overrides = OverridesClient::new(daemon.channel().await);

    let request = v1::SetOverridesRequest {
        duration: Some(prost_types::Duration { seconds: 7200, nanos: 0 }),
        reason: "ticket 7".into(),
        ..set(vec![backend("10.0.0.1", ""), backend("10.0.0.2", "web")], OverrideKind::Drain)
    };
    let dry = v1::SetOverridesRequest { validate_only: true, ..request.clone() };
    let dry = overrides.set_overrides(dry).await.unwrap().into_inner();
    let done = overrides.set_overrides(request).await.unwrap().into_inner();
    assert_eq!((dry.revision, done.revision, &*done.unstored), (0, 1, ""));
    let expected = ["backends/10.0.0.1/drain", "pools/web/backends/10.0.0.2/drain"];
    assert_eq!(names(&dry.overrides), expected);
    assert_eq!(names(&done.overrides), expected);
    let first = &done.overrides[0];
    assert_eq!(first.target.as_ref().unwrap(), &backend("10.0.0.1", ""));
    assert_eq!(
        (first.kind(), first.percent, &*first.reason),
        (OverrideKind::Drain, None, "ticket 7")
    );
    let uid = format!("uid {}", nix::unistd::getuid());
    assert!(first.who == uid || first.who.starts_with(&(uid + " (")), "{}", first.who);
    let lasts = first.until.unwrap().seconds - first.set_at.unwrap().seconds;
    assert_eq!((lasts, first.absent_since), (7200, None));

    let listed =
        overrides.list_overrides(v1::ListOverridesRequest::default()).await.unwrap().into_inner();
    assert_eq!((listed.revision, listed.unstored), (1, false));
    assert_eq!(listed.overrides, done.overrides);
    let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!((status.overrides_revision, &status.overrides), (1, &done.overrides));
    let shown = status.backends.iter().find(|it| it.address == "10.0.0.1").unwrap();
    let state = v1::BackendState::Pending;
    assert_eq!((shown.state(), &shown.overrides[..]), (state, &[expected[0].to_owned()][..]));
    let exported = client.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(exported.overrides, done.overrides);
    assert_eq!((exported.generation, exported.configuration), (1, before.configuration.clone()));
    // To apply an export changes no override.
    client.apply(apply(before.configuration.unwrap())).await.unwrap();

    loop {
        let event = watch.message().await.unwrap().unwrap().event.unwrap();
        if let watch_response::Event::Overrides(change) = event {
            assert_eq!((change.revision, names(&change.set)), (1, expected.to_vec()));
            break;
        }
    }
    let removed = overrides.remove_overrides(remove(&[expected[0], "pools/web/drain"])).await;
    let removed = removed.unwrap().into_inner();
    assert_eq!((removed.revision, names(&removed.removed)), (2, vec![expected[0]]));
    loop {
        if let watch_response::Event::Overrides(change) =
            watch.message().await.unwrap().unwrap().event.unwrap()
            && change.revision == 2
        {
            assert_eq!((change.set.len(), &change.ended[..]), (0, &[expected[0].to_owned()][..]));
            break;
        }
    }
    audit.flush().await;
    let lines = lines(&path);
    let of = |what: &str| lines.iter().filter(|line| line["what"] == what).collect::<Vec<_>>();
    let intents = of("intent");
    assert_eq!(intents.len(), 4, "{intents:?}");
    let request = "override drain of backend 10.0.0.1, pool web: backend 10.0.0.2 for 7200 s";
    assert_eq!(
        (&intents[1]["request"], &intents[1]["reason"]),
        (&request.into(), &"ticket 7".into())
    );
    let outcomes = of("overrides");
    assert_eq!(outcomes.len(), 2);
    assert_eq!(outcomes[0]["id"], intents[1]["id"]);
    assert_eq!(
        (&outcomes[0]["revision"], &outcomes[0]["overrides"][1]),
        (&1.into(), &expected[1].into())
    );
}

#[tokio::test]
async fn each_mistake_names_its_field_and_changes_nothing() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let mut overrides = OverridesClient::new(daemon.channel().await);
    let one = || vec![backend("10.0.0.1", "")];
    let region = |pool: &str, region: &str| v1::OverrideTarget {
        backend: String::new(),
        pool: pool.into(),
        region: region.into(),
    };
    let duration = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let drain = |targets| set(targets, OverrideKind::Drain);
    let percent = |targets, kind, percent| v1::SetOverridesRequest {
        percent: Some(percent),
        ..set(targets, kind)
    };
    let both = v1::OverrideTarget { region: "eu".into(), ..backend("10.0.0.1", "") };
    for (request, field, cause) in [
        (drain(vec![]), "targets", "must be set"),
        (drain(vec![backend("10.0.0.1", ""); 1001]), "targets", "at most 1000"),
        (drain(vec![backend("10.0.0", "")]), "targets[0].backend", "IPv4 or IPv6"),
        (
            drain(vec![backend("10.0.0.1", ""), backend("10.0.0.1", "Web")]),
            "targets[1].pool",
            "a-z",
        ),
        (drain(vec![region("web", "no region")]), "targets[0].region", "a-z"),
        (drain(vec![both]), "targets[0].region", "beside a backend"),
        (drain(vec![v1::OverrideTarget::default()]), "targets[0]", "a backend, a pool or a region"),
        (set(one(), OverrideKind::Unspecified), "kind", "drain, disable, weight or scale"),
        (v1::SetOverridesRequest { kind: 99, ..drain(one()) }, "kind", "must be drain"),
        (set(one(), OverrideKind::Weight), "percent", "must be set"),
        (percent(one(), OverrideKind::Weight, 101), "percent", "0 to 100"),
        (percent(one(), OverrideKind::Drain, 50), "percent", "must not be set"),
        (percent(one(), OverrideKind::Scale, 50), "kind", "set its weight"),
        (percent(vec![region("web", "")], OverrideKind::Weight, 50), "kind", "set its scale"),
        (set(vec![region("", "eu")], OverrideKind::Disable), "kind", "drain it"),
        (percent(vec![region("", "eu")], OverrideKind::Scale, 5), "percent", "0 or 10 to 100"),
        (v1::SetOverridesRequest { duration: duration(0), ..drain(one()) }, "duration", "above 0"),
        (v1::SetOverridesRequest { duration: duration(-1), ..drain(one()) }, "duration", "above 0"),
        (
            v1::SetOverridesRequest { duration: duration(i64::MAX), ..drain(one()) },
            "duration",
            "366",
        ),
        (
            v1::SetOverridesRequest { reason: "a\nb".into(), ..drain(one()) },
            "reason",
            "line breaks",
        ),
    ] {
        let status = overrides.set_overrides(request.clone()).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{request:?}: {status:?}");
        let named = status.metadata().get(FIELD_TRAILER).unwrap().to_str().unwrap();
        assert_eq!(named, field, "{status:?}");
        assert!(status.message().contains(cause), "{status:?}");
    }
    for (request, field) in [
        (remove(&[]), "names"),
        (remove(&["pools/web/drain", "pools/web/off"]), "names[1]"),
        (remove(&["../etc"]), "names[0]"),
    ] {
        let status = overrides.remove_overrides(request).await.unwrap_err();
        let named = status.metadata().get(FIELD_TRAILER).unwrap().to_str().unwrap();
        assert_eq!((status.code(), named), (Code::InvalidArgument, field), "{status:?}");
    }
    let missing =
        overrides.set_overrides(drain(vec![backend("10.0.0.9", "web")])).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    assert_eq!(missing.message(), "pool web: backend 10.0.0.9 does not exist");
    assert!(missing.metadata().get(HINT_TRAILER).is_some());
    let listed =
        overrides.list_overrides(v1::ListOverridesRequest::default()).await.unwrap().into_inner();
    assert_eq!((listed.revision, listed.overrides.len()), (0, 0));
}

#[tokio::test]
async fn there_is_a_bound() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let mut configuration = configuration();
    let region = configuration.pools[0].backends[0].region.clone();
    configuration.pools[0].slots = Some(0);
    configuration.pools[0].backends = (0..10_001u32)
        .map(|number| v1::Backend {
            address: IpAddr::from([10, 1, (number >> 8) as u8, number as u8]).to_string(),
            region: region.clone(),
            ..Default::default()
        })
        .collect();
    client.apply(apply(configuration.clone())).await.unwrap();
    let mut overrides = OverridesClient::new(daemon.channel().await);
    let backends = &configuration.pools[0].backends;
    for chunk in backends[..10_000].chunks(1000) {
        let targets = chunk.iter().map(|it| backend(&it.address, "web")).collect();
        overrides.set_overrides(set(targets, OverrideKind::Drain)).await.unwrap();
    }
    let more = set(vec![backend(&backends[10_000].address, "web")], OverrideKind::Drain);
    let refused = overrides.set_overrides(more).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    // One that replaces another one is none more.
    let again = set(vec![backend(&backends[0].address, "web")], OverrideKind::Drain);
    assert_eq!(overrides.set_overrides(again).await.unwrap().into_inner().revision, 11);
}

#[tokio::test]
async fn overrides_are_listed_a_page_at_a_time() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(configuration())).await.unwrap();
    let mut overrides = OverridesClient::new(daemon.channel().await);
    let target = |backend: &str, pool: &str, region: &str| v1::OverrideTarget {
        backend: backend.into(),
        pool: pool.into(),
        region: region.into(),
    };
    let targets = vec![
        target("", "", "eu"),
        target("10.0.0.2", "web", ""),
        target("", "web", ""),
        target("10.0.0.1", "", ""),
    ];
    let kind = OverrideKind::Drain.into();
    let set = v1::SetOverridesRequest { targets, kind, ..Default::default() };
    overrides.set_overrides(set).await.unwrap();
    let mut listed = async |pool: &str, page_size| {
        let (mut names, mut sizes, mut page_token) = (Vec::new(), Vec::new(), String::new());
        loop {
            let pool = pool.into();
            let request = v1::ListOverridesRequest { page_size, page_token, pool };
            let page = overrides.list_overrides(request).await.unwrap().into_inner();
            assert_eq!(page.revision, 1);
            sizes.push(page.overrides.len());
            names.extend(page.overrides.into_iter().map(|it| it.name));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return (names, sizes);
            }
        }
    };
    let all = [
        "backends/10.0.0.1/drain",
        "pools/web/backends/10.0.0.2/drain",
        "pools/web/drain",
        "regions/eu/drain",
    ]
    .map(str::to_owned);
    assert_eq!(listed("", 0).await, (all.to_vec(), vec![4]));
    assert_eq!(listed("", 3).await, (all.to_vec(), vec![3, 1]));
    assert_eq!(listed("web", 1).await, (all[1..3].to_vec(), vec![1, 1]));
    assert_eq!(listed("none", 1).await, (vec![], vec![0]));
}

/// At a member of a fleet.
#[tokio::test]
async fn a_local_override_is_shown_as_such() {
    let (daemon, audit, path) = Daemon::with_audit_file();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    let mut overrides = OverridesClient::new(daemon.channel().await);
    let local =
        |kind| v1::SetOverridesRequest { local: true, ..set(vec![backend("10.0.0.1", "")], kind) };
    let status = overrides.set_overrides(local(OverrideKind::Drain)).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (
            Code::FailedPrecondition,
            "this balancer is no member of a fleet, so all its overrides are its own"
        )
    );
    assert!(status.metadata().get(HINT_TRAILER).is_some());
    let weight = v1::SetOverridesRequest { percent: Some(50), ..local(OverrideKind::Weight) };
    let status = overrides.set_overrides(weight).await.unwrap_err();
    assert_eq!(status.metadata().get(FIELD_TRAILER).unwrap(), "local");
    assert_eq!(status.message(), "local: only a drain or a disable can be local");

    let follow = lb_control::command::OverrideChange::Follow(Vec::new());
    let by = (lb_control::command::Actor::Unknown, lb_config::Reason::default());
    daemon.commands.change_overrides(follow, false, by).await.unwrap().unwrap();
    let done = overrides.set_overrides(local(OverrideKind::Drain)).await.unwrap().into_inner();
    let name = "local/backends/10.0.0.1/drain";
    assert_eq!((names(&done.overrides), done.overrides[0].local), (vec![name], true));
    let listed = overrides.list_overrides(v1::ListOverridesRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().overrides, done.overrides);
    let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    let shown = status.backends.iter().find(|it| it.address == "10.0.0.1").unwrap();
    assert_eq!(shown.overrides, [name]);
    let removed = overrides.remove_overrides(remove(&[name])).await.unwrap().into_inner();
    assert_eq!(names(&removed.removed), [name]);
    audit.flush().await;
    let lines = lines(&path);
    let requests: Vec<_> =
        lines.iter().filter_map(|line| line["request"].as_str()).skip(1).collect();
    assert_eq!(
        requests[1..],
        [
            "local override drain of backend 10.0.0.1",
            "removal of overrides local/backends/10.0.0.1/drain"
        ]
    );
}
