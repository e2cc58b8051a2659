//! How much the balancer's maps hold: what the settings ask for, and what is in force.

use std::collections::BTreeMap;

use aya::maps::MapData;
use lb_common::abi::{
    names::ARRAYS,
    sizes::{MapSizes, Size},
};

use super::{Component, MapsError, Pins, arrays, layout::MMAPABLE, opener::why};

/// The sizes that the daemon's settings ask for. What is not set is as the pinned maps have it, or else the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeSettings(BTreeMap<Size, u32>);

/// A setting that the pinned maps do not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingSize {
    pub size: Size,
    /// What the setting asks for.
    pub asked: u32,
    /// What the pinned maps have room for.
    pub in_force: u32,
}

impl SizeSettings {
    /// The same with a size set.
    #[must_use]
    pub fn with(mut self, size: Size, number: u32) -> Self {
        self.0.insert(size, number);
        self
    }

    /// The settings that differ from the sizes in force.
    ///
    /// Pinned maps of other sizes are kept: packets go by them, and they hold where open connections are. A balancer
    /// without daemon would be worse off than one whose maps are smaller than its settings say.
    pub fn waiting(&self, in_force: &MapSizes) -> Vec<WaitingSize> {
        let asked = self.0.iter().map(|(size, asked)| (*size, *asked, in_force.get(*size)));
        let waiting = asked.filter(|(_, asked, in_force)| asked != in_force);
        waiting.map(|(size, asked, in_force)| WaitingSize { size, asked, in_force }).collect()
    }

    /// The sizes for maps that are made now, if none is pinned.
    pub(super) fn sizes(&self) -> MapSizes {
        let set = self.0.iter();
        set.fold(MapSizes::DEFAULT, |sizes, (size, number)| sizes.with(*size, *number))
    }
}

impl FromIterator<(Size, u32)> for SizeSettings {
    fn from_iter<T: IntoIterator<Item = (Size, u32)>>(sizes: T) -> Self {
        Self(sizes.into_iter().collect())
    }
}

/// The sizes of a component's pinned maps. Those of a receiver are all constants.
///
/// # Errors
/// [`MapsError::Missing`]: none are pinned; or the pin cannot be opened, or is another build's.
pub(super) fn of_pinned(pins: &Pins, component: Component) -> Result<MapSizes, MapsError> {
    if component == Component::Receiver {
        return Ok(MapSizes::DEFAULT);
    }
    let path = pins.map(ARRAYS);
    let opened = MapData::from_pin(&path).and_then(|map| Ok((map.info()?, map)));
    let (info, map) = opened.map_err(|error| why(path.clone(), error))?;
    if info.map_flags() & MMAPABLE == 0 {
        let difference = "memory that cannot be mapped, expected BPF_F_MMAPABLE".into();
        return Err(MapsError::Layout { path, difference });
    }
    match arrays::sizes(&map) {
        Ok(Some(sizes)) => Ok(sizes),
        Ok(None) => {
            Err(MapsError::Layout { path, difference: "sizes that no settings make".into() })
        }
        Err(source) => Err(MapsError::Memory { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_and_differs_waits() {
        let settings: SizeSettings =
            [(Size::Services, 8), (Size::Ports, 65_536), (Size::Flows, 10_000)]
                .into_iter()
                .collect();
        let sizes = settings.sizes();
        assert_eq!([Size::Services, Size::Flows].map(|size| sizes.get(size)), [8, 10_000]);
        assert_eq!(sizes.get(Size::Pools), 4_096);
        assert_eq!(settings.waiting(&sizes), []);
        let in_force = MapSizes::DEFAULT.with(Size::Flows, 10_000).with(Size::Pools, 5);
        let waiting = [WaitingSize { size: Size::Services, asked: 8, in_force: 4_096 }];
        assert_eq!(settings.waiting(&in_force), waiting);
        assert_eq!(SizeSettings::default().waiting(&in_force), []);
    }
}
