//! From what is configured and who is healthy to the limits that the packet path keeps to. Pure: no
//! map is read or written here.

mod budget;
mod group;
mod limit;
#[cfg(test)]
mod tests;

pub use budget::{budget, shares};
pub use group::{Capacity, Member};
pub use limit::{Share, is_lower};
