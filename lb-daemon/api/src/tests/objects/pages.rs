//! Lists a page at a time, with changes between the pages, and what they leave out.

use std::collections::BTreeSet;

use spillway_proto::v1::objects_client::ObjectsClient;
use tonic::Code;

use super::*;

/// The pools that backends are put into.
const POOLS: [&str; 3] = ["a", "b", "web"];

/// Backends of three pools: `{pool: how many}`.
fn many(counts: [u32; 3]) -> v1::Configuration {
    let mut configuration = text_fixture();
    configuration.pools.retain(|pool| pool.name != "spare");
    for (number, (name, count)) in (0_u32..).zip(POOLS.into_iter().zip(counts)) {
        let backends = (0..count).map(|at| v1::Backend {
            address: std::net::Ipv4Addr::from(0x0a01_0000 + (number << 12) + at).to_string(),
            region: if at % 2 == 0 { "eu" } else { "us" }.into(),
            admin_state: if at % 5 == 0 { v1::AdminState::Drain } else { v1::AdminState::Active }
                .into(),
            ..Default::default()
        });
        let there = configuration.pools.iter_mut().find(|pool| pool.name == name);
        match there {
            Some(pool) => pool.backends.extend(backends),
            None => configuration.pools.push(v1::Pool {
                name: name.into(),
                slots: Some(1_009),
                backends: backends.collect(),
                ..Default::default()
            }),
        }
    }
    configuration
}

async fn objects(daemon: &Daemon) -> ObjectsClient {
    ObjectsClient::new(daemon.channel().await)
}

/// Pools and addresses of all pages, in order, and how many each page has.
async fn listed(
    client: &mut ObjectsClient,
    request: v1::ListBackendsRequest,
) -> (Vec<(String, String)>, Vec<usize>) {
    let (mut all, mut sizes, mut page_token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let request = v1::ListBackendsRequest { page_token, ..request.clone() };
        let page = client.list_backends(request).await.unwrap().into_inner();
        sizes.push(page.backends.len());
        all.extend(page.backends.into_iter().map(|it| (it.pool, it.address)));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return (all, sizes);
        }
    }
}

#[tokio::test]
async fn pages_have_each_backend_once_and_in_order() {
    let daemon = Daemon::start();
    let configuration = many([7, 1, 12]);
    daemon.client().await.apply(apply(configuration.clone())).await.unwrap();
    let mut client = objects(&daemon).await;
    let mut expected: Vec<_> = configuration
        .pools
        .iter()
        .flat_map(|pool| {
            let address = |it: &v1::Backend| it.address.parse::<IpAddr>().unwrap();
            pool.backends.iter().map(move |it| (pool.name.clone(), address(it), it))
        })
        .collect();
    expected.sort_by(|(one, a, _), (other, b, _)| (one, a).cmp(&(other, b)));
    let name = |list: &[&(String, IpAddr, &v1::Backend)]| -> Vec<_> {
        list.iter().map(|(pool, address, _)| (pool.clone(), address.to_string())).collect()
    };

    for (page_size, sizes) in
        [(0, vec![22]), (1, vec![1; 22]), (8, vec![8, 8, 6]), (11, vec![11, 11]), (22, vec![22])]
    {
        let request = v1::ListBackendsRequest { page_size, ..Default::default() };
        let all: Vec<_> = expected.iter().collect();
        assert_eq!(listed(&mut client, request).await, (name(&all), sizes), "{page_size}");
    }
    let of_web: Vec<_> = expected.iter().filter(|(pool, ..)| pool == "web").collect();
    let request =
        v1::ListBackendsRequest { page_size: 5, pool: "web".into(), ..Default::default() };
    assert_eq!(listed(&mut client, request).await, (name(&of_web), vec![5, 5, 4]));
    let selected: Vec<_> = expected
        .iter()
        .filter(|(_, _, it)| it.region == "eu" && it.admin_state() == v1::AdminState::Drain)
        .collect();
    let request = v1::ListBackendsRequest {
        page_size: 3,
        region: "eu".into(),
        admin_state: v1::AdminState::Drain.into(),
        ..Default::default()
    };
    assert_eq!(listed(&mut client, request).await, (name(&selected), vec![3, 1]));
}

