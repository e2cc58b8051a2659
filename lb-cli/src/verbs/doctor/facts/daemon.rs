use std::{collections::BTreeSet, net::IpAddr};

use lb_daemon::troubles::STORED;
use spillway_proto::v1::{ExportResponse, RegionStatus, RegionsRequest, StatusResponse};

use super::services::{Served, served};
use crate::{
    arguments::Options,
    daemon::{Daemon as Connection, converse},
    failure::Failure,
};

/// What a balancer's daemon says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Daemon {
    /// It does not answer, and why.
    Silent(String),
    /// It answers.
    Answers {
        /// Its version.
        version: String,
        /// The generation in force.
        generation: u64,
        /// Why the packet path is not at it; empty: it is.
        behind: String,
        /// What else is wrong, though it goes on: what, and why.
        troubles: Vec<(String, String)>,
        /// What it is told to do; boxed, since the other answer is small.
        told: Box<Told>,
    },
}

/// What a daemon is told, as far as this host has to fit it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Told {
    /// Its own region, where the configuration has none of this name.
    pub(in super::super) strange_region: Option<String>,
    /// Backends whose largest packet the configuration says, by address.
    pub(in super::super) sized: BTreeSet<IpAddr>,
    /// The pools that services use, with the states of their backends.
    pub(in super::super) served: Vec<Served>,
    /// Changed settings that wait for its next start, by name.
    pub(in super::super) waiting_settings: Vec<String>,
    /// Why it cannot use the stored configuration; `None`: it can. It says nothing of backends then.
    pub(in super::super) unusable: Option<String>,
}

impl Told {
    fn new(
        status: &StatusResponse,
        exported: Option<&ExportResponse>,
        regions: Option<&[RegionStatus]>,
    ) -> Self {
        let waiting_settings = status.waiting_settings.clone();
        let stored = status.troubles.iter().find(|trouble| trouble.subject == STORED);
        let unusable = stored.map(|trouble| trouble.cause.clone());
        let Some(configuration) = exported
            .and_then(|exported| {
                exported.configuration.as_ref().filter(|_| exported.generation > 0)
            })
            .filter(|_| unusable.is_none())
        else {
            return Self { waiting_settings, unusable, ..Self::default() };
        };
        let region = &status.region;
        let known = configuration.regions.iter().any(|known| known.name == *region);
        let backends = configuration.pools.iter().flat_map(|pool| &pool.backends);
        let sized = backends.filter(|backend| backend.mtu != 0);
        Self {
            strange_region: (!region.is_empty() && !known).then(|| region.clone()),
            sized: sized.filter_map(|backend| backend.address.parse().ok()).collect(),
            served: served(configuration, status, regions),
            waiting_settings,
            unusable,
        }
    }
}

impl Daemon {
    /// Asks.
    ///
    /// # Errors
    /// There can be no conversation at all; that nobody answers is a fact.
    pub(super) fn ask(options: &Options) -> Result<Self, Failure> {
        converse(async {
            let asked = async {
                let mut daemon = Connection::open(options).await?;
                let status = daemon.status().await?;
                // A stored configuration of which nothing can be read is no answer either, and the status says so.
                let exported = daemon.export().await.ok();
                // A daemon that cannot read its maps has no answer to this, and is not silent.
                let regions = daemon.regions(RegionsRequest::default()).await;
                Ok::<_, Failure>((status, exported, regions.ok().map(|answer| answer.regions)))
            };
            Ok(match asked.await {
                Ok((status, exported, regions)) => Self::Answers {
                    told: Box::new(Told::new(&status, exported.as_ref(), regions.as_deref())),
                    version: status.version,
                    generation: status.generation,
                    behind: status.behind,
                    troubles: status.troubles.into_iter().map(|t| (t.subject, t.cause)).collect(),
                },
                Err(failure) => Self::Silent(failure.message),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1::{Backend, Configuration, Pool, Region};

    use super::*;

    #[test]
    fn what_it_is_told_is_read_off_its_configuration() {
        let backend =
            |address: &str, mtu| Backend { address: address.into(), mtu, ..Backend::default() };
        let pool = Pool {
            backends: vec![backend("10.1.0.11", 0), backend("fd00::12", 1500)],
            ..Pool::default()
        };
        let configuration = Configuration {
            regions: vec![Region { name: "eu".into(), ..Region::default() }],
            pools: vec![pool],
            ..Configuration::default()
        };
        let sized: BTreeSet<IpAddr> = ["fd00::12".parse().unwrap()].into();
        let mut exported = ExportResponse {
            configuration: Some(configuration),
            generation: 1,
            ..ExportResponse::default()
        };
        for (region, strange) in [("eu", None), ("", None), ("mars", Some("mars".to_owned()))] {
            let status = StatusResponse { region: region.into(), ..StatusResponse::default() };
            let told = Told { strange_region: strange, sized: sized.clone(), ..Told::default() };
            assert_eq!(Told::new(&status, Some(&exported), None), told);
        }
        exported.generation = 0;
        let status = StatusResponse { region: "mars".into(), ..StatusResponse::default() };
        assert_eq!(Told::new(&status, Some(&exported), None), Told::default());
        assert_eq!(Told::new(&status, None, None), Told::default());
    }
}
