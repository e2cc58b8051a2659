//! `spillway detach`: removes the programs and pins of a component, and with them the counters.

use lb_base::error_chain;
use lb_common::abi::LAYOUT_VERSION;
use lb_maps::{self, BpffsError, Detached, LockedPins, Pins};
use lb_net::{PROBE_LINK, ProbeLink};
use serde::Serialize;

use crate::{
    arguments::{Component, Options},
    client::block_on,
    commands::confirm::Confirmation,
    failure::{Exit, Failure},
    origin,
    output::{Report, count, print},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Component to detach
    #[arg(long, value_enum, default_value_t)]
    component: Component,
    /// Only remove the pins of this layout, the number in their directory's name (`balancer-v1`); by default the pins
    /// of all layouts, which other versions may have left
    #[arg(long, value_name = "NUMBER")]
    layout: Option<u32>,
    #[command(flatten)]
    confirmation: Confirmation,
}

#[derive(Serialize)]
struct Removed {
    component: &'static str,
    /// Layouts whose pins were removed.
    layouts: Vec<u32>,
    interfaces: Vec<String>,
    maps: u32,
}

/// # Errors
/// A daemon of the component runs, the user does not agree, something cannot be removed, or a server is given.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    origin::refuse_server(options, "detach")?;
    let component = lb_maps::Component::from(arguments.component);
    let found = Pins::layouts(&options.bpffs, component);
    let found = found.map_err(|error| {
        Failure::path(&options.bpffs.join("spillway"), &error).hint("run it as root")
    })?;
    let is_selected = |layout: &u32| arguments.layout.is_none_or(|only| only == *layout);
    let layouts: Vec<_> = found.iter().copied().filter(is_selected).collect();
    let failed = |error| failure(&error, component, &found);
    let lock = || LockedPins::lock(&options.bpffs, component, &layouts).map_err(failed);
    // Not locked while the user thinks: a daemon may start meanwhile, and then nothing is removed.
    let interfaces = Vec::from_iter(lock()?.interfaces().map_err(failed)?);
    if !interfaces.is_empty() {
        let names = interfaces.join(", ");
        let stops = [format!("the {component} no longer gets those of {names}")];
        block_on(arguments.confirmation.agree(&stops))?;
    }
    let detached = lock()?.remove().map_err(failed)?;
    // A daemon of another layout may still run and need its link.
    let is_all = detached.layouts == found;
    if component == lb_maps::Component::Balancer && is_all && !found.is_empty() {
        block_on(remove_probe_link())?;
    }
    let Detached { layouts, interfaces, maps } = detached;
    print(&Removed { component: component.name(), layouts, interfaces, maps }, options.output)
}

/// Removes what a killed daemon leaves behind of health checks through tunnels.
async fn remove_probe_link() -> Result<(), Failure> {
    let failed = |what: &str, error: &(dyn std::error::Error + 'static)| {
        Failure::new(Exit::Failure, format!("{what}: {}", error_chain::message(error)))
    };
    ProbeLink::remove().await.map_err(|error| failed(PROBE_LINK, &error))?;
    let removed = lb_maps::remove_filters_for_answers();
    removed.map_err(|error| failed("filters for the answers of health checks", &error))
}

fn failure(error: &BpffsError, component: lb_maps::Component, found: &[u32]) -> Failure {
    match error {
        BpffsError::InUse { path } => {
            let message =
                format!("{}: a spillwayd {component} is running with these pins", path.display());
            let stop = "stop the daemon first; packets go on without it until you detach";
            Failure::new(Exit::Conflict, message).hint(match found {
                [_] => stop.into(),
                _ => format!("{stop}; `--layout NUMBER` removes only the pins of another layout"),
            })
        }
        BpffsError::File { path, source } => Failure::path(path, source).hint("run it as root"),
        error => Failure::new(Exit::Failure, error_chain::message(error)),
    }
}

impl Report for Removed {
    fn table(&self) -> String {
        if self.layouts.is_empty() {
            return format!("{}: nothing was pinned\n", self.component);
        }
        let interfaces = match self.interfaces.is_empty() {
            true => "no interface".into(),
            false => self.interfaces.join(", "),
        };
        let maps = count(self.maps.into(), "map");
        let of = match self.layouts[..] {
            [LAYOUT_VERSION] => String::new(),
            [other] => format!(", of layout {other}"),
            ref all => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                format!(", of layouts {}", all.join(", "))
            }
        };
        format!("{}: detached from {interfaces}; {maps} removed{of}\n", self.component)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_one_line() {
        let removed = |layouts: &[u32], interfaces: &[&str], maps| Removed {
            component: "balancer",
            layouts: layouts.to_vec(),
            interfaces: interfaces.iter().map(ToString::to_string).collect(),
            maps,
        };
        let own = LAYOUT_VERSION;
        assert_eq!(
            removed(&[own], &["eth0", "eth1"], 15).table(),
            "balancer: detached from eth0, eth1; 15 maps removed\n"
        );
        assert_eq!(
            removed(&[own], &[], 1).table(),
            "balancer: detached from no interface; 1 map removed\n"
        );
        assert_eq!(
            removed(&[own + 6], &["eth0"], 15).table(),
            format!("balancer: detached from eth0; 15 maps removed, of layout {}\n", own + 6)
        );
        assert_eq!(
            removed(&[own, own + 1], &["eth0"], 30).table(),
            format!(
                "balancer: detached from eth0; 30 maps removed, of layouts {own}, {}\n",
                own + 1
            )
        );
        // Another build's directory may hold nothing that is counted.
        assert_eq!(
            removed(&[own], &[], 0).table(),
            "balancer: detached from no interface; 0 maps removed\n"
        );
        assert_eq!(removed(&[], &[], 0).table(), "balancer: nothing was pinned\n");
    }
}
