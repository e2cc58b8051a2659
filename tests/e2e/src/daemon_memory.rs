//! What a balancer's daemon and its maps take.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, ensure};

use lb_tests::daemon::Balancer;

/// Memory, in bytes.
#[derive(Debug)]
pub struct DaemonMemory {
    /// What the daemon has of its own.
    own: u64,
    /// Its maps by their ids.
    maps: BTreeMap<u64, u64>,
}

impl DaemonMemory {
    /// Of a daemon that runs.
    ///
    /// # Errors
    /// When it does not run.
    pub fn read(balancer: &mut Balancer) -> Result<Self> {
        let pid = balancer.running().context("the daemon does not run")?.id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("its status")?;
        let own = number(&status, "RssAnon:").context("no RssAnon")? * 1024;
        let mut maps = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/fdinfo")).context("its files")? {
            // A file may be closed before it is looked at.
            let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
            if let (Some(id), Some(bytes)) = (number(&text, "map_id:"), number(&text, "memlock:")) {
                maps.insert(id, bytes);
            }
        }
        Ok(Self { own, maps })
    }

    /// How much more the daemon has than before.
    ///
    /// # Errors
    /// When its maps are others, or take more or less.
    pub fn growth_since(&self, before: &Self) -> Result<u64> {
        ensure!(self.maps == before.maps, "maps: {:?}, before {:?}", self.maps, before.maps);
        Ok(self.own.saturating_sub(before.own))
    }
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
