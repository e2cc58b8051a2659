//! The maps of a capture: the switch that says what is captured, and the ring of samples.

use std::{fmt, io, path::Path};

use aya::maps::{self, MapData, PerCpuArray, RingBuf};
use lb_common::abi::{
    arrays::Array,
    capture::{Capture, CaptureBuffer, Captured, SampleHead},
    limiter::{LimitWord, Limiter, SAMPLES},
    names,
    pod::{bytes_of, from_bytes},
};
use tokio::io::unix::AsyncFd;

use super::{
    ArrayView, Component, MapsError,
    maps::map_error,
    opener::Opener,
    raw::{MappingMut, watched},
};

/// Turns a capture on and off, and counts.
pub struct CaptureSwitch {
    settings: maps::Array<MapData, [u8; size_of::<Capture>()]>,
    buffers: PerCpuArray<MapData, [u8; size_of::<CaptureBuffer>()]>,
    limiters: ArrayView<Limiter, MappingMut>,
}

impl fmt::Debug for CaptureSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureSwitch").finish_non_exhaustive()
    }
}

/// The ring of samples; it has one reader.
pub struct Samples(AsyncFd<RingBuf<MapData>>);

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Samples").finish_non_exhaustive()
    }
}

/// A captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub head: SampleHead,
    /// The frame's first bytes as it came.
    pub frame: Vec<u8>,
    /// The frame's first bytes as it left; empty if it was dropped or left unchanged.
    pub left: Vec<u8>,
}

#[derive(Debug)]
pub struct CaptureMaps {
    pub switch: CaptureSwitch,
    pub samples: Samples,
}

impl CaptureMaps {
    /// Opens what a capture needs under a BPF file system.
    ///
    /// # Errors
    /// [`MapsError`] says which pin is missing, forbidden or of another layout.
    pub fn open(bpffs: &Path) -> Result<Self, MapsError> {
        let pins = Opener::new(bpffs, Component::Balancer)?;
        let ring = watched(pins.typed(names::SAMPLES)?)
            .map_err(|source| MapsError::Call { map: names::SAMPLES, source })?;
        let switch = CaptureSwitch {
            settings: pins.typed(names::CAPTURE)?,
            buffers: pins.typed(names::CAPTURE_BUFFER)?,
            limiters: pins.arrays()?.view(Array::Limiters),
        };
        Ok(Self { switch, samples: Samples(ring) })
    }
}

impl CaptureSwitch {
    /// Sets what is captured from now on; [`Capture::default`]: nothing.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set(&mut self, capture: &Capture) -> Result<(), MapsError> {
        let mut bytes = [0; size_of::<Capture>()];
        bytes.copy_from_slice(bytes_of(capture));
        self.settings.set(0, bytes, 0).map_err(map_error(names::CAPTURE))
    }

    /// Limits how many packets are captured, and resets the limiter.
    pub fn set_limit(&self, limit: LimitWord) {
        self.limiters.set(SAMPLES, &Limiter { limit: limit.0, ..Limiter::default() });
    }

    /// Counters over all captures.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn counted(&self) -> Result<Captured, MapsError> {
        let buffers = self.buffers.get(&0, 0).map_err(map_error(names::CAPTURE_BUFFER))?;
        let counted = buffers.iter().filter_map(|buffer| from_bytes::<CaptureBuffer>(buffer));
        Ok(counted.fold(Captured::default(), |sum, buffer| Captured {
            matched: sum.matched + buffer.counted.matched,
            left_out: sum.left_out + buffer.counted.left_out,
            lost: sum.lost + buffer.counted.lost,
        }))
    }
}

impl Samples {
    /// Waits for samples and returns 1 to `most`. Cancel safe: a dropped future takes no sample.
    ///
    /// # Errors
    /// What the kernel answers.
    pub async fn next(&mut self, most: usize) -> io::Result<Vec<Sample>> {
        loop {
            let mut ready = self.0.readable_mut().await?;
            let taken = take(ready.get_inner_mut(), most);
            if taken.len() < most {
                // The next sample wakes the reader again.
                ready.clear_ready();
            }
            if !taken.is_empty() {
                return Ok(taken);
            }
        }
    }

    /// Up to `most` samples that are in the ring now.
    pub fn there(&mut self, most: usize) -> Vec<Sample> {
        take(self.0.get_mut(), most)
    }
}

fn take(ring: &mut RingBuf<MapData>, most: usize) -> Vec<Sample> {
    let mut taken = Vec::new();
    while taken.len() < most {
        let Some(bytes) = ring.next() else { break };
        taken.extend(Sample::read(&bytes));
    }
    taken
}

impl Sample {
    /// A sample's bytes, which are in the ring as a multiple of eight.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, frames) = bytes.split_at_checked(size_of::<SampleHead>())?;
        let head = from_bytes::<SampleHead>(head)?;
        let (frame, rest) = frames.split_at_checked(head.captured as usize)?;
        let left = rest.get(..head.left_captured as usize)?;
        Some(Self { head, frame: frame.into(), left: left.into() })
    }
}
