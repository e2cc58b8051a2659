//! Which fields of an object differ, each as `field: old -> new`.

use std::{
    collections::BTreeSet,
    fmt::{self, Display},
};

use crate::{Backend, Configuration, GroupSettings, Name, Pool, Region, Service, WhenFull};

mod health_check;
pub(super) use health_check::health_check;

pub(super) fn region(old: &Region, new: &Region) -> Vec<String> {
    let mut fields = Fields::default();
    fields.compare("overflow_to", Names(&old.overflow_to), Names(&new.overflow_to));
    fields.0
}

pub(super) fn pool(old: &Pool, new: &Pool) -> Vec<String> {
    let mut fields = Fields::default();
    fields.compare("health_checks", Names(&old.health_checks), Names(&new.health_checks));
    fields.compare("slots", old.slots, new.slots);
    fields.compare("isolation", old.isolation.name(), new.isolation.name());
    let preferred = (Names(&old.preferred_regions), Names(&new.preferred_regions));
    fields.compare("preferred_regions", preferred.0, preferred.1);
    let panic = (old.panic_threshold_percent, new.panic_threshold_percent);
    fields.compare("panic_threshold_percent", panic.0, panic.1);
    fields.compare("settle_time", Shown(old.settle_time), Shown(new.settle_time));
    fields.compare("slow_start", Shown(old.slow_start), Shown(new.slow_start));
    fields.compare("encapsulation", old.encapsulation, new.encapsulation);
    for region in old.groups.keys().chain(new.groups.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (old.group(region), new.group(region));
        let capacity = format!("capacity in {region}");
        fields.compare(&capacity, Optional(old.capacity.as_ref()), Optional(new.capacity.as_ref()));
        fields.compare(&format!("scaler in {region}"), old.scaler, new.scaler);
        let drained = |group: GroupSettings| if group.drained { "yes" } else { "no" };
        fields.compare(&format!("drained in {region}"), drained(old), drained(new));
    }
    fields.0
}

pub(super) fn backend(old: &Backend, new: &Backend) -> Vec<String> {
    let mut fields = Fields::default();
    fields.compare("region", &old.region, &new.region);
    fields.compare("weight", old.weight, new.weight);
    fields.compare("admin_state", old.admin_state.name(), new.admin_state.name());
    fields.compare("mtu", Optional(old.mtu.as_ref()), Optional(new.mtu.as_ref()));
    let rate = (old.max_connection_rate.as_ref(), new.max_connection_rate.as_ref());
    fields.compare("max_connection_rate", Optional(rate.0), Optional(rate.1));
    fields.0
}

pub(super) fn service(old: &Service, new: &Service) -> Vec<String> {
    let mut fields = Fields::default();
    fields.compare("address", old.address, new.address);
    let one = old.ports.single().is_some() && new.ports.single().is_some();
    let field = if one { "port" } else { "ports" };
    fields.compare(field, old.ports.to_string(), new.ports.to_string());
    fields.compare("protocol", old.protocol.name(), new.protocol.name());
    fields.compare("pool", &old.pool, &new.pool);
    fields.compare("affinity", old.affinity.name(), new.affinity.name());
    fields.compare("when_full", when_full(old.when_full), when_full(new.when_full));
    let udp = |service: &Service| match service.idle_timeout {
        None => "stateless",
        Some(_) => "tracked",
    };
    fields.compare("udp", udp(old), udp(new));
    let idle = (old.idle_timeout.map(Shown), new.idle_timeout.map(Shown));
    fields.compare("idle_timeout", Optional(idle.0), Optional(idle.1));
    fields.compare("fragments", old.fragments.name(), new.fragments.name());
    fields.0
}

/// What is no object's.
pub(super) fn whole(old: &Configuration, new: &Configuration) -> Vec<String> {
    let mut fields = Fields::default();
    fields.compare("balancers", old.balancers, new.balancers);
    fields.0
}

/// The key is a secret of the fleet: what it is does not show.
pub(super) fn hash_key(old: Option<[u64; 2]>, new: Option<[u64; 2]>) -> Vec<String> {
    let spell = |key: Option<_>, given| key.map_or("the daemon's own", |_| given);
    let given = if old.is_some() { "another" } else { "the one given" };
    vec![format!("hash_key: {} -> {}", spell(old, "the one given"), spell(new, given))]
}

fn when_full(when_full: WhenFull) -> &'static str {
    match when_full {
        WhenFull::Nearest => "nearest",
        WhenFull::Reject => "reject",
    }
}

#[derive(Default)]
struct Fields(Vec<String>);

impl Fields {
    fn compare<T: PartialEq + Display>(&mut self, field: &str, old: T, new: T) {
        if old != new {
            self.0.push(format!("{field}: {old} -> {new}"));
        }
    }
}

#[derive(PartialEq)]
struct Names<'a>(&'a [Name]);

impl Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.iter().map(Name::as_str).collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => f.write_str("none"),
            names => f.write_str(&names),
        }
    }
}

#[derive(PartialEq)]
struct Optional<T>(Option<T>);

impl<T: Display> Display for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("unset"),
            Some(value) => value.fmt(f),
        }
    }
}

#[derive(PartialEq)]
struct Shown<T>(T);

impl<T: fmt::Debug> Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
