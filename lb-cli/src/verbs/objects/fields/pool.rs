use clap::{Args, ValueEnum};
use lb_daemon::{document, model::bounds};
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1;

use super::{duration, number::within_or_unset, rate};
use crate::{
    failure::Failure,
    verbs::objects::{
        edit::Edit,
        kind::{All, Column, Fields, Kind, Name, NameOrFile, cell},
        scale::group_of,
    },
};

/// Fields of a pool. Its backends have a verb of their own.
#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct PoolFields {
    /// Health checks that must all pass; "" for none
    #[arg(long, value_name = "CHECK,…", value_delimiter = ',')]
    health_checks: Vec<String>,
    /// Slots of its tables, a prime [left out: 65537]
    #[arg(long, value_parser = within_or_unset(bounds::SLOTS), allow_negative_numbers = true)]
    slots: Option<u32>,
    /// When new connections may leave the first region of the order [left out: none]
    #[arg(long)]
    isolation: Option<Isolation>,
    /// Regions that are asked first; "" for none
    #[arg(long, value_name = "REGION,…", value_delimiter = ',')]
    preferred_regions: Vec<String>,
    /// Share of healthy backends below which the others are the last resort [left out: never]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::PANIC_THRESHOLDS))]
    panic_threshold_percent: Option<u32>,
    /// How long open connections stay after a change of home [left out: 10m]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    settle_time: Option<Duration>,
    /// How long a backend that comes up takes to its whole share [left out: no time]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    slow_start: Option<Duration>,
    /// How packets get to its backends [left out: ip_in_ip]
    #[arg(long)]
    encapsulation: Option<Encapsulation>,
    /// UDP port that GUE goes to [left out: 6080]
    #[arg(long, value_name = "PORT", value_parser = within_or_unset(bounds::PORTS))]
    #[arg(allow_negative_numbers = true)]
    gue_port: Option<u32>,
    /// New connections that a region takes, over all balancers, as eu=10000/s; eu= for unset
    #[arg(long, value_name = "REGION=RATE,…", value_delimiter = ',', value_parser = capacity)]
    capacity: Vec<OfRegion>,
    /// Share of a region's capacity in use, 0 or 0.1 to 1, as eu=0.5; eu= for unset
    #[arg(long, value_name = "REGION=SHARE,…", value_delimiter = ',', value_parser = scaler)]
    scaler: Vec<OfRegion>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Isolation {
    /// When it is full, and when nobody there can have them
    None,
    /// When nobody there can have them, not when it is full
    #[value(name = "on_failure", alias = "on-failure")]
    OnFailure,
    /// Never
    Strict,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Encapsulation {
    /// In an IP header alone
    #[value(name = "ip_in_ip", alias = "ip-in-ip")]
    IpInIp,
    /// In Generic UDP Encapsulation
    Gue,
    /// As they are, to the MAC of a backend on the balancer's link
    Direct,
}

/// What is set of a pool in one region.
#[derive(Clone, Debug)]
struct OfRegion {
    region: String,
    value: Option<f64>,
}

fn capacity(text: &str) -> Result<OfRegion, String> {
    of_region(text, "eu=10000/s", rate)
}

fn scaler(text: &str) -> Result<OfRegion, String> {
    let share = |share: &str| share.parse().map_err(|_| "give a number from 0 to 1".to_owned());
    of_region(text, "eu=0.5", share)
}

fn of_region(
    text: &str,
    example: &str,
    parse: impl FnOnce(&str) -> Result<f64, String>,
) -> Result<OfRegion, String> {
    let (region, value) =
        text.split_once('=').ok_or_else(|| format!("give a region and its value, as {example}"))?;
    let value = if value.is_empty() { None } else { Some(parse(value)?) };
    Ok(OfRegion { region: region.into(), value })
}

impl PoolFields {
    /// The groups of a pool with what the flags say of them.
    fn groups(&self, mut pool: v1::Pool) -> Vec<v1::PoolRegion> {
        for OfRegion { region, value } in &self.capacity {
            group_of(&mut pool, region).capacity_per_second = *value;
        }
        for OfRegion { region, value } in &self.scaler {
            group_of(&mut pool, region).scaler = *value;
        }
        pool.groups.retain(|group| *group != empty(&group.region));
        pool.groups
    }
}

/// A group of which nothing is set.
fn empty(region: &str) -> v1::PoolRegion {
    v1::PoolRegion { region: region.into(), ..v1::PoolRegion::default() }
}

impl Fields<v1::Pool> for PoolFields {
    fn wants_current(&self) -> bool {
        !self.capacity.is_empty() || !self.scaler.is_empty()
    }

    fn write(&self, edit: &mut Edit<v1::Pool>, current: Option<&v1::Pool>) -> Result<(), Failure> {
        edit.list("health_checks", &self.health_checks, |pool, checks| pool.health_checks = checks);
        edit.set("slots", self.slots.as_ref(), |pool, slots| pool.slots = slots);
        edit.set("isolation", self.isolation.as_ref(), |pool, isolation| {
            pool.set_isolation(match isolation {
                Isolation::None => v1::Isolation::None,
                Isolation::OnFailure => v1::Isolation::OnFailure,
                Isolation::Strict => v1::Isolation::Strict,
            });
        });
        edit.list("preferred_regions", &self.preferred_regions, |pool, regions| {
            pool.preferred_regions = regions;
        });
        let percent = self.panic_threshold_percent.as_ref();
        edit.set("panic_threshold_percent", percent, |pool, percent| {
            pool.panic_threshold_percent = percent;
        });
        edit.set("settle_time", self.settle_time.as_ref(), |p, time| p.settle_time = Some(time));
        edit.set("slow_start", self.slow_start.as_ref(), |p, time| p.slow_start = Some(time));
        edit.set("encapsulation", self.encapsulation.as_ref(), |pool, encapsulation| {
            pool.set_encapsulation(match encapsulation {
                Encapsulation::IpInIp => v1::Encapsulation::IpInIp,
                Encapsulation::Gue => v1::Encapsulation::Gue,
                Encapsulation::Direct => v1::Encapsulation::Direct,
            });
        });
        edit.set("gue_port", self.gue_port.as_ref(), |pool, port| pool.gue_port = port);
        if self.wants_current() {
            let groups = self.groups(current.cloned().unwrap_or_default());
            edit.set("groups", Some(&groups), |pool, groups| pool.groups = groups);
        }
        Ok(())
    }
}

/// How many backends a pool has.
fn backends(pool: &Value) -> String {
    pool["backend"].as_array().map_or(0, Vec::len).to_string()
}

/// Regions that a pool has backends in.
fn regions(pool: &Value) -> String {
    let backends = pool["backend"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut regions: Vec<_> = backends.iter().map(|backend| cell(&backend["region"])).collect();
    regions.sort();
    regions.dedup();
    if regions.is_empty() { "-".into() } else { regions.join(", ") }
}

impl Kind for v1::Pool {
    const WORD: &'static str = "pool";
    const WORDS: &'static str = "pools";
    const VERB: &'static str = "pool";
    const KEYS: (&'static str, &'static str) = ("pool", "pools");
    const COLUMNS: &'static [Column] = &[
        ("NAME", |p| cell(&p["name"])),
        ("BACKENDS", backends),
        ("REGIONS", regions),
        ("HEALTH CHECKS", |p| cell(&p["health_checks"])),
    ];
    const MORE: &'static [Column] = &[
        ("SLOTS", |p| cell(&p["slots"])),
        ("ISOLATION", |p| cell(&p["isolation"])),
        ("PREFERRED", |p| cell(&p["preferred_regions"])),
        ("PANIC %", |p| cell(&p["panic_threshold_percent"])),
        ("SETTLE TIME", |p| cell(&p["settle_time"])),
        ("SLOW START", |p| cell(&p["slow_start"])),
        ("ENCAPSULATION", |p| cell(&p["encapsulation"])),
        ("GUE PORT", |p| cell(&p["gue_port"])),
    ];
    type Filter = All;
    type One = Name;
    type Named = NameOrFile;
    type Fields = PoolFields;
    type File = document::Pool;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}
