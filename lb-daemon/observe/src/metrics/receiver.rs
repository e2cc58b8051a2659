//! A receiver's exposition.

use std::{fmt, time::SystemTime};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use super::{
    build,
    catalogue::{CONDITIONS, INTERFACE_ATTACHED, LOG_DROPPED, WAITING_SETTINGS},
    credentials,
    sheet::Sheet,
    verdicts,
};
use lb_inspect::stats::ReceiverStats;
use lb_maps::Component;
use lb_publish::reconcile::InterfaceStatus;
use lb_secure::tls::Validities;

/// All that is known of a receiver at one moment.
#[derive(Clone, Debug)]
pub struct ReceiverFacts {
    /// What its packet path counted.
    pub stats: ReceiverStats,
    /// Interfaces with its packet program.
    pub interfaces: Vec<InterfaceStatus>,
    /// How many things are wrong though the daemon goes on.
    pub conditions: usize,
    /// How many changed settings wait for the next start.
    pub waiting_settings: usize,
    /// Entries of the log that were dropped.
    pub log_dropped: u64,
    /// Its certificate.
    pub certificates: Validities,
    /// Requests over HTTP without a valid token.
    pub http_refused: u64,
    /// The digest of its packet program; `None`: this build has none.
    pub packet_program: Option<u64>,
    /// When the daemon started.
    pub started: SystemTime,
}

impl Collector for ReceiverFacts {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (mut sheet, component) = (Sheet::new(encoder), Component::Receiver.to_string());
        verdicts(&mut sheet, &component, &self.stats.verdicts)?;
        let modes = self.interfaces.iter();
        let attached =
            modes.map(|it| ([component.as_str(), it.name.as_str()], it.mode.is_some().into()));
        sheet.family(&INTERFACE_ATTACHED, attached)?;
        sheet.one(&CONDITIONS, self.conditions.into())?;
        sheet.one(&WAITING_SETTINGS, self.waiting_settings.into())?;
        credentials(&mut sheet, self.certificates, self.http_refused)?;
        sheet.one(&LOG_DROPPED, self.log_dropped.into())?;
        build(&mut sheet, Component::Receiver, "", self.started, self.packet_program)
    }
}
