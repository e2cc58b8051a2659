//! The settings that size the maps.

use clap::{Args, builder::RangedI64ValueParser, value_parser};
use lb_base::conditions::{Conditions, MAP_SIZES};
use lb_common::abi::sizes::{MapSizes, Size};
use lb_maps::{SizeSettings, WaitingSize};
use lb_model::room::HOW_TO_RESIZE;

/// A pinned map keeps its size, whatever these say.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct SizeArguments {
    /// Most services in a configuration [default: 4096, or as the pinned maps have it; the same holds for the sizes
    /// below]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::Services))]
    services: Option<u32>,
    /// Most ports of all services; any_port and fragments are one each [default: 65536]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::Ports))]
    ports: Option<u32>,
    /// Most pools [default: 4096]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::Pools))]
    pools: Option<u32>,
    /// Most groups, which are a pool's backends in one region [default: 4096]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::Groups))]
    groups: Option<u32>,
    /// Most distinct addresses of backends [default: 16384]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::Backends))]
    backends: Option<u32>,
    /// Most backends in all pools, each counted once for each pool that has it [default: 32768]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::PoolBackends))]
    pool_backends: Option<u32>,
    /// Most backends with a max_connection_rate, counted in the same way [default: 16384]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::LimitedBackends))]
    limited_backends: Option<u32>,
    /// Cells of the flow table, 16 bytes each, made a power of two: three for each connection away from home and each
    /// flow of a tracked UDP service [default: 1048576]
    #[arg(long, value_name = "NUMBER", value_parser = range(Size::Flows))]
    flows: Option<u32>,
}

impl SizeArguments {
    pub(super) fn settings(&self) -> SizeSettings {
        let set = Size::ALL.into_iter().map(|size| (size, self.get(size)));
        set.filter_map(|(size, number)| Some((size, number?))).collect()
    }

    fn get(&self, size: Size) -> Option<u32> {
        match size {
            Size::Services => self.services,
            Size::Ports => self.ports,
            Size::Pools => self.pools,
            Size::Groups => self.groups,
            Size::Backends => self.backends,
            Size::PoolBackends => self.pool_backends,
            Size::LimitedBackends => self.limited_backends,
            Size::Flows => self.flows,
        }
    }
}

fn range(size: Size) -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(i64::from(size.least())..=i64::from(size.most()))
}

/// Begins a condition if pinned maps have other sizes than the settings say.
pub(super) fn report_waiting(conditions: &Conditions, asked: &SizeSettings, in_force: &MapSizes) {
    let waiting = asked.waiting(in_force);
    if let Some(cause) = cause(&waiting) {
        conditions.begin(&MAP_SIZES, &cause);
    }
}

/// `services = 5000 waits, 4096 is in force: …`
fn cause(waiting: &[WaitingSize]) -> Option<String> {
    let each = waiting.iter().map(|WaitingSize { size, asked, in_force }| {
        format!("{} = {asked} waits, {in_force} is in force", size.setting())
    });
    let each: Vec<_> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "{}: the pinned maps keep their sizes; to change them, {HOW_TO_RESIZE}",
            each.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::arguments::Arguments;

    #[test]
    fn each_size_is_a_setting_whose_help_names_the_default() {
        let command = Arguments::command();
        let balancer = command.find_subcommand("balancer").unwrap();
        for size in Size::ALL {
            let argument =
                balancer.get_arguments().find(|it| it.get_long() == Some(size.setting()));
            let help = argument.unwrap().get_help().unwrap().to_string();
            assert!(help.contains(&format!("[default: {}", size.default_value())), "{help}");
        }
    }

    #[test]
    fn what_waits_is_named_with_what_to_do() {
        let conditions = Conditions::default();
        let asked: SizeSettings =
            [(Size::Services, 5_000), (Size::Ports, 70_000)].into_iter().collect();
        report_waiting(&conditions, &asked, &MapSizes::DEFAULT.with(Size::Ports, 70_000));
        let now = conditions.now();
        let [condition] = now.as_slice() else { panic!("{now:?}") };
        assert_eq!(condition.subject, "map sizes");
        assert_eq!(
            condition.cause,
            "services = 5000 waits, 4096 is in force: the pinned maps keep their sizes; to change them, stop \
             the daemon, run `spillway detach` and start the daemon again: until then packets are not \
             balanced, and displaced connections break"
        );
        report_waiting(&Conditions::default(), &SizeSettings::default(), &MapSizes::DEFAULT);
        assert_eq!(cause(&[]), None);
    }
}
