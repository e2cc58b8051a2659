//! Pools and regions: flags and columns.

use clap::Args;
use lb_config::{document, message::ApiEnum};
use lb_model::{EncapsulationKind, Isolation, bounds};
use prost_types::Duration;
use serde_json::Value;
use spillway_proto::v1;

use super::kind::{
    Fields, Kind, ListColumn, NameArgument, NameOrFileArgument, NoFilter, Patch, cell,
};
use crate::{
    arguments::{one_of, parse_duration, parse_rate, within, within_or_unset},
    commands::confirm::{ForceArgument, NoForce},
    failure::Failure,
};

/// Backends have a command of their own.
#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct PoolFields {
    /// Health checks that must all pass; "" for none
    #[arg(long, value_name = "CHECK,…", value_delimiter = ',')]
    health_checks: Vec<String>,
    /// Slots of its tables, a prime number; 0 has it chosen from the backends [default: of an existing pool, the number
    /// it has; of a new one as 0]
    #[arg(long, value_parser = parse_slots, allow_negative_numbers = true)]
    slots: Option<u32>,
    /// Whether new connections may leave the first region of the order [default: none]
    #[arg(long, value_parser = one_of::<Isolation>())]
    isolation: Option<Isolation>,
    /// Regions to use first; "" for none
    #[arg(long, value_name = "REGION,…", value_delimiter = ',')]
    preferred_regions: Vec<String>,
    /// Use unhealthy backends as a last resort if fewer than this share are healthy [default: never]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::PANIC_THRESHOLDS))]
    panic_threshold_percent: Option<u32>,
    /// How long open connections stay after a remap [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    settle_time: Option<Duration>,
    /// Time until a backend that comes up takes its full share [default: none]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    slow_start: Option<Duration>,
    /// How long a backend that went down again soon after it came back gets no new connections; 0s for not at all
    /// [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    hold_down: Option<Duration>,
    /// Maximum of that time, which doubles with each failure in a row [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    max_hold_down: Option<Duration>,
    /// How packets reach the backends [default: ip_in_ip]
    #[arg(long, value_parser = one_of::<EncapsulationKind>())]
    encapsulation: Option<EncapsulationKind>,
    /// UDP destination port of GUE [default: 6080]
    #[arg(long, value_name = "PORT", value_parser = within_or_unset(bounds::PORTS))]
    #[arg(allow_negative_numbers = true)]
    gue_port: Option<u32>,
    /// Maximum new connections of a region over all balancers, such as eu=10000/s; eu= unsets it
    #[arg(long, value_name = "REGION=RATE,…", value_delimiter = ',', value_parser = parse_capacity)]
    capacity: Vec<RegionValue>,
    /// Share of a region's capacity to use, 0 or 0.1 to 1, such as eu=0.5; eu= unsets it
    #[arg(long, value_name = "REGION=SHARE,…", value_delimiter = ',', value_parser = parse_scaler)]
    scaler: Vec<RegionValue>,
}

/// A value for one region, from `REGION=VALUE`.
#[derive(Clone, Debug)]
struct RegionValue {
    region: String,
    value: Option<f64>,
}

/// A number of slots, or 0, which asks for one.
fn parse_slots(text: &str) -> Result<u32, String> {
    let number = within(bounds::SLOTS);
    match text {
        "0" => Ok(0),
        text => number(text).map_err(|allowed| format!("{allowed}, or 0")),
    }
}

fn parse_capacity(text: &str) -> Result<RegionValue, String> {
    parse_region_value(text, "eu=10000/s", parse_rate)
}

fn parse_scaler(text: &str) -> Result<RegionValue, String> {
    let share = |share: &str| share.parse().map_err(|_| "give a number from 0 to 1".to_owned());
    parse_region_value(text, "eu=0.5", share)
}

fn parse_region_value(
    text: &str,
    example: &str,
    parse: impl FnOnce(&str) -> Result<f64, String>,
) -> Result<RegionValue, String> {
    let (region, value) = text
        .split_once('=')
        .ok_or_else(|| format!("give a region and its value, such as {example}"))?;
    let value = if value.is_empty() { None } else { Some(parse(value)?) };
    Ok(RegionValue { region: region.into(), value })
}

impl PoolFields {
    /// The groups of a pool with the values of the flags.
    fn groups(&self, mut pool: v1::Pool) -> Vec<v1::Group> {
        for RegionValue { region, value } in &self.capacity {
            group_in(&mut pool, region).capacity_per_second = *value;
        }
        for RegionValue { region, value } in &self.scaler {
            group_in(&mut pool, region).scaler = *value;
        }
        pool.groups.retain(|group| *group != empty_group(&group.region));
        pool.groups
    }
}

/// A pool's group in a region, added if missing.
pub(super) fn group_in<'a>(pool: &'a mut v1::Pool, region: &str) -> &'a mut v1::Group {
    let at = pool.groups.iter().position(|group| group.region == region).unwrap_or_else(|| {
        pool.groups.push(v1::Group { region: region.into(), ..Default::default() });
        pool.groups.len() - 1
    });
    &mut pool.groups[at]
}

/// A group with nothing set.
fn empty_group(region: &str) -> v1::Group {
    v1::Group { region: region.into(), ..v1::Group::default() }
}

