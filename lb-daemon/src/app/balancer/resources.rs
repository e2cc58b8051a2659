//! Everything that the host may refuse: files, sockets, interfaces, maps.

use std::{panic, path::Path, process, sync::Arc};

use super::{
    Shared,
    fleet::{FleetResources, open_fleet},
    listeners::ListenerResources,
    loops::LoopResources,
    sensors::SensorResources,
};
use crate::{
    app::{
        Failure, arguments::BalancerArguments, failure, interface_keeper::InterfaceKeeper,
        interfaces, log::Log, log_interfaces, sizes::report_waiting,
    },
    watchdog::Watchdog,
};
use lb_base::bytes::ByteSize;
use lb_control::health_state::HealthState;
use lb_maps::{Dataplane, Pins};
use lb_model::map_memory::Budget;
use lb_net::ConfiguredInterfaces;
use lb_publish::reconcile::{self, Reconciler};
use lb_store::Store;

/// What the loops, the sensors, the fleet and the listeners are started with.
pub(super) struct Resources {
    pub(super) loops: LoopResources,
    pub(super) sensors: SensorResources,
    pub(super) fleet: FleetResources,
    pub(super) listeners: ListenerResources,
}

impl Resources {
    /// Opens the packet path last: until then a refusal leaves packets as they are.
    pub(super) async fn open(
        arguments: &BalancerArguments,
        shared: &Shared,
        watchdog: &Watchdog,
        log: &Log,
    ) -> Result<Self, Failure> {
        let sources = arguments.sources()?;
        let mut options = arguments.options();
        let pins = Pins::new(&options.bpffs, lb_maps::Component::Balancer);
        let own_names =
            interfaces::wait_for(arguments.interfaces(), &pins, &watchdog.manager()).await?;
        let (given, own) = own_names.of(&options.interfaces);
        options.interfaces = own;
        let store = open_store(&arguments.state_dir, arguments.any_schema, log)?;
        let fleet = open_fleet(arguments, &pins)?;
        let listeners = ListenerResources::open(arguments, shared).await?;
        let vlans = interfaces::vlan_ids(&arguments.vlan).await?;
        interfaces::refuse_native_vlans(&options).await?;

        let Dataplane { attached, maps, member_maps } =
            Dataplane::open(&options).map_err(failure::packet_path)?;
        let attached = Arc::new(attached);
        log_interfaces(&attached);
        let keeper = InterfaceKeeper::new(Arc::clone(&attached), given, shared.conditions.clone())?;
        let sizes = maps.sizes();
        report_waiting(&shared.conditions, &options.sizes, &sizes);
        let configured = ConfiguredInterfaces { attached: attached.indices(), vlans };
        let settings = reconcile::Settings {
            interfaces: configured.clone(),
            icmp_errors: arguments.icmp_errors,
            icmp_echoes: arguments.icmp_echoes,
            loop_counters: shared.live.loops.member.clone(),
        };
        let (reconciler, member_words) = Reconciler::open(maps, member_maps, settings)
            .map_err(|error| Failure::about("maps", &error))?;
        let reader = reconciler.reader(&options.bpffs, Arc::clone(&attached));
        let reader = reader.map_err(|error| Failure::about("maps", &error))?;
        let map_memory = map_memory(&options.bpffs, arguments.map_memory_limit)?;
        // Since the pins are locked, no earlier daemon writes it any more.
        let health_state = HealthState::read(&arguments.socket, shared.conditions.clone()).await;
        Ok(Self {
            loops: LoopResources {
                store,
                reconciler,
                member_words,
                reader,
                sources,
                sizes,
                map_memory,
            },
            sensors: SensorResources { attached, keeper, configured, health_state },
            fleet,
            listeners,
        })
    }
}

/// Opens the store, with `any_schema` also one with a configuration of a newer schema. The database library panics on
/// some damaged files: such a panic is reported like any other refusal.
fn open_store(state_directory: &Path, any_schema: bool, log: &Log) -> Result<Store, Failure> {
    let (file, log) = (state_directory.join(lb_store::FILE), log.clone());
    let previous_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let cause = panic.payload_as_str().unwrap_or("its pages do not fit each other");
        let failure = Failure::new(format!("{}: is damaged: {cause}", file.display()))
            .hint("restore a good copy, or move the file away to start without a configuration");
        log.print_last(&failure.to_string());
        process::exit(1);
    }));
    let store = match any_schema {
        true => Store::open_any_schema(state_directory),
        false => Store::open(state_directory),
    };
    panic::set_hook(previous_hook);
    store.map_err(|error| Failure::from_chain(&error).hint(error.hint()))
}

/// The memory of the maps before any configuration, and its limit.
fn map_memory(bpffs: &Path, limit: Option<ByteSize>) -> Result<Budget, Failure> {
    let made = lb_maps::map_memory(bpffs).map_err(|error| Failure::about("maps", &error))?;
    let total = made.iter().map(|(_, bytes)| bytes).sum();
    match limit {
        Some(limit) if total > limit.0 => {
            let total = ByteSize(total);
            Err(Failure::new(format!(
                "maps: take {total} without any configuration, more than --map-memory-limit {limit}"
            ))
            .hint("raise the limit; or detach, and set lower sizes, such as --flows"))
        }
        limit => Ok(Budget { made, limit: limit.map(|limit| limit.0) }),
    }
}
