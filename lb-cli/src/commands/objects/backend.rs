//! Backends: flags and columns.

use clap::Args;
use lb_config::{
    document,
    message::{ApiEnum, to_number},
};
use lb_model::{AdminState, bounds};
use serde_json::Value;
use spillway_proto::v1;

use super::calls::ListFilter;
use super::kind::{Fields, Kind, ListColumn, Patch, PoolArgument, Selector, cell, parse_name};
use crate::{
    arguments::{one_of, parse_rate, within, within_or_unset},
    client::DaemonClient,
    commands::{
        backend_figures::BackendFigures,
        confirm::{ForceArgument, NoForce},
    },
    failure::Failure,
};

#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct BackendFields {
    /// Region
    #[arg(long)]
    region: Option<String>,
    /// Weight relative to the other backends of its region; 0 takes no connections [default: 1]
    #[arg(long, value_parser = within(bounds::WEIGHTS), allow_negative_numbers = true)]
    weight: Option<u32>,
    /// Whether it takes traffic [default: active]
    #[arg(long, value_parser = one_of::<AdminState>())]
    admin_state: Option<AdminState>,
    /// Largest outer IP packet to it, bytes [default: the MTU of the interface]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    #[arg(value_parser = within_or_unset(bounds::MTUS))]
    mtu: Option<u32>,
    /// Maximum new connections over all balancers, such as 200/s [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, allow_hyphen_values = true)]
    max_connection_rate: Option<f64>,
}

/// The pool is needed only if several pools have the address.
#[derive(Args, Debug)]
pub(crate) struct Address {
    /// Address
    #[arg(value_name = "ADDRESS", required_unless_present = "address")]
    #[arg(value_parser = parse_address)]
    backend: Option<String>,
    /// Address, as a flag
    #[arg(long, conflicts_with = "backend", value_parser = parse_address)]
    address: Option<String>,
    /// Pool; needed if several pools have the address
    #[arg(long, value_parser = parse_name)]
    pool: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct AddressOrFile {
    /// Address
    #[arg(value_name = "ADDRESS", required_unless_present_any = ["address", "file"])]
    #[arg(value_parser = parse_address)]
    backend: Option<String>,
    /// Address, as a flag
    #[arg(long, conflicts_with = "backend", value_parser = parse_address)]
    address: Option<String>,
    /// Pool; required for a new backend
    #[arg(long, value_parser = parse_name)]
    pool: Option<String>,
}

/// Refuses an empty address, which a script with an unset variable gives.
fn parse_address(text: &str) -> Result<String, String> {
    match text {
        "" => Err("the address is empty".into()),
        address => Ok(address.into()),
    }
}

#[derive(Args, Debug)]
pub(crate) struct BackendFilter {
    /// Only backends of this pool
    #[arg(long)]
    pool: Option<String>,
    /// Only backends in this region
    #[arg(long)]
    region: Option<String>,
    /// Only backends of which the configuration asks this
    #[arg(long, value_parser = one_of::<AdminState>())]
    admin_state: Option<AdminState>,
}

/// Adds what is known of each backend.
pub(super) fn add_figures(rows: &mut [Value], figures: &BackendFigures) {
    for row in rows {
        let [pool, address] = ["pool", "address"].map(|key| row[key].as_str().unwrap_or_default());
        let Some(known) = figures.get(pool, address).cloned() else { continue };
        row["state"] = known.state.into();
        row["share"] = known.share_cell().into();
        row["rate"] = known.rate_cell().into();
        row["overrides"] = known.overrides_cell().into();
    }
}

fn in_pool(pool: Option<&str>) -> PoolArgument<'_> {
    pool.map_or(PoolArgument::Missing, PoolArgument::Named)
}

impl Selector for BackendFilter {
    fn filter(&self) -> ListFilter {
        ListFilter {
            pool: self.pool.clone().unwrap_or_default(),
            region: self.region.clone().unwrap_or_default(),
            admin_state: to_number(self.admin_state),
        }
    }
}

impl Selector for Address {
    fn name(&self) -> Option<&str> {
        self.backend.as_deref().or(self.address.as_deref())
    }

    fn pool(&self) -> PoolArgument<'_> {
        in_pool(self.pool.as_deref())
    }
}

impl Selector for AddressOrFile {
    fn name(&self) -> Option<&str> {
        self.backend.as_deref().or(self.address.as_deref())
    }

    fn pool(&self) -> PoolArgument<'_> {
        in_pool(self.pool.as_deref())
    }
}

impl Fields<v1::Backend> for BackendFields {
    fn write(
        &self,
        patch: &mut Patch<v1::Backend>,
        _: Option<&v1::Backend>,
    ) -> Result<(), Failure> {
        patch.set("region", self.region.as_ref(), |b, region| b.region = region);
        patch.set("weight", self.weight.as_ref(), |b, weight| b.weight = Some(weight));
        patch.set("admin_state", self.admin_state.as_ref(), |b, state| {
            b.set_admin_state(state.to_api());
        });
        patch.set("mtu", self.mtu.as_ref(), |b, mtu| b.mtu = mtu);
        patch.set(
            "max_connection_rate_per_second",
            self.max_connection_rate.as_ref(),
            |b, rate| b.max_connection_rate_per_second = Some(rate),
        );
        Ok(())
    }
}

impl Kind for v1::Backend {
    const NAME: &'static str = "backend";
    const PLURAL: &'static str = "backends";
    const COMMAND: &'static str = "backend";
    const KEYS: (&'static str, &'static str) = ("backend", "backends");
    const COLUMNS: &'static [ListColumn] = &[
        ("POOL", |b| cell(&b["pool"])),
        ("ADDRESS", |b| cell(&b["address"])),
        ("REGION", |b| cell(&b["region"])),
        ("WEIGHT", |b| cell(&b["weight"])),
        ("STATE", |b| cell(&b["state"])),
        ("SHARE", |b| cell(&b["share"])),
        ("CONN/S", |b| cell(&b["rate"])),
        ("OVERRIDES", |b| cell(&b["overrides"])),
    ];
    const WIDE_COLUMNS: &'static [ListColumn] = &[
        ("ADMIN STATE", |b| cell(&b["admin_state"])),
        ("MTU", |b| cell(&b["mtu"])),
        ("MAX RATE", |b| cell(&b["max_connection_rate"])),
    ];
    type Filter = BackendFilter;
    type Target = Address;
    type TargetOrFile = AddressOrFile;
    type Fields = BackendFields;
    type File = document::Backend;
    type CreateForce = NoForce;
    type UpdateForce = NoForce;
    type DeleteForce = ForceArgument;

    async fn complete_rows(daemon: &mut DaemonClient, rows: &mut [Value]) -> Result<(), Failure> {
        if !rows.is_empty() {
            add_figures(rows, &BackendFigures::read(daemon).await?.1);
        }
        Ok(())
    }

    fn name(&self) -> &str {
        &self.address
    }

    fn rename(&mut self, name: &str) {
        self.address = name.into();
    }
}
