//! A receiver's exposition.

use std::{fmt, time::SystemTime};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use super::{build, catalogue::INTERFACE_ATTACHED, sheet::Sheet, verdicts};
use crate::{command::InterfaceStatus, dataplane::Role, stats::ReceiverStats};

/// All that is known of a receiver at one moment.
#[derive(Clone, Debug)]
pub struct ReceiverFacts {
    /// What its packet path counted.
    pub stats: ReceiverStats,
    /// Interfaces with its packet program.
    pub interfaces: Vec<InterfaceStatus>,
    /// When the daemon started.
    pub started: SystemTime,
}

impl Collector for ReceiverFacts {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (mut sheet, role) = (Sheet::new(encoder), Role::Receiver.to_string());
        verdicts(&mut sheet, &role, &self.stats.verdicts)?;
        let modes = self.interfaces.iter();
        let attached =
            modes.map(|it| ([role.as_str(), it.name.as_str()], it.mode.is_some().into()));
        sheet.family(&INTERFACE_ATTACHED, attached)?;
        build(&mut sheet, Role::Receiver, "", self.started)
    }
}
