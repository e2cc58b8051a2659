use lb_base::Namespace;
use lb_maps::directory::Directory;
use lb_model::{Name, ids::Ids};

/// The names of a generation's numbers, for the file that the command line reads.
pub fn directory(generation: u64, own_region: Option<&Name>, ids: &Ids) -> Directory {
    Directory {
        generation,
        network_namespace: Namespace::current().ok(),
        own_region: own_region.map(ToString::to_string),
        regions: ids.regions().map(|(name, index)| (index, name.to_string())).collect(),
        pools: ids.pools().map(|(name, index)| (index, name.to_string())).collect(),
        services: ids.services().map(|(name, index)| (index, name.to_string())).collect(),
    }
}
