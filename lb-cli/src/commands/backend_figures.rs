//! What an operator wants to see of a backend in one line: its weight, its share of the new connections of its region,
//! how many it gets, its state, and the overrides that act on it. `status -o wide` and `backend list` print them.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use lb_model::shares::distribution;
use spillway_proto::v1;

use super::{backend_status::state_word, overrides::OverrideRow};
use crate::{client::DaemonClient, failure::Failure};

/// Time between the two readings of the counters that a rate is of, as for `regions`.
const INTERVAL: Duration = Duration::from_secs(1);

/// Pool and address.
type Key = (String, String);

/// The figures of all backends.
#[derive(Debug, Default)]
pub(crate) struct BackendFigures(HashMap<Key, Figures>);

/// The figures of a backend of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Of the new connections of its region of the pool, 0 to 1. It follows from weights and states, so it is known without
    /// traffic. `None`: no backend of the region takes any.
    pub(crate) share: Option<f64>,
    /// New connections a second, of all pools that have its address; `None`: it is not counted yet.
    pub(crate) connections: Option<f64>,
    pub(crate) state: &'static str,
    /// Names, with the percent of those that have one.
    pub(crate) overrides: Vec<String>,
}

impl BackendFigures {
    /// Asks for the status, and twice for the counters.
    ///
    /// # Errors
    /// The daemon does not answer.
    pub(crate) async fn read(
        daemon: &mut DaemonClient,
    ) -> Result<(v1::StatusResponse, Self), Failure> {
        let (before, at) = (daemon.stats().await?, Instant::now());
        tokio::time::sleep(INTERVAL).await;
        let after = daemon.stats().await?;
        let rates = connection_rates(&before.backends, &after.backends, at.elapsed());
        let status = daemon.status().await?;
        let figures = Self::new(&status, &rates);
        Ok((status, figures))
    }

    /// From new connections a second by address.
    pub(crate) fn new(status: &v1::StatusResponse, rates: &HashMap<String, f64>) -> Self {
        let named: HashMap<&str, String> = status
            .overrides
            .iter()
            .map(|it| (&*it.name, OverrideRow::new(it.clone()).named()))
            .collect();
        let mut groups: HashMap<(&str, &str), Vec<&v1::BackendStatus>> = HashMap::new();
        for it in &status.backends {
            groups.entry((&it.pool, &it.region)).or_default().push(it);
        }
        let shares = groups.into_values().flat_map(|group| {
            let taken = |it: &v1::BackendStatus| it.share.filter(|_| it.next_hop_resolved);
            let members: Vec<_> =
                group.iter().map(|it| (it.weight, taken(it).unwrap_or(0.0))).collect();
            let shares = distribution(&members);
            let is_served = shares.iter().any(|share| *share > 0.0);
            let key = |it: &v1::BackendStatus| (it.pool.clone(), it.address.clone());
            let of_group = group.into_iter().map(key).zip(shares);
            of_group.filter(move |_| is_served).collect::<Vec<_>>()
        });
        let shares: HashMap<Key, f64> = shares.collect();
        let figures = status.backends.iter().map(|it| {
            let key = (it.pool.clone(), it.address.clone());
            let override_name =
                |name: &String| named.get(&**name).cloned().unwrap_or_else(|| name.clone());
            let figures = Figures {
                share: shares.get(&key).copied(),
                connections: rates.get(&it.address).copied(),
                state: state_word(it.state()),
                overrides: it.overrides.iter().map(override_name).collect(),
            };
            (key, figures)
        });
        Self(figures.collect())
    }

    pub(crate) fn get(&self, pool: &str, address: &str) -> Option<&Figures> {
        self.0.get(&(pool.to_owned(), address.to_owned()))
    }
}

impl Figures {
    /// `33%`
    pub(crate) fn share_cell(&self) -> String {
        self.share.map_or_else(|| "-".into(), |share| format!("{:.0}%", share * 100.0))
    }

    /// New connections a second.
    pub(crate) fn rate_cell(&self) -> String {
        self.connections.map_or_else(|| "-".into(), super::regions::format_rate)
    }

    pub(crate) fn overrides_cell(&self) -> String {
        if self.overrides.is_empty() { "-".into() } else { self.overrides.join(", ") }
    }
}