impl Fields<v1::Pool> for PoolFields {
    fn needs_current(&self) -> bool {
        !self.capacity.is_empty() || !self.scaler.is_empty()
    }

    fn write(
        &self,
        patch: &mut Patch<v1::Pool>,
        current: Option<&v1::Pool>,
    ) -> Result<(), Failure> {
        patch
            .list("health_checks", &self.health_checks, |pool, checks| pool.health_checks = checks);
        patch.set("slots", self.slots.as_ref(), |pool, slots| pool.slots = Some(slots));
        patch.set("isolation", self.isolation.as_ref(), |pool, isolation| {
            pool.set_isolation(isolation.to_api());
        });
        patch.list("preferred_regions", &self.preferred_regions, |pool, regions| {
            pool.preferred_regions = regions;
        });
        let percent = self.panic_threshold_percent.as_ref();
        patch.set("panic_threshold_percent", percent, |pool, percent| {
            pool.panic_threshold_percent = percent;
        });
        patch.set("settle_time", self.settle_time.as_ref(), |p, time| p.settle_time = Some(time));
        patch.set("slow_start", self.slow_start.as_ref(), |p, time| p.slow_start = Some(time));
        patch.set("hold_down", self.hold_down.as_ref(), |p, time| p.hold_down = Some(time));
        let most = self.max_hold_down.as_ref();
        patch.set("max_hold_down", most, |p, time| p.max_hold_down = Some(time));
        patch.set("encapsulation", self.encapsulation.as_ref(), |pool, encapsulation| {
            pool.set_encapsulation(encapsulation.to_api());
        });
        patch.set("gue_port", self.gue_port.as_ref(), |pool, port| pool.gue_port = port);
        if self.needs_current() {
            let groups = self.groups(current.cloned().unwrap_or_default());
            patch.set("groups", Some(&groups), |pool, groups| pool.groups = groups);
        }
        Ok(())
    }
}

fn backend_count(pool: &Value) -> String {
    pool["backend"].as_array().map_or(0, Vec::len).to_string()
}

/// The regions of a pool's backends.
fn backend_regions(pool: &Value) -> String {
    let backends = pool["backend"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut regions: Vec<_> = backends.iter().map(|backend| cell(&backend["region"])).collect();
    regions.sort();
    regions.dedup();
    if regions.is_empty() { "-".into() } else { regions.join(", ") }
}

impl Kind for v1::Pool {
    const NAME: &'static str = "pool";
    const PLURAL: &'static str = "pools";
    const COMMAND: &'static str = "pool";
    const KEYS: (&'static str, &'static str) = ("pool", "pools");
    const COLUMNS: &'static [ListColumn] = &[
        ("NAME", |p| cell(&p["name"])),
        ("BACKENDS", backend_count),
        ("REGIONS", backend_regions),
        ("HEALTH CHECKS", |p| cell(&p["health_checks"])),
    ];
    const WIDE_COLUMNS: &'static [ListColumn] = &[
        ("SLOTS", |p| cell(&p["slots"])),
        ("ISOLATION", |p| cell(&p["isolation"])),
        ("PREFERRED", |p| cell(&p["preferred_regions"])),
        ("PANIC %", |p| cell(&p["panic_threshold_percent"])),
        ("SETTLE TIME", |p| cell(&p["settle_time"])),
        ("SLOW START", |p| cell(&p["slow_start"])),
        ("HOLD DOWN", |p| cell(&p["hold_down"])),
        ("MAX HOLD", |p| cell(&p["max_hold_down"])),
        ("ENCAPSULATION", |p| cell(&p["encapsulation"])),
        ("GUE PORT", |p| cell(&p["gue_port"])),
    ];
    type Filter = NoFilter;
    type Target = NameArgument;
    type TargetOrFile = NameOrFileArgument;
    type Fields = PoolFields;
    type File = document::Pool;
    type CreateForce = NoForce;
    type UpdateForce = ForceArgument;
    type DeleteForce = NoForce;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}

#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct RegionFields {
    /// Regions that take connections which this region cannot serve, nearest first; "" for none
    #[arg(long, value_name = "REGION,…", value_delimiter = ',')]
    overflow_to: Vec<String>,
}

impl Fields<v1::Region> for RegionFields {
    fn write(&self, patch: &mut Patch<v1::Region>, _: Option<&v1::Region>) -> Result<(), Failure> {
        patch.list("overflow_to", &self.overflow_to, |region, to| region.overflow_to = to);
        Ok(())
    }
}

impl Kind for v1::Region {
    const NAME: &'static str = "region";
    const PLURAL: &'static str = "regions";
    const COMMAND: &'static str = "region";
    const KEYS: (&'static str, &'static str) = ("region", "regions");
    const COLUMNS: &'static [ListColumn] =
        &[("NAME", |r| cell(&r["name"])), ("OVERFLOW TO", |r| cell(&r["overflow_to"]))];
    const WIDE_COLUMNS: &'static [ListColumn] = &[];
    type Filter = NoFilter;
    type Target = NameArgument;
    type TargetOrFile = NameOrFileArgument;
    type Fields = RegionFields;
    type File = document::Region;
    type CreateForce = NoForce;
    type UpdateForce = NoForce;
    type DeleteForce = NoForce;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}