#[tokio::test]
async fn what_stays_is_listed_though_others_come_and_go_between_pages() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(many([8, 0, 0]))).await.unwrap();
    let mut client = objects(&daemon).await;
    let request = |page_token| v1::ListBackendsRequest {
        page_size: 3,
        page_token,
        pool: "a".into(),
        ..Default::default()
    };
    let first = client.list_backends(request(String::new())).await.unwrap().into_inner();
    let name = |page: &v1::ListBackendsResponse| -> Vec<_> {
        page.backends.iter().map(|it| it.address.clone()).collect()
    };
    assert_eq!(name(&first), ["10.1.0.0", "10.1.0.1", "10.1.0.2"]);
    // The last of the page goes, and the one after it; one comes before it, and one after it.
    let mut other = many([8, 0, 0]);
    let pool = other.pools.iter_mut().find(|pool| pool.name == "a").unwrap();
    pool.backends.retain(|it| !["10.1.0.2", "10.1.0.3"].contains(&&*it.address));
    for address in ["10.0.9.9", "10.1.9.9"] {
        let (address, region) = (address.into(), "eu".into());
        pool.backends.push(v1::Backend { address, region, ..Default::default() });
    }
    daemon.client().await.apply(apply(other)).await.unwrap();
    let second = client.list_backends(request(first.next_page_token)).await.unwrap().into_inner();
    assert_eq!(name(&second), ["10.1.0.4", "10.1.0.5", "10.1.0.6"]);
    let last = client.list_backends(request(second.next_page_token)).await.unwrap().into_inner();
    assert_eq!(
        (name(&last), last.next_page_token),
        (vec!["10.1.0.7".into(), "10.1.9.9".into()], String::new())
    );
    assert_eq!((first.generation, second.generation), (1, 2));
}

#[tokio::test]
async fn other_lists_have_pages_too() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(text_fixture())).await.unwrap();
    let mut client = objects(&daemon).await;
    let mut regions = Vec::new();
    let mut page_token = String::new();
    for _ in 0..3 {
        let request = v1::ListRegionsRequest { page_size: 1, page_token };
        let page = client.list_regions(request).await.unwrap().into_inner();
        regions.extend(page.regions.into_iter().map(|it| it.name));
        page_token = page.next_page_token;
    }
    assert_eq!((regions, &*page_token), (vec!["eu".into(), "us".into(), "void".into()], ""));
    let request = v1::ListPoolsRequest { page_size: 1, ..Default::default() };
    let first = client.list_pools(request.clone()).await.unwrap().into_inner();
    let request = v1::ListPoolsRequest { page_token: first.next_page_token, ..request };
    let second = client.list_pools(request).await.unwrap().into_inner();
    let pools = [&first.pools[0], &second.pools[0]].map(|it| (&*it.name, it.backends.len()));
    assert_eq!((pools, &*second.next_page_token), ([("spare", 0), ("web", 2)], ""));
    for (pool, count) in [("web", 1), ("spare", 0), ("", 1)] {
        let request = v1::ListServicesRequest { pool: pool.into(), ..Default::default() };
        let listed = client.list_services(request).await.unwrap().into_inner();
        assert_eq!(listed.services.len(), count, "{pool}");
    }
    let request = v1::ListServicesRequest { pool: "none".into(), ..Default::default() };
    let refused = client.list_services(request).await.unwrap_err();
    let expected = (Code::NotFound, "pool \"none\" does not exist");
    assert_eq!((refused.code(), refused.message()), expected);
}

#[tokio::test]
async fn wrong_pages_are_refused() {
    let daemon = Daemon::start();
    daemon.client().await.apply(apply(many([8, 0, 0]))).await.unwrap();
    let mut client = objects(&daemon).await;
    let request = v1::ListBackendsRequest { page_size: 3, ..Default::default() };
    let token = client.list_backends(request).await.unwrap().into_inner().next_page_token;
    let token_is_wrong = "page_token: is not the next_page_token of an answer to the same request";
    let request = |page_size, page_token: &str, pool: &str, region: &str, admin_state| {
        let (page_token, pool, region) = (page_token.into(), pool.into(), region.into());
        v1::ListBackendsRequest { page_size, page_token, pool, region, admin_state }
    };
    for (request, code, message) in [
        (
            request(10_001, "", "", "", 0),
            Code::InvalidArgument,
            "page_size: 10001 is not within 1 to 10000",
        ),
        (request(3, "x", "", "", 0), Code::InvalidArgument, token_is_wrong),
        (request(3, &token, "a", "", 0), Code::InvalidArgument, token_is_wrong),
        (request(0, "", "none", "", 0), Code::NotFound, "pool \"none\" does not exist"),
        (request(0, "", "", "mars", 0), Code::NotFound, "region \"mars\" does not exist"),
        (
            request(0, "", "", "", 99),
            Code::InvalidArgument,
            "admin_state: 99 is not a value that this version knows",
        ),
    ] {
        let refused = client.list_backends(request.clone()).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (code, message), "{request:?}");
    }
}