/// By address; without those whose counters are new or began anew.
fn connection_rates(
    before: &[v1::BackendStats],
    after: &[v1::BackendStats],
    elapsed: Duration,
) -> HashMap<String, f64> {
    let count = |it: &v1::BackendStats| it.traffic.as_ref().map(|traffic| traffic.connections);
    let earlier: HashMap<&str, u64> =
        before.iter().filter_map(|it| Some((&*it.backend, count(it)?))).collect();
    let rate = |it: &v1::BackendStats| {
        let more = count(it)?.checked_sub(*earlier.get(&*it.backend)?)?;
        Some((it.backend.clone(), more as f64 / elapsed.as_secs_f64()))
    };
    after.iter().filter_map(rate).collect()
}

/// Values for tests.
#[cfg(test)]
pub(crate) mod examples {
    use super::*;
    use crate::commands::backend_status::messages;

    pub(crate) fn backend(
        address: &str,
        region: &str,
        weight: u32,
        share: Option<f64>,
    ) -> v1::BackendStatus {
        v1::BackendStatus {
            weight,
            pool: "web".into(),
            address: address.into(),
            region: region.into(),
            state: messages::state(if share.is_some() { "up" } else { "unhealthy" }),
            next_hop_resolved: true,
            share,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{examples::backend, *};

    /// Percent, in their order.
    fn shares(backends: Vec<v1::BackendStatus>) -> Vec<Option<u32>> {
        let addresses: Vec<_> = backends.iter().map(|it| it.address.clone()).collect();
        let status = v1::StatusResponse { backends, ..Default::default() };
        let figures = BackendFigures::new(&status, &HashMap::new());
        addresses
            .iter()
            .map(|it| figures.get("web", it).unwrap().share.map(|it| (it * 100.0).round() as u32))
            .collect()
    }

    #[test]
    fn a_share_is_of_what_the_backends_of_a_region_take() {
        let backends = vec![
            backend("10.0.0.1", "eu", 3, Some(1.0)),
            // It is first for two connections of five, and takes half of those.
            backend("10.0.0.2", "eu", 2, Some(0.5)),
            backend("10.0.0.3", "eu", 5, None),
            backend("10.0.1.1", "us", 7, Some(1.0)),
        ];
        assert_eq!(shares(backends.clone()), [80, 20, 0, 100].map(Some));
        // One without a next hop takes nothing, whatever its state.
        let mut unresolved = backends;
        unresolved[0].next_hop_resolved = false;
        assert_eq!(shares(unresolved)[..3], [0, 100, 0].map(Some));
        let none = vec![backend("10.0.0.1", "eu", 3, None), backend("10.0.0.2", "eu", 2, None)];
        assert_eq!(shares(none), [None, None]);
    }

    #[test]
    fn overrides_have_their_percent_and_counters_become_rates() {
        let mut one = backend("10.0.0.1", "eu", 2, Some(1.0));
        one.overrides =
            vec!["pools/web/backends/10.0.0.1/weight".into(), "regions/eu/drain".into()];
        let weight = v1::Override {
            name: one.overrides[0].clone(),
            percent: Some(30),
            ..Default::default()
        };
        let status = v1::StatusResponse {
            backends: vec![one],
            overrides: vec![weight],
            ..Default::default()
        };
        let counted = |address: &str, connections| v1::BackendStats {
            backend: address.into(),
            traffic: Some(v1::Traffic { connections, ..Default::default() }),
            ..Default::default()
        };
        let before = [counted("10.0.0.1", 10), counted("10.0.0.2", 10)];
        let after = [counted("10.0.0.1", 35), counted("10.0.0.2", 9), counted("10.0.0.3", 9)];
        let rates = connection_rates(&before, &after, Duration::from_secs(2));
        assert_eq!(rates, HashMap::from([("10.0.0.1".to_owned(), 12.5)]));
        let figures = BackendFigures::new(&status, &rates);
        let one = figures.get("web", "10.0.0.1").unwrap();
        assert_eq!(
            [one.share_cell(), one.rate_cell(), one.overrides_cell()],
            ["100%", "12.5", "pools/web/backends/10.0.0.1/weight (30 %), regions/eu/drain"]
        );
        let unknown = Figures::default();
        let cells = [unknown.share_cell(), unknown.rate_cell(), unknown.overrides_cell()];
        assert_eq!(cells, ["-"; 3]);
        assert!(figures.get("dns", "10.0.0.1").is_none());
    }
}
