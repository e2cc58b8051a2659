//! Answers by backend and by time.

/// Counts of answers in equal stretches of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Length of a stretch, seconds.
    pub step: f64,
    /// Names of the backends.
    pub names: Vec<String>,
    /// For each stretch the answers of each backend, in the order of `names`.
    pub counts: Vec<Vec<u64>>,
}

/// Something that happened at a time.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Event {
    /// Seconds since the start.
    pub at: f64,
    /// What, in a few words.
    pub what: String,
}

impl Series {
    /// Sorts the times at which each backend answered (seconds since 1970) into stretches from
    /// `start` on; the last stretch has the last answer. Answers before `start` do not count.
    pub fn new(start: f64, step: f64, answers: &[(String, Vec<f64>)]) -> Self {
        let names = answers.iter().map(|(name, _)| name.clone()).collect();
        let mut counts = Vec::new();
        for (backend, (_, times)) in answers.iter().enumerate() {
            for time in times.iter().filter(|time| **time >= start) {
                let stretch = ((time - start) / step) as usize;
                if counts.len() <= stretch {
                    counts.resize(stretch + 1, vec![0; answers.len()]);
                }
                counts[stretch][backend] += 1;
            }
        }
        Self { step, names, counts }
    }

    /// The shares of the backends in a stretch, each in 0..=1; `None` where nobody answered.
    pub fn shares(&self, stretch: usize) -> Option<Vec<f64>> {
        let counts = self.counts.get(stretch)?;
        let total: u64 = counts.iter().sum();
        (total > 0).then(|| counts.iter().map(|n| *n as f64 / total as f64).collect())
    }

    /// Length of it all, seconds.
    pub fn length(&self) -> f64 {
        self.counts.len() as f64 * self.step
    }

    /// Answers of all backends in the stretch that had most.
    pub fn peak(&self) -> u64 {
        self.counts.iter().map(|counts| counts.iter().sum()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_fall_into_their_stretch() {
        let answers =
            [("a".to_owned(), vec![9.9, 10.0, 10.4, 11.2]), ("b".to_owned(), vec![10.49, 11.3])];
        let series = Series::new(10.0, 0.5, &answers);
        assert_eq!(series.counts, [[2, 1], [0, 0], [1, 1]]);
        assert_eq!(series.shares(2), Some(vec![0.5, 0.5]));
        assert_eq!(series.shares(1), None);
        assert_eq!(series.length(), 1.5);
        assert_eq!(series.peak(), 3);
    }
}
