//! What is asked of a bench that serves, and what it answers: the bench of one revision asks the bench of another, so
//! what stands here only grows.
//!
//! `bench --serve --objects FOLDER` first prints a [`Hello`]. Then it reads a [`Question`] a line on its standard input
//! and prints an [`Answer`] a line, until its input ends. All are JSON. It makes a network namespace of its own.

use std::fmt;

use lb_tests::statistics::median;
use serde::{Deserialize, Serialize};

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// What can be asked.
    pub(crate) cases: Vec<CaseName>,
}

/// One case, as each revision calls it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CaseName {
    /// What is sent.
    pub(crate) case: String,
    /// Over how many flows.
    pub(crate) flows: u64,
    /// What its samples are.
    pub(crate) unit: Unit,
}

/// What the numbers of a sample are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// Nanoseconds a packet: less is better, and the difference to the floor counts.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Millions of packets a second: more is better, and the ratio to the floor counts.
    #[serde(rename = "mpps")]
    Mpps,
}

/// Asks for some rounds of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// The case.
    #[serde(flatten)]
    pub(crate) name: CaseName,
    /// Rounds.
    pub(crate) rounds: usize,
    /// Packets of a round; of a case whose flows must be remembered it may take fewer.
    pub(crate) packets: u32,
}

/// A line that answers a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// A sample a round.
    Samples(Vec<Sample>),
    /// Why there are none.
    Error(String),
}

/// What one round found, in the case's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// With the balancer.
    pub(crate) value: f64,
    /// With the floor.
    pub(crate) floor: f64,
}

/// The median of the values, and that of the floors.
pub(crate) fn medians(samples: &[Sample]) -> Sample {
    let middle =
        |part: fn(&Sample) -> f64| median(&mut samples.iter().map(part).collect::<Vec<_>>());
    Sample { value: middle(|sample| sample.value), floor: middle(|sample| sample.floor) }
}

impl fmt::Display for CaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} flows", self.case, self.flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that a revision may have sent: they must be read for good.
    #[test]
    fn the_lines_stay_as_they_are() {
        let name = CaseName { case: "udp".into(), flows: 7, unit: Unit::Nanoseconds };
        let hello = r#"{"cases":[{"case":"udp","flows":7,"unit":"ns"}]}"#;
        assert_eq!(serde_json::to_string(&Hello { cases: vec![name.clone()] }).unwrap(), hello);
        assert_eq!(
            serde_json::from_str::<Hello>(hello).unwrap().cases,
            std::slice::from_ref(&name)
        );

        let question = r#"{"case":"udp","flows":7,"unit":"ns","rounds":1,"packets":20}"#;
        let expected = Question { name, rounds: 1, packets: 20 };
        assert_eq!(serde_json::to_string(&expected).unwrap(), question);
        assert_eq!(serde_json::from_str::<Question>(question).unwrap(), expected);

        let answer = r#"{"samples":[{"value":120.0,"floor":55.0}]}"#;
        let expected = Answer::Samples(vec![Sample { value: 120.0, floor: 55.0 }]);
        assert_eq!(serde_json::to_string(&expected).unwrap(), answer);
        assert_eq!(serde_json::from_str::<Answer>(answer).unwrap(), expected);
        let error = serde_json::from_str::<Answer>(r#"{"error":"no such case"}"#).unwrap();
        assert_eq!(error, Answer::Error("no such case".into()));
    }

    #[test]
    fn values_and_floors_have_medians_of_their_own() {
        let sample = |value, floor| Sample { value, floor };
        let samples = [sample(1.0, 30.0), sample(9.0, 10.0), sample(2.0, 20.0)];
        assert_eq!(medians(&samples), sample(2.0, 20.0));
    }
}
