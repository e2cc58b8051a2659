//! The settings of a fleet: the table `[fleet]` of a settings file.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;
use lb_fleet::{FleetSettings, settings::EtcdTls};
use lb_model::Name;

use super::Failure;

const HINT: &str =
    "/usr/share/doc/spillway/docs/fleet.md describes the settings of a fleet, with an example";

/// How this balancer reaches its fleet. It takes part once `spillway fleet join` says so.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct FleetArguments {
    /// Name of the fleet whose configuration and capacities this balancer shares once it has joined
    #[arg(long, value_name = "NAME", value_parser = |text: &str| Name::new(text))]
    fleet_name: Option<Name>,
    /// Name of this balancer in the fleet
    #[arg(long, value_name = "NAME", value_parser = |text: &str| Name::new(text), requires = "fleet_name")]
    fleet_balancer: Option<Name>,
    /// Address and port of this host at which the other balancers of the fleet reach it
    #[arg(long, value_name = "ADDRESS:PORT", requires = "fleet_name")]
    fleet_address: Option<SocketAddr>,
    /// Server of etcd, such as https://192.0.2.1:2379; may be given several times
    #[arg(long, value_name = "URL", value_delimiter = ',', requires = "fleet_name")]
    fleet_etcd: Vec<String>,
    /// Certificate authorities of etcd and of the other balancers, PEM
    #[arg(long, value_name = "FILE", requires = "fleet_name")]
    fleet_tls_ca: Option<PathBuf>,
    /// Certificate of this balancer for etcd and the other balancers, with its name in the fleet as DNS name, PEM
    #[arg(long, value_name = "FILE", requires = "fleet_name")]
    fleet_tls_cert: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "fleet_name")]
    fleet_tls_key: Option<PathBuf>,
    /// Go without TLS: whoever reaches the addresses can change everything. Only for a network of trusted hosts
    #[arg(long, requires = "fleet_name")]
    fleet_insecure: bool,
}

impl FleetArguments {
    /// The settings, if there are any. `region` is this host's.
    ///
    /// # Errors
    /// One is missing, or they contradict each other.
    pub(super) fn settings(&self, region: Option<&Name>) -> Result<Option<FleetSettings>, Failure> {
        let Some(fleet) = &self.fleet_name else { return Ok(None) };
        let missing = |setting: &str| {
            Failure::new(format!("fleet {fleet}: --{setting} is missing")).hint(HINT)
        };
        let name = self.fleet_balancer.clone().ok_or_else(|| missing("fleet-balancer"))?;
        let address = self.fleet_address.ok_or_else(|| missing("fleet-address"))?;
        let settings = FleetSettings {
            fleet: fleet.clone(),
            endpoints: self.fleet_etcd.clone(),
            tls: self.tls()?,
            name,
            address,
            region: region.cloned(),
        };
        match settings.validate().first() {
            Some(mistake) => Err(Failure::new(mistake.to_string()).hint(HINT)),
            None => Ok(Some(settings)),
        }
    }

    fn tls(&self) -> Result<Option<EtcdTls>, Failure> {
        let files = [
            ("fleet-tls-ca", &self.fleet_tls_ca),
            ("fleet-tls-cert", &self.fleet_tls_cert),
            ("fleet-tls-key", &self.fleet_tls_key),
        ];
        if self.fleet_insecure {
            return match files.iter().find(|(_, file)| file.is_some()) {
                Some((setting, _)) => Err(Failure::new(format!(
                    "--fleet-insecure: contradicts --{setting}, which asks for TLS"
                ))
                .hint("remove one of the two")),
                None => Ok(None),
            };
        }
        let [authorities, certificate, key] = files.map(|(setting, file)| {
            file.clone().ok_or_else(|| {
                Failure::new(format!("--{setting} is missing: balancers of a fleet use TLS")).hint(
                    "set it, or --fleet-insecure for a fleet without certificates, which only a network of trusted hosts may \
                     have",
                )
            })
        });
        Ok(Some(EtcdTls { authorities: authorities?, certificate: certificate?, key: key? }))
    }
}
