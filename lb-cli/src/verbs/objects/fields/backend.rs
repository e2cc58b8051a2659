use clap::{Args, ValueEnum};
use lb_daemon::{document, model::bounds};
use spillway_proto::v1;

use super::{
    number::{within, within_or_unset},
    rate,
};
use crate::{
    failure::Failure,
    verbs::objects::{
        edit::Edit,
        kind::{Column, Fields, InPool, Kind, Which, cell, named},
    },
};

/// Fields of a backend.
#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct BackendFields {
    /// Its region
    #[arg(long)]
    region: Option<String>,
    /// Share relative to the others of its region; 0 takes none [left out: 1]
    #[arg(long, value_parser = within(bounds::WEIGHTS), allow_negative_numbers = true)]
    weight: Option<u32>,
    /// What is wanted of it [left out: active]
    #[arg(long)]
    wanted: Option<Wanted>,
    /// Largest outer IP packet towards it, bytes [left out: that of the interface]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::MTUS))]
    mtu: Option<u32>,
    /// New connections it takes, over all balancers, as 200/s [left out: no limit]
    #[arg(long, value_name = "RATE", value_parser = rate, allow_hyphen_values = true)]
    max_connection_rate: Option<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Wanted {
    /// Takes traffic while it is healthy
    Active,
    /// Takes no new connections; its open ones stay
    Drain,
    /// Takes nothing; its open connections move
    Disabled,
}

/// Which backend; where only one pool has it, its address says enough.
#[derive(Args, Debug)]
pub(crate) struct Address {
    /// Its address
    #[arg(value_name = "ADDRESS", required_unless_present = "address")]
    #[arg(value_parser = filled)]
    backend: Option<String>,
    /// Its address, as a flag
    #[arg(long, conflicts_with = "backend", value_parser = filled)]
    address: Option<String>,
    /// Its pool, needed where several have the address
    #[arg(long, value_parser = named)]
    pool: Option<String>,
}

/// Which backends, one or several.
#[derive(Args, Debug)]
pub(crate) struct Addresses {
    /// Their addresses
    #[arg(value_name = "ADDRESS", required_unless_present = "address", value_parser = filled)]
    backends: Vec<String>,
    /// Its address, as a flag
    #[arg(long, conflicts_with = "backends", value_parser = filled)]
    address: Option<String>,
    /// Their pool, needed where several have an address
    #[arg(long, value_parser = named)]
    pool: Option<String>,
}

impl Addresses {
    /// Each, as if it had been given alone.
    pub(crate) fn each(&self) -> Vec<Address> {
        let one = |address: &String| Address {
            backend: Some(address.clone()),
            address: None,
            pool: self.pool.clone(),
        };
        self.backends.iter().chain(&self.address).map(one).collect()
    }
}

/// Which backend, or where to add one.
#[derive(Args, Debug)]
pub(crate) struct AddressOrFile {
    /// Its address
    #[arg(value_name = "ADDRESS", required_unless_present_any = ["address", "file"])]
    #[arg(value_parser = filled)]
    backend: Option<String>,
    /// Its address, as a flag
    #[arg(long, conflicts_with = "backend", value_parser = filled)]
    address: Option<String>,
    /// Its pool; a new one needs it
    #[arg(long, value_parser = named)]
    pool: Option<String>,
}

/// An address of the command line.
fn filled(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the address is empty".into()),
        address => Ok(address.into()),
    }
}

/// Which backends.
#[derive(Args, Debug)]
pub(crate) struct OfPool {
    /// Only those of this pool
    #[arg(long)]
    pool: Option<String>,
}

fn in_pool(pool: Option<&str>) -> InPool<'_> {
    pool.map_or(InPool::Unsaid, InPool::Named)
}

impl Which for OfPool {
    fn pool(&self) -> InPool<'_> {
        in_pool(self.pool.as_deref())
    }
}

impl Which for Address {
    fn name(&self) -> Option<&str> {
        self.backend.as_deref().or(self.address.as_deref())
    }

    fn pool(&self) -> InPool<'_> {
        in_pool(self.pool.as_deref())
    }
}

impl Which for AddressOrFile {
    fn name(&self) -> Option<&str> {
        self.backend.as_deref().or(self.address.as_deref())
    }

    fn pool(&self) -> InPool<'_> {
        in_pool(self.pool.as_deref())
    }
}

impl Fields<v1::Backend> for BackendFields {
    fn write(&self, edit: &mut Edit<v1::Backend>, _: Option<&v1::Backend>) -> Result<(), Failure> {
        edit.set("region", self.region.as_ref(), |b, region| b.region = region);
        edit.set("weight", self.weight.as_ref(), |b, weight| b.weight = Some(weight));
        edit.set("wanted", self.wanted.as_ref(), |b, wanted| {
            b.set_wanted(match wanted {
                Wanted::Active => v1::WantedState::Active,
                Wanted::Drain => v1::WantedState::Drain,
                Wanted::Disabled => v1::WantedState::Disabled,
            });
        });
        edit.set("mtu", self.mtu.as_ref(), |b, mtu| b.mtu = mtu);
        edit.set("max_connection_rate_per_second", self.max_connection_rate.as_ref(), |b, rate| {
            b.max_connection_rate_per_second = Some(rate)
        });
        Ok(())
    }
}

impl Kind for v1::Backend {
    const WORD: &'static str = "backend";
    const WORDS: &'static str = "backends";
    const VERB: &'static str = "backend";
    const KEYS: (&'static str, &'static str) = ("backend", "backends");
    const COLUMNS: &'static [Column] = &[
        ("POOL", |b| cell(&b["pool"])),
        ("ADDRESS", |b| cell(&b["address"])),
        ("REGION", |b| cell(&b["region"])),
        ("WEIGHT", |b| cell(&b["weight"])),
        ("WANTED", |b| cell(&b["wanted"])),
    ];
    const MORE: &'static [Column] =
        &[("MTU", |b| cell(&b["mtu"])), ("MAX RATE", |b| cell(&b["max_connection_rate"]))];
    type Filter = OfPool;
    type One = Address;
    type Named = AddressOrFile;
    type Fields = BackendFields;
    type File = document::Backend;

    fn name(&self) -> &str {
        &self.address
    }

    fn rename(&mut self, name: &str) {
        self.address = name.into();
    }
}
