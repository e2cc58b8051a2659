//! How many checks may be under way at once.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// More would only lengthen the queues of the network card.
const MOST: u64 = 4096;

/// Descriptors that a check may hold at once: its connection, and two to ask a silent host.
const EACH: u64 = 3;

/// Checks that may be under way at once: as many as half the file descriptors allow; the other half
/// is for the rest of the daemon. Raises the soft limit, which is low for the sake of programs that
/// use `select`, as far as that needs and the hard one lets it.
pub(super) fn checks_at_once() -> usize {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    let wanted = (2 * EACH * MOST).min(hard);
    let limit = match soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok() {
        true => wanted,
        false => soft,
    };
    usize::try_from(limit / 2 / EACH).map_or(1, |half| half.clamp(1, MOST as usize))
}
