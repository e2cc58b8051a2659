//! From what is configured and who is healthy to the limits that the packet path keeps to, and from
//! what it counted to what is missing. Pure: no map is read or written here.

mod budget;
mod connections;
mod demand;
mod group;
mod limit;
mod reading;
#[cfg(test)]
mod tests;

pub use budget::{budget, shares};
pub use connections::Connections;
pub use demand::{Rates, missing_backends, per_second, utilisation};
pub use group::{Capacity, Member};
pub use limit::{Share, is_lower};
pub use reading::Reading;
