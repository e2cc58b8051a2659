use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_TX};
use lb_common::abi::verdict::Verdict;

/// The end of a frame's way, as one number that functions hand on: `{action 8, verdict 8, 0}` from the low end.
#[derive(Clone, Copy)]
pub(in crate::balancer) struct Disposition(pub(in crate::balancer) u32);

impl Disposition {
    #[inline(always)]
    pub(super) const fn new(verdict: Verdict, action: u32) -> Self {
        Self(action | (verdict as u32) << 8)
    }

    /// What the driver does.
    #[inline(always)]
    pub(in crate::balancer) const fn action(self) -> u32 {
        self.0 & 0xff
    }

    /// Whether the frame leaves by the interface that it came in by.
    #[inline(always)]
    pub(in crate::balancer) const fn is_sent_back(self) -> bool {
        self.action() == XDP_TX
    }

    /// Number of the verdict.
    #[inline(always)]
    pub(in crate::balancer) const fn verdict(self) -> u32 {
        (self.0 >> 8) & 0x3f
    }

    /// Whether the frame goes out again.
    #[inline(always)]
    pub(in crate::balancer) const fn leaves(self) -> bool {
        !matches!(self.action(), XDP_PASS | XDP_DROP)
    }
}
