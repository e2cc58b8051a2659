use std::time::Duration;

use lb_common::abi::counter::GroupCounter;
use tokio::time::timeout;
use tonic::Code;

use super::*;

/// Two regions: two backends of 5/s each, of which one is up, and one without a limit.
fn two_regions() -> v1::Configuration {
    let mut configuration = configuration();
    configuration.balancers = 2;
    configuration.hash_key = "000102030405060708090a0b0c0d0e0f".into();
    configuration.regions[0].overflow_to = vec!["us".into()];
    configuration.regions.push(v1::Region { name: "us".into(), ..Default::default() });
    let pool = &mut configuration.pools[0];
    for backend in &mut pool.backends {
        backend.max_connection_rate_per_second = Some(5.0);
    }
    let far = v1::Backend { address: "10.0.1.1".into(), region: "us".into(), ..Default::default() };
    pool.backends.push(far);
    configuration
}

#[tokio::test]
async fn regions_say_what_is_asked_of_them_and_what_is_missing() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(two_regions())).await.unwrap();
    daemon.judge("10.0.0.1", true).await;

    // Seven a second more in each second, of which the half of 5/s that is this balancer's and the rest
    // spill: as if all that was counted had come between two looks.
    let asked = v1::RegionsRequest { pool: "web".into() };
    let index = {
        let plan = &daemon.packets.content().plan;
        plan.pools.values().next().unwrap().groups[0].region
    };
    let mut total = 0;
    let found = timeout(Duration::from_secs(30), async {
        loop {
            total += 700;
            let counter = GroupCounter {
                offered: total,
                admitted: total * 2 / 7,
                overflow_out: total - total * 2 / 7,
                ..GroupCounter::default()
            };
            daemon.packets.content().counted.insert(index, counter);
            let answer = client.regions(asked.clone()).await.unwrap().into_inner();
            if answer.regions[0].rates.is_some_and(|rates| rates.offered > 0.0) {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let answer = found.await.expect("rates after two looks");
    assert_eq!(answer.balancers, 2);
    let window = Duration::try_from(answer.window.unwrap()).unwrap();
    assert!(window > Duration::from_millis(500), "{window:?}");
    let [eu, us] = &answer.regions[..] else { panic!("{answer:?}") };
    assert_eq!((&*eu.pool, &*eu.region, &*us.region), ("web", "eu", "us"));
    assert_eq!((eu.configured_per_second, eu.scaler), (Some(10.0), 1.0));
    assert_eq!((eu.capacity_per_second, eu.limit_per_second), (Some(5.0), Some(2.5)));
    assert_eq!((eu.backends_up, eu.backends, eu.backend_rate_per_second), (1, 2, Some(5.0)));
    let counters = eu.counters.unwrap();
    assert_eq!((counters.offered, counters.refused), (total, 0));
    let rates = eu.rates.unwrap();
    assert!((rates.offered - rates.admitted - rates.overflow_out).abs() < 1e-6, "{rates:?}");
    assert_eq!(eu.utilisation, Some(rates.admitted / 2.5));
    // One more backend is 2.5/s more of this balancer's.
    let missing = ((rates.offered - 2.5) / 2.5).ceil();
    assert_eq!(eu.missing_backends.map(f64::from), Some(missing));

    assert_eq!((us.configured_per_second, us.capacity_per_second), (None, None));
    assert_eq!((us.limit_per_second, us.backend_rate_per_second), (None, None));
    assert_eq!((us.utilisation, us.missing_backends), (None, Some(0)));
}

#[tokio::test]
async fn a_pool_that_is_not_there_is_not_found() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let none = client.regions(v1::RegionsRequest::default()).await.unwrap().into_inner();
    assert_eq!((none.regions, none.balancers), (vec![], 1));
    client.apply(apply(two_regions())).await.unwrap();
    let all = client.regions(v1::RegionsRequest::default()).await.unwrap().into_inner();
    assert_eq!(all.regions.len(), 2);
    let asked = v1::RegionsRequest { pool: "nope".into() };
    let status = client.regions(asked).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "pool \"nope\" does not exist");
}
