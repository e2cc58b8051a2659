use std::path::Path;

use serde::Serialize;

use super::VerdictStats;
use lb_maps::{MapsError, ReceiverMaps};

/// What a receiver did, and what it lets through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiverStats {
    /// Packets under each verdict, by its number.
    pub verdicts: Vec<VerdictStats>,
    /// Prefixes that tunnel packets may come from.
    pub sources: Vec<String>,
    /// VIPs that they may be for.
    pub vips: Vec<String>,
    /// Addresses where they end.
    pub endpoints: Vec<String>,
    /// UDP port where GUE ends; `None`: nowhere.
    pub gue_port: Option<u16>,
}

impl ReceiverStats {
    /// Reads the maps that a receiver has pinned under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout, or what the kernel
    /// answers.
    pub fn read(bpffs: &Path) -> Result<Self, MapsError> {
        let maps = ReceiverMaps::open(bpffs)?;
        let allowed = maps.allowed()?;
        Ok(Self {
            verdicts: maps.verdicts()?.into_iter().map(Into::into).collect(),
            sources: allowed.sources.iter().map(ToString::to_string).collect(),
            vips: allowed.vips.iter().map(ToString::to_string).collect(),
            endpoints: allowed.endpoints.iter().map(ToString::to_string).collect(),
            gue_port: allowed.gue_port.map(Into::into),
        })
    }
}
