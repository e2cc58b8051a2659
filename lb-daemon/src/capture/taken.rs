use std::{net::IpAddr, time::SystemTime};

use lb_common::abi::{
    service::{IPV4, IPV6, address_of},
    verdict::Verdict,
};

use super::clock::Clocks;
use lb_maps::Sample;

/// A packet that was taken down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Counts those of its capture from 1.
    pub number: u64,
    /// When it came.
    pub at: SystemTime,
    /// Index of the interface it came in on.
    pub interface: u32,
    /// Its first bytes as it came.
    pub frame: Vec<u8>,
    /// Length of the frame.
    pub length: u32,
    /// What became of it.
    pub verdict: Verdict,
    /// The backend that was chosen.
    pub backend: Option<IpAddr>,
    /// How it left, if it did.
    pub left: Option<Left>,
}

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Index of the interface.
    pub interface: u32,
    /// Its first bytes.
    pub frame: Vec<u8>,
    /// Length of the frame.
    pub length: u32,
}

impl Taken {
    /// `None`: a sample of another build's program.
    pub(super) fn new(number: u64, sample: Sample, clocks: &Clocks) -> Option<Self> {
        let Sample { head, frame, left } = sample;
        let version = [IPV4, IPV6].into_iter().find(|v| u32::from(*v) == head.backend_version);
        let by = if head.left_by == 0 { head.interface } else { head.left_by };
        let left = Left { interface: by, frame: left, length: head.left_length };
        Some(Self {
            number,
            at: clocks.day_of(head.time),
            interface: head.interface,
            frame,
            length: head.length,
            verdict: Verdict::from_number(head.verdict)?,
            backend: version.map(|version| address_of(&head.backend, version)),
            left: Some(left).filter(|left| left.length != 0),
        })
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
        let taken = |sample| Taken::new(9, sample, &clocks);
        let there = taken(sample.clone()).unwrap();
        assert_eq!((there.number, there.length, &*there.frame), (9, 1_500, &[1, 2][..]));
        assert_eq!(there.backend, Some("10.1.0.11".parse().unwrap()));
        let left = Left { interface: 3, frame: vec![3], length: 1_520 };
        assert_eq!(there.left, Some(left.clone()));

        let other = SampleHead { left_by: 8, ..head };
        let by_another = taken(Sample { head: other, ..sample.clone() }).unwrap();
        assert_eq!(by_another.left, Some(Left { interface: 8, ..left }));

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
}
