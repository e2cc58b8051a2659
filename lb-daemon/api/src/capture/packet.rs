//! A captured packet, with the time of day at which it came.

use std::{
    io,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use lb_common::abi::{
    clock::Nanoseconds,
    service::{IPV4, IPV6, address_of},
    verdict::Verdict,
};
use lb_maps::{Sample, clock};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Counts the packets of the capture, from 1.
    pub number: u64,
    /// Time of arrival.
    pub at: SystemTime,
    /// Index of the interface that it arrived on.
    pub interface: u32,
    /// Its first bytes on arrival.
    pub frame: Vec<u8>,
    /// Length of the frame.
    pub length: u32,
    pub verdict: Verdict,
    /// The chosen backend.
    pub backend: Option<IpAddr>,
    /// The frame as it left, if it did.
    pub left: Option<LeavingFrame>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingFrame {
    /// Index of the interface.
    pub interface: u32,
    /// Its first bytes.
    pub frame: Vec<u8>,
    /// Length of the frame.
    pub length: u32,
}

impl CapturedPacket {
    /// `None`: the sample is from another build's program.
    pub(super) fn new(number: u64, sample: Sample, clocks: &Clocks) -> Option<Self> {
        let Sample { head, frame, left } = sample;
        let version = [IPV4, IPV6].into_iter().find(|v| u32::from(*v) == head.backend_version);
        let by = if head.left_by == 0 { head.interface } else { head.left_by };
        let left = LeavingFrame { interface: by, frame: left, length: head.left_length };
        Some(Self {
            number,
            at: clocks.time_of_day(head.time),
            interface: head.interface,
            frame,
            length: head.length,
            verdict: Verdict::from_number(head.verdict)?,
            backend: version.map(|version| address_of(&head.backend, version)),
            left: Some(left).filter(|left| left.length != 0),
        })
    }
}

/// The packet path's clock and the time of day at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    monotonic: Nanoseconds,
    day: SystemTime,
}

impl Clocks {
    pub(super) fn now() -> io::Result<Self> {
        Ok(Self { monotonic: clock::now()?, day: SystemTime::now() })
    }

    /// The time of day of an earlier moment.
    fn time_of_day(&self, moment: Nanoseconds) -> SystemTime {
        self.day - Duration::from_nanos(self.monotonic.saturating_sub(moment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lb_common::abi::{capture::SampleHead, service::address_words};

    #[test]
    fn a_sample_is_told_with_what_there_is() {
        let clocks = Clocks::now().unwrap();
        let head = SampleHead {
            backend: address_words("10.1.0.11".parse().unwrap()),
            backend_version: 4,
            verdict: Verdict::Transmitted as u32,
            interface: 3,
            length: 1_500,
            captured: 2,
            left_length: 1_520,
            left_captured: 1,
            ..SampleHead::default()
        };
        let sample = Sample { head, frame: vec![1, 2], left: vec![3] };
        let taken = |sample| CapturedPacket::new(9, sample, &clocks);
        let there = taken(sample.clone()).unwrap();
        assert_eq!((there.number, there.length, &*there.frame), (9, 1_500, &[1, 2][..]));
        assert_eq!(there.backend, Some("10.1.0.11".parse().unwrap()));
        let left = LeavingFrame { interface: 3, frame: vec![3], length: 1_520 };
        assert_eq!(there.left, Some(left.clone()));

        let other = SampleHead { left_by: 8, ..head };
        let by_another = taken(Sample { head: other, ..sample.clone() }).unwrap();
        assert_eq!(by_another.left, Some(LeavingFrame { interface: 8, ..left }));

        let head = SampleHead {
            verdict: Verdict::NotOurs as u32,
            backend_version: 0,
            left_length: 0,
            ..head
        };
        let passed = taken(Sample { head, left: vec![], ..sample.clone() }).unwrap();
        assert_eq!((passed.backend, passed.left), (None, None));

        let head = SampleHead { verdict: 63, ..head };
        assert_eq!(taken(Sample { head, ..sample }), None);
    }

    #[test]
    fn moments_keep_their_distance() {
        let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let clocks = Clocks { monotonic: 5_000_000_007, day };
        let nanoseconds =
            |moment| day.duration_since(clocks.time_of_day(moment)).unwrap().as_nanos();
        assert_eq!(nanoseconds(5_000_000_007), 0);
        assert_eq!(nanoseconds(5_000_000_006), 1);
        assert_eq!(nanoseconds(1_000_000_000), 4_000_000_007);
    }
}