#[tokio::test]
async fn the_status_has_those_that_are_asked_for() {
    let daemon = Daemon::start();
    let configuration = many([7, 0, 0]);
    let mut client = daemon.client().await;
    client.apply(apply(configuration)).await.unwrap();
    daemon.judge("10.0.0.1", true).await;
    let mut names = async |request: v1::StatusRequest| {
        let status = client.status(request).await?.into_inner();
        let backends = status.backends.into_iter().map(|it| format!("{} {}", it.pool, it.address));
        let backends: Vec<_> = backends.collect();
        Ok::<_, tonic::Status>((backends, status.next_page_token, status.services.len()))
    };
    let all = names(v1::StatusRequest::default()).await.unwrap();
    assert_eq!((all.0.len(), &*all.1, all.2), (9, "", 1));
    let request = |pools: &[&str], regions: &[&str], states: &[v1::BackendState]| {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let states = states.iter().map(|state| i32::from(*state)).collect();
        let (pools, regions) = (owned(pools), owned(regions));
        v1::StatusRequest { pools, regions, states, ..Default::default() }
    };
    // The other pool has no checks, so all of it is up that is not drained.
    let up = names(request(&["web"], &[], &[v1::BackendState::Up])).await.unwrap();
    assert_eq!(up.0, ["web 10.0.0.1"]);
    let us = names(request(&["web"], &["us"], &[])).await.unwrap();
    assert_eq!(us.0, ["web 2001:db8::2"]);
    let drained = [v1::BackendState::Draining, v1::BackendState::Up];
    let both = names(request(&["a", "web"], &["eu"], &drained)).await.unwrap();
    assert_eq!(both.0, ["a 10.1.0.0", "a 10.1.0.2", "a 10.1.0.4", "a 10.1.0.6", "web 10.0.0.1"]);

    let mut token = String::new();
    let mut paged = BTreeSet::new();
    // What else there is comes with the first page.
    for (size, all_else) in [(4, 1), (4, 0), (1, 0)] {
        let request = v1::StatusRequest { page_size: 4, page_token: token, ..Default::default() };
        let (page, next, services) = names(request).await.unwrap();
        assert_eq!((page.len(), services), (size, all_else));
        paged.extend(page);
        token = next;
    }
    assert_eq!((paged, &*token), (all.0.into_iter().collect(), ""));

    let refused = names(request(&["none"], &[], &[])).await.unwrap_err();
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::NotFound, "pool \"none\" does not exist")
    );
    let states = vec![v1::BackendState::Up.into(); 10_000];
    let many = v1::StatusRequest { states, pools: vec!["web".into()], ..Default::default() };
    assert_eq!(names(many).await.unwrap().0, ["web 10.0.0.1"]);
    let unknown = v1::StatusRequest { states: vec![0], ..Default::default() };
    assert_eq!(
        names(unknown).await.unwrap_err().message(),
        "states[0]: 0 is not a state that this version knows"
    );
}

#[tokio::test]
async fn one_backend_has_a_status_of_its_own() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(text_fixture())).await.unwrap();
    daemon.judge("2001:db8::2", true).await;
    let all = client.status(v1::StatusRequest::default()).await.unwrap().into_inner().backends;
    let request = |pool: &str, address: &str| v1::GetBackendStatusRequest {
        pool: pool.into(),
        address: address.into(),
    };
    let one = client.get_backend_status(request("web", "2001:DB8:0::2")).await.unwrap();
    assert_eq!(Some(&one.into_inner()), all.iter().find(|it| it.address == "2001:db8::2"));
    for (request, message) in [
        (request("none", "10.0.0.1"), "pool \"none\" does not exist"),
        (request("web", "10.0.0.9"), "pool \"web\" has no backend \"10.0.0.9\""),
        (request("web", "all"), "pool \"web\" has no backend \"all\""),
    ] {
        let refused = client.get_backend_status(request).await.unwrap_err();
        assert_eq!((refused.code(), refused.message()), (Code::NotFound, message));
    }
}
