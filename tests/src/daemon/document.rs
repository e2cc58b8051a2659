//! Configuration files, written as a user would.

use std::fmt::Write as _;
use std::net::IpAddr;

/// A configuration file to be.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Key of the flow hash, for tests that need the same places each time.
    pub hash_key: Option<&'static str>,
    /// Names of regions.
    pub regions: Vec<String>,
    /// Health checks.
    pub checks: Vec<Check>,
    /// Pools.
    pub pools: Vec<Pool>,
    /// Services.
    pub services: Vec<Service>,
}

/// A health check.
#[derive(Clone, Debug)]
pub struct Check {
    /// Name.
    pub name: String,
    /// Path that is asked for; none: a TCP connect.
    pub path: Option<String>,
    /// Port.
    pub port: u16,
    /// Interval and timeout, milliseconds.
    pub interval_ms: u32,
    /// Failures that take a backend out.
    pub fall: u32,
    /// Whether it goes to the VIP through the tunnel.
    pub is_tunnelled: bool,
}

/// A pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Names of its checks.
    pub checks: Vec<String>,
    /// Its backends.
    pub members: Vec<Member>,
}

/// A backend.
#[derive(Clone, Debug)]
pub struct Member {
    /// Address.
    pub address: IpAddr,
    /// Region.
    pub region: String,
    /// Weight.
    pub weight: u32,
}

/// A service.
#[derive(Clone, Debug)]
pub struct Service {
    /// Name.
    pub name: String,
    /// VIP.
    pub address: IpAddr,
    /// Port.
    pub port: u16,
    /// "tcp" or "udp".
    pub protocol: &'static str,
    /// Name of its pool.
    pub pool: String,
}

impl Document {
    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        if let Some(key) = self.hash_key {
            writeln!(out, "hash_key = \"{key}\"\n")?;
        }
        for region in &self.regions {
            writeln!(out, "[[region]]\nname = \"{region}\"\n")?;
        }
        for check in &self.checks {
            writeln!(out, "[[health_check]]\nname = \"{}\"\nport = {}", check.name, check.port)?;
            writeln!(out, "interval = \"{0}ms\"\ntimeout = \"{0}ms\"", check.interval_ms)?;
            writeln!(out, "fall = {}", check.fall)?;
            if check.is_tunnelled {
                writeln!(out, "via = \"tunnel\"")?;
            }
            match &check.path {
                Some(path) => writeln!(out, "http = {{ path = \"{path}\" }}\n")?,
                None => writeln!(out, "tcp = {{}}\n")?,
            }
        }
        for pool in &self.pools {
            writeln!(out, "[[pool]]\nname = \"{}\"", pool.name)?;
            // Backends fail again and again here. What holds do has scenarios of its own.
            writeln!(out, "hold_down = \"0s\"")?;
            writeln!(out, "health_checks = {:?}", pool.checks)?;
            for Member { address, region, weight } in &pool.members {
                writeln!(out, "[[pool.backend]]\naddress = \"{address}\"")?;
                writeln!(out, "region = \"{region}\"\nweight = {weight}")?;
            }
            writeln!(out)?;
        }
        for Service { name, address, port, protocol, pool } in &self.services {
            writeln!(out, "[[service]]\nname = \"{name}\"\naddress = \"{address}\"")?;
            writeln!(out, "port = {port}\nprotocol = \"{protocol}\"\npool = \"{pool}\"\n")?;
        }
        Ok(())
    }
}
