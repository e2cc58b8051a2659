//! Conditions that follow from the configuration and the daemon's settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    num::NonZeroU32,
};

use super::{Known, missing_sources::MissingSources, narrow_paths::NarrowPaths};
use crate::state::Settings;
use lb_base::conditions::{ConditionReason, Conditions, Subject};
use lb_model::{
    Configuration, Ipv4Prefix, Name, Pool, SourceClash,
    slots::{self, LEAST_SHARE, Outgrown},
};

const HASH_KEY: Subject = Subject::new(ConditionReason::HashKey, "hash_key");

/// Begins and ends the conditions that follow from the configuration in force.
#[derive(Debug)]
pub(super) struct ConfigurationConditions {
    conditions: Conditions,
    /// The balancer's own region.
    region: Option<Name>,
    source_prefix: Option<Ipv4Prefix>,
    narrow: NarrowPaths,
    missing_sources: MissingSources,
    /// Pools that have too few slots for their backends or their weights.
    outgrown: BTreeSet<Name>,
}

impl ConfigurationConditions {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            conditions: settings.conditions.clone(),
            region: settings.region.clone(),
            source_prefix: settings.source_prefix,
            narrow: NarrowPaths::default(),
            missing_sources: MissingSources::default(),
            outgrown: BTreeSet::new(),
        }
    }

    /// The configuration is another one.
    pub(super) fn check(&mut self, known: &Known) {
        let configuration = known.configuration();
        self.check_source_prefix(configuration);
        self.missing_sources.check(known, &self.conditions);
        self.narrow.check(known, &self.conditions);
        self.check_hash_key(configuration);
        self.check_own_region(configuration);
        self.check_slots(configuration);
    }

    /// The path to a backend is another one.
    pub(super) fn check_path(&mut self, address: IpAddr, known: &Known) {
        self.narrow.check_backend(address, known, &self.conditions);
        self.missing_sources.check_backend(address, known, &self.conditions);
    }

    /// The prefix that tunnels come from is this balancer's own. Applying a configuration that has one of its addresses
    /// is refused, but the setting may have changed since.
    fn check_source_prefix(&self, configuration: &Configuration) {
        let Some(prefix) = self.source_prefix else { return };
        let text = format!("tunnel-source-prefix {prefix}");
        let subject = Subject::named(ConditionReason::SourcePrefix, text);
        match SourceClash::find(prefix, configuration) {
            None => self.conditions.end(&subject),
            Some(clash) => {
                let cause = format!("{clash}: change one of them; the setting needs a restart");
                self.conditions.begin(&subject, &cause);
            }
        }
    }

    fn check_hash_key(&self, configuration: &Configuration) {
        // Only a store of an older daemon contains such a configuration; applying one is refused.
        match configuration.balancers > NonZeroU32::MIN && configuration.hash_key.is_none() {
            true => self.conditions.begin(
                &HASH_KEY,
                "not set, but there are several balancers: each uses its own key, so they choose \
                 different backends; set the same key on all (`spillway export` prints this one's)",
            ),
            false => self.conditions.end(&HASH_KEY),
        }
    }

    /// Tables never change their size by themselves, so a pool may have too few slots for its backends or their weights.
    fn check_slots(&mut self, configuration: &Configuration) {
        let balancers = configuration.balancers;
        let pools = configuration.pools.iter();
        let causes: BTreeMap<_, _> = pools
            .filter_map(|(name, pool)| Some((name.clone(), slots_cause(pool, balancers)?)))
            .collect();
        let subject = |name: &Name| {
            let text = format!("slots of pool {name}");
            Subject::of_pool(ConditionReason::Slots, name.as_str(), text)
        };
        let conditions = &self.conditions;
        self.outgrown.iter().filter(|name| !causes.contains_key(*name)).for_each(|name| {
            conditions.end(&subject(name));
        });
        causes.iter().for_each(|(name, cause)| conditions.begin(&subject(name), cause));
        self.outgrown = causes.into_keys().collect();
    }

    fn check_own_region(&self, configuration: &Configuration) {
        if let Some(region) = &self.region {
            let subject = Subject::named(ConditionReason::Region, format!("region {region}"));
            // Without regions nothing is configured yet, so nothing is missing.
            match configuration.regions.is_empty() || configuration.regions.contains_key(region) {
                true => self.conditions.end(&subject),
                false => self.conditions.begin(
                    &subject,
                    "this balancer's own region is not in the configuration, so it prefers no backend",
                ),
            }
        }
    }
}

/// What is wrong with the slots of a pool, if anything, and what to do.
fn slots_cause(pool: &Pool, balancers: NonZeroU32) -> Option<String> {
    let moves = "moves homes of connections, and open ones stay for the settle time";
    if let Some(without) = slots::without_slots(pool) {
        return Some(format!("{without}; {}; a change {moves}", without.hint()));
    }
    let Outgrown { least, region, choice } = slots::outgrown(pool)?;
    let how = match balancers.get() {
        1 => format!("slots = {choice}, or slots = 0 to have a number chosen,"),
        balancers => format!("slots = {choice} on all {balancers} balancers"),
    };
    Some(format!(
        "of {} slots the backend with the least weight in region {region} has {least}, and fewer than {LEAST_SHARE} \
         spread connections unevenly; {how} {moves}",
        pool.slots
    ))
}
