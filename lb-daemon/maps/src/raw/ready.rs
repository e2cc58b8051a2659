use std::io;

use aya::maps::{MapData, RingBuf};
use tokio::io::{Interest, unix::AsyncFd};

/// A ring that can be waited for, in the context of a runtime.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn watched(ring: RingBuf<MapData>) -> io::Result<AsyncFd<RingBuf<MapData>>> {
    // SAFETY: the ring owns its descriptor, which stays open and the same for as long as it lives.
    let watched = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) };
    watched.map_err(Into::into)
}
