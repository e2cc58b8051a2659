use lb_common::abi::limits::MAX_REGIONS_PER_POOL;
use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place},
    Names,
};
use crate::model::Region;

/// A region takes over from others, never from itself; two may overflow into each other.
pub(super) fn region(at: &Place, message: &v1::Region, regions: &Names) -> Result<Region, Invalid> {
    let overflow_to = regions.resolve_each(at, "overflow_to", &message.overflow_to)?;
    if overflow_to.iter().any(|name| name.as_str() == message.name) {
        return Err(at.wrong("overflow_to", "names the region itself"));
    }
    const MOST: usize = MAX_REGIONS_PER_POOL - 1;
    if overflow_to.len() > MOST {
        let cause = format!("names {} regions; at most {MOST} are allowed", overflow_to.len());
        return Err(at.wrong("overflow_to", cause));
    }
    Ok(Region { overflow_to })
}
