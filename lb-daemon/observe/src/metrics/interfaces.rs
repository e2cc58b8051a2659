use std::fmt;

use super::{catalogue::*, sheet::Sheet};
use lb_inspect::stats::InterfaceStats;

pub(super) fn interfaces(sheet: &mut Sheet<'_>, interfaces: &[InterfaceStats]) -> fmt::Result {
    let packets = interfaces.iter().flat_map(|it| {
        [("rx", it.link.rx_packets), ("tx", it.link.tx_packets)]
            .map(|(direction, packets)| ([it.interface.as_str(), direction], packets.into()))
    });
    sheet.family(&INTERFACE_PACKETS, packets)?;
    let errors = interfaces.iter().flat_map(|it| {
        it.link.errors().map(|(counter, lost)| ([it.interface.as_str(), counter], lost.into()))
    });
    sheet.family(&INTERFACE_ERRORS, errors)?;
    let drops = interfaces.iter().flat_map(|it| {
        let of = |drops: &lb_inspect::stats::DriverDrops| drops.frames.into();
        let labels = |counter, stage| [it.interface.as_str(), counter, stage];
        it.driver_drops.iter().map(move |drops| (labels(&drops.counter, &drops.stage), of(drops)))
    });
    sheet.family(&INTERFACE_DRIVER_DROPS, drops)?;
    let traced = interfaces.iter().flat_map(|it| {
        let labels = |tracepoint| [it.interface.as_str(), tracepoint];
        it.traced_drops.iter().map(move |of| (labels(&of.tracepoint), of.frames.into()))
    });
    sheet.family(&INTERFACE_TRACED_DROPS, traced)?;
    let after = interfaces
        .iter()
        .filter_map(|it| Some(([it.interface.as_str()], it.dropped_after_program()?.into())));
    sheet.family(&INTERFACE_DROPPED_AFTER_PROGRAM, after)
}
