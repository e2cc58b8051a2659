//! A row of the table: what a frame is, and what must come of it.

use lb_tests::packets::{
    expected::Expected,
    fixture::{Form, HASH_KEY, INGRESS, MapFixture},
    flow_hash,
    frames::{self, Flow, Tunnel},
};

/// A row; `S` is what stands in the maps.
#[derive(Clone, Debug)]
pub struct Row<S> {
    /// What it is.
    pub what: String,
    /// What stands in the maps.
    pub fixture: S,
    /// The frame that comes in.
    pub frame: Vec<u8>,
    /// What must come of it.
    pub expected: Expected,
}

impl<S> Row<S> {
    /// A frame that is dropped.
    pub fn dropped(
        what: impl Into<String>,
        fixture: S,
        frame: Vec<u8>,
        verdict: &'static str,
    ) -> Self {
        let expected = Expected { verdict, frame: None, traffic: None };
        Self { what: what.into(), fixture, frame, expected }
    }

    /// A frame that the host gets as it came.
    pub fn passed(
        what: impl Into<String>,
        fixture: S,
        frame: Vec<u8>,
        verdict: &'static str,
    ) -> Self {
        let expected = Expected { verdict, frame: Some(frame.clone()), traffic: None };
        Self { what: what.into(), fixture, frame, expected }
    }

    /// A frame that the host gets as another one.
    pub fn changed(
        what: impl Into<String>,
        fixture: S,
        (frame, after): (Vec<u8>, Vec<u8>),
        verdict: &'static str,
    ) -> Self {
        let expected = Expected { verdict, frame: Some(after), traffic: None };
        Self { what: what.into(), fixture, frame, expected }
    }
}

impl Row<MapFixture> {
    /// A frame of `flow` that leaves for the member of a rank in a region. The frame tells itself
    /// whether it is TCP and a SYN without ACK, which counts as a connection.
    ///
    /// # Panics
    /// When the fixture has no such service or member.
    pub fn sent(
        what: impl Into<String>,
        fixture: MapFixture,
        (flow, frame): (&Flow, Vec<u8>),
        member: (usize, u16),
    ) -> Self {
        let (protocol, connections) = transport(&frame);
        Self::sent_as(what, fixture, (flow, protocol, connections), frame, member)
    }

    /// As [`Self::sent`], where the frame does not show at its first headers what flow it is of, by which
    /// protocol, and how many connections it asks for.
    ///
    /// # Panics
    /// When the fixture has no such service or member.
    pub fn sent_as(
        what: impl Into<String>,
        fixture: MapFixture,
        (flow, protocol, connections): (&Flow, u8, u64),
        frame: Vec<u8>,
        (region, rank): (usize, u16),
    ) -> Self {
        let what = what.into();
        let service =
            fixture.service(flow, protocol).unwrap_or_else(|| panic!("{what}: no service"));
        let member = fixture.regions[region].members[usize::from(rank)];
        let (gateway, interface) = fixture.next_hops[&member.next_hop];
        let hash = flow_hash::entropy(flow, protocol, service.flags, HASH_KEY);
        let tunnel = Tunnel {
            macs: (gateway, fixture.interfaces[&interface]),
            source: match member.address.is_ipv4() {
                true => hash.source_v4(fixture.sources.0, fixture.prefix_v4).into(),
                false => fixture.sources.1.into(),
            },
            destination: member.address,
            flow_label: hash.flow_label(),
        };
        let verdict = if interface == INGRESS { "transmitted" } else { "redirected" };
        let inner = frames::hopped(&frame);
        let after = match fixture.form {
            Form::IpInIp => tunnel.around(&inner),
            Form::Gue(port) => tunnel.around_in_gue(&inner, (hash.source_port(), port)),
            Form::Direct => [&tunnel.macs.0, &tunnel.macs.1, &inner[12..]].concat(),
        };
        let expected = Expected {
            verdict,
            frame: Some(after),
            traffic: Some((service.index, member.backend, connections)),
        };
        Self { what, fixture, frame, expected }
    }
}

/// Protocol of a whole frame without VLAN tags, and how many connections it asks for.
fn transport(frame: &[u8]) -> (u8, u64) {
    let ip = &frame[frames::ETHERNET..];
    let (protocol, header) = match ip[0] >> 4 {
        4 => (ip[9], usize::from(ip[0] & 15) * 4),
        _ => (ip[6], 40),
    };
    let asks = protocol == 6 && ip[header + 13] & 0x12 == 0x02;
    (protocol, asks.into())
}
