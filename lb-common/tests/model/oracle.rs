//! What is known of a connection without knowing how the balancer works: which host answered it.

use lb_common_fake::fixture::SECOND;

/// A SYN is repeated, and a SYN-ACK answered, within this time of the SYN: a little less than what a
/// half-open cell lasts (60 units of 1.0737 s, the first of them begun).
pub(crate) const HANDSHAKE: u64 = 63 * SECOND;
/// A connection that was used within this time is not moved.
pub(crate) const USED: u64 = 600 * SECOND;

/// One that a side has ended is not moved within this time: two minutes, less what packets are apart that renew it.
pub(crate) const ENDED: u64 = 110 * SECOND;

/// A connection of a client, of which at least one SYN was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// Its SYN's number.
    pub(crate) number: u32,
    /// The next number of its stream.
    pub(crate) next: u32,
    /// Backend that has its last SYN: the one whose SYN-ACK the client goes on with.
    pub(crate) host: u32,
    /// That host died meanwhile, or a displaced entry was refused: it may go anywhere.
    pub(crate) lost: bool,
    /// Whether the handshake is over.
    pub(crate) open: bool,
    /// Whether its SYN may have gone home without a trace: no limits, and the displaced check was off.
    pub(crate) untraced: bool,
    /// Whether a FIN or RST was sent.
    pub(crate) ended: bool,
    /// Its last packet that counts.
    pub(crate) used: u64,
}

/// A flow of datagrams is forgotten after 56 units of 1.0737 s, the first of them begun.
pub(crate) const IDLE_UNITS: u32 = 56;
/// One that was used within this time is not moved.
pub(crate) const IDLE: u64 = 59 * SECOND;

/// A flow of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Backend that got the first one.
    pub(crate) host: u32,
    /// That one died meanwhile, or another flow may have its cell.
    pub(crate) lost: bool,
    /// Whether it had two, so that no other flow may take its cell.
    pub(crate) kept: bool,
    /// When the last one came.
    pub(crate) used: u64,
}

/// The connection that a port had before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Its next number at its end.
    pub(crate) end: u32,
    /// Whether the one of now begins far from there.
    pub(crate) far: bool,
    /// Whether its handshake ended, and nothing was refused it.
    pub(crate) whole: bool,
}

/// A port's connections.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Port {
    pub(crate) now: Option<Connection>,
    pub(crate) before: Option<Before>,
    /// When its last SYNs came, forged ones as well.
    pub(crate) recent: [u64; 3],
    /// When the last forged one came.
    pub(crate) forged: Option<u64>,
    /// When the last one came that began close above the connection before.
    pub(crate) close: Option<u64>,
}

impl Connection {
    /// Whether a packet of it now must go to its host.
    pub(crate) fn binds(&self, now: u64) -> bool {
        let life = match (self.open, self.ended) {
            (true, true) => ENDED,
            (true, false) => USED,
            (false, _) => HANDSHAKE,
        };
        !self.lost && now - self.used <= life
    }
}
