use super::{PacketPath, State};
use lb_model::{Configuration, Encapsulation};

impl<P: PacketPath> State<P> {
    /// Tunnels to the backends of an IP version need a source address of that version.
    pub(super) fn check_source_addresses(&self, configuration: &Configuration) {
        let sources = &self.settings.sources;
        for (family, missing, v4) in
            [("IPv4", sources.v4.is_none(), true), ("IPv6", sources.v6.is_none(), false)]
        {
            let tunnels = configuration
                .pools
                .values()
                .filter(|pool| pool.encapsulation != Encapsulation::Direct);
            let mut addresses = tunnels.flat_map(|pool| pool.backends.keys());
            let subject = format!("{family} source address");
            if missing && addresses.any(|address| address.is_ipv4() == v4) {
                let cause = format!(
                    "missing: packets to {family} backends are dropped; give the interface \
                     an address, or set `source`, then restart"
                );
                self.settings.conditions.begin(&subject, &cause);
            } else {
                self.settings.conditions.end(&subject);
            }
        }
    }
}
