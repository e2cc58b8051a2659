//! Verdicts: what became of a packet. The number is the counter's index, the name is the metric's
//! label, the text is the document. Numbers are never used again.

/// What the driver does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It goes to the host's own stack, unchanged unless the verdict says otherwise.
    Pass,
    /// It is dropped.
    Drop,
    /// It leaves the interface it came in on.
    Transmit,
    /// It leaves by another interface.
    Redirect,
}

macro_rules! verdicts {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal, $label:literal, $action:ident;)+) => {
        /// Every way a packet can leave the balancer or the receiver.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Verdict {
            $($(#[doc = $doc])+ $name = $number,)+
        }

        impl Verdict {
            /// All verdicts, by number.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The label of metrics and commands.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $label,)+ }
            }

            /// What it means, one or more sentences.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc, "\n"),+),)+ }
            }

            /// What the driver does with the packet.
            #[inline(always)]
            pub const fn action(self) -> Action {
                match self { $(Self::$name => Action::$action,)+ }
            }

            /// Whether only receivers have packets of it: so its meaning begins then.
            pub fn is_receivers(self) -> bool {
                self.meaning().trim_start().starts_with("Receiver:")
            }

            /// The verdict with a number.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$name),)+ _ => None }
            }
        }
    };
}

verdicts! {
    /// Not IP, or a kind of Ethernet frame the balancer leaves alone (one with more than two VLAN tags included).
    NotIp = 0, "not_ip", Pass;
    /// No service has this address, port and protocol, and the packet is left to the host.
    NotOurs = 1, "not_ours", Pass;
    /// For a VIP, but neither TCP nor UDP, nor an ICMP error about what a backend sent by one of them, nor a ping; left to
    /// the host.
    OtherProtocol = 2, "other_protocol", Pass;
    /// On its way to a backend, back out of the interface it came in on.
    Transmitted = 3, "transmitted", Transmit;
    /// On its way to a backend, out of another interface, or out of the bond that it came in on a port of.
    Redirected = 4, "redirected", Redirect;
    /// The frame ends before its headers do, or an IP length contradicts the frame.
    Malformed = 5, "malformed", Drop;
    /// A TCP segment with SYN and FIN, or SYN and RST.
    InvalidTcpFlags = 6, "invalid_tcp_flags", Drop;
    /// A fragment for a service that takes only whole packets.
    Fragment = 7, "fragment", Drop;
    /// A fragment that bears no ports, or an ICMP error about one, and no service of the address that takes
    /// fragments.
    LaterFragment = 8, "later_fragment", Pass;
    /// TTL or hop limit would reach zero by forwarding, and no ICMP error was sent: the packet is an ICMP error itself or a
    /// fragment other than the first, its IPv4 header has a wrong checksum, or the limit of such errors is reached or zero.
    HopLimitExceeded = 9, "hop_limit_exceeded", Drop;
    /// The pool of the service has no member that may have the packet.
    NoBackend = 10, "no_backend", Drop;
    /// Members that may have the packet exist, but none has a resolved next hop; or the packet is of an open connection,
    /// whose backend lost its next hop a moment ago.
    NextHopUnresolved = 11, "next_hop_unresolved", Drop;
    /// The packet does not fit the backend's MTU after encapsulation, and no ICMP error was sent: the packet is of IPv4
    /// without DF, is an ICMP error itself or has an IPv4 header with a wrong checksum, or the limit of such errors is reached
    /// or zero.
    TooLarge = 12, "too_large", Drop;
    /// The balancer has no source address of the tunnel's IP version.
    NoSourceAddress = 13, "no_source_address", Drop;
    /// The driver left less room in front of the packet than what goes there takes, which is 56 bytes at most.
    NoHeadroom = 14, "no_headroom", Drop;
    /// The interface of the next hop is not in the device map.
    RedirectFailed = 15, "redirect_failed", Drop;
    /// A map entry that another names is missing: a defect or a half-made map.
    Inconsistent = 16, "inconsistent", Drop;
    /// Receiver: the outer header was taken off and the inner packet handed to the host.
    Decapsulated = 17, "decapsulated", Pass;
    /// Receiver: not a tunnel packet to one of the VIPs; untouched.
    NotTunnel = 18, "not_tunnel", Pass;
    /// Receiver: a tunnel packet for a VIP from a source that is not allowed; untouched.
    SourceNotAllowed = 19, "source_not_allowed", Pass;
    /// Receiver: a tunnel packet from a balancer whose inner destination is no VIP of this host; untouched.
    VipNotAllowed = 20, "vip_not_allowed", Pass;
    /// Receiver: the inner header is cut short or contradicts the outer length, or has more extension headers
    /// than balancers read.
    InnerMalformed = 21, "inner_malformed", Drop;
    /// A new connection to a service that rejects when full, and every region is.
    RegionsFull = 22, "regions_full", Drop;
    /// The packet does not fit the backend's MTU after encapsulation; an ICMP error told its sender how much does.
    AnsweredTooLarge = 23, "answered_too_large", Transmit;
    /// An echo request (ping) for a VIP, answered.
    AnsweredEcho = 24, "answered_echo", Transmit;
    /// An echo request for a VIP, beyond the limit of answers, which may be zero.
    EchoLimited = 25, "echo_limited", Drop;
    /// Receiver: a router on the way marked the outer packet as congested (ECN), and the inner one's sender
    /// knows no marks: the mark stands for a loss (RFC 6040, 4.2).
    NotEcnCapable = 26, "not_ecn_capable", Drop;
    /// Receiver: the TTL of the inner packet is 0 (RFC 2003, 3.1).
    InnerExpired = 27, "inner_expired", Drop;
    /// Receiver: what a balancer sent to a VIP is a tunnel packet again, which balancers never send.
    InnerTunnel = 28, "inner_tunnel", Drop;
    /// Receiver: the inner packet says it comes from the tunnel's end or from a VIP, which are this host's: an
    /// answer would not leave it.
    InnerFromHere = 29, "inner_from_here", Drop;
    /// Receiver: a tunnel packet from a balancer to a VIP of this host, where no tunnel ends; untouched.
    TunnelToVip = 30, "tunnel_to_vip", Pass;
    /// Receiver: GUE from a balancer's address, but of a kind that balancers do not send: another variant than
    /// 0, a control message, with flags or optional fields, or with something else than IP in it; untouched.
    GueNotOurs = 31, "gue_not_ours", Pass;
    /// Receiver: a tunnel packet from a balancer that was damaged on the way: the checksum of its outer IPv4 header is
    /// wrong (RFC 1122, 3.2.1.2), or GUE's UDP checksum is neither zero nor right.
    OuterChecksum = 32, "outer_checksum", Drop;
    /// Receiver: what was in GUE has a wrong checksum of its own, which the host might take for right because
    /// the outer one is.
    InnerChecksum = 33, "inner_checksum", Drop;
    /// Receiver: a tunnel packet from a balancer for a VIP, to an address that is neither this host's nor a listed
    /// tunnel endpoint; untouched, for the host to route on.
    TunnelNotLocal = 34, "tunnel_not_local", Pass;
    /// An IP packet in a frame to a broadcast or multicast MAC: it is the host's (RFC 1122, 3.3.6).
    BroadcastFrame = 35, "broadcast_frame", Pass;
    /// A packet for a service, or a ping of a VIP, from a source that no router forwards: 0.0.0.0/8, 127.0.0.0/8,
    /// 169.254.0.0/16, 224.0.0.0/3, ::, ::1, ::ffff:0:0/96, fe80::/10, ff00::/8 (RFC 1812, 5.3.7; RFC 3927, 2.7; RFC 4291,
    /// 2.5; RFC 6890), or from the VIP itself.
    MartianSource = 36, "martian_source", Drop;
    /// Receiver: the inner packet has a source that no router forwards, see `martian_source`.
    InnerMartian = 37, "inner_martian", Drop;
    /// TTL or hop limit would reach zero by forwarding; an ICMP error told its sender (RFC 1812, 5.3.1; RFC 4443, 3.3).
    AnsweredTimeExceeded = 38, "answered_time_exceeded", Transmit;
    /// An echo request for a VIP that was damaged on the way: its ICMP checksum or that of its IPv4 header is wrong. Also
    /// one that does not end in the first 32767 bytes of its frame, whose checksum is not computed.
    EchoChecksum = 39, "echo_checksum", Drop;
    /// For a VIP, but no service of it takes such a packet (port, protocol, or fragment without ports), and `unserved` of the
    /// VIP says `drop`.
    Unserved = 40, "unserved", Drop;
}

/// Entries of the verdict counter map: room for later verdicts without a new layout.
pub const VERDICT_SLOTS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_have_verdicts_of_their_own() {
        for of_receivers in [Verdict::Decapsulated, Verdict::NotTunnel, Verdict::InnerChecksum] {
            assert!(of_receivers.is_receivers(), "{}", of_receivers.name());
        }
        for of_balancers in [Verdict::NotIp, Verdict::Transmitted, Verdict::RegionsFull] {
            assert!(!of_balancers.is_receivers(), "{}", of_balancers.name());
        }
    }
}
