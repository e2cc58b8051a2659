use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use lb_model::Name;

/// How long a region must take all before that is worth a line: clients decide how often one is full.
const QUIET: Duration = Duration::from_secs(60);

/// A region of a pool.
pub(super) type Key = (Name, Name);

/// Which regions lately sent new connections on, or refused some.
#[derive(Debug, Default)]
pub(super) struct Overflows(BTreeMap<Key, Instant>);

impl Overflows {
    /// Takes in who does so now. The answer is what is new: `true`, it began; `false`, it is over.
    /// Of one region there are two answers a minute at the most.
    pub(super) fn look(
        &mut self,
        now: Instant,
        full: impl Iterator<Item = Key>,
    ) -> Vec<(Key, bool)> {
        let mut news = Vec::new();
        for key in full {
            if self.0.insert(key.clone(), now).is_none() {
                news.push((key, true));
            }
        }
        let over: Vec<_> = self.0.extract_if(.., |_, last| now - *last >= QUIET).collect();
        news.extend(over.into_iter().map(|(key, _)| (key, false)));
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_that_is_full_now_and_then_has_one_line() {
        let key = |name: &str| (Name::new("web").unwrap(), Name::new(name).unwrap());
        let (mut overflows, start) = (Overflows::default(), Instant::now());
        let mut at = |second: u64, full: &[&str]| {
            let full: Vec<_> = full.iter().map(|name| key(name)).collect();
            overflows.look(start + Duration::from_secs(second), full.into_iter())
        };
        assert_eq!(at(0, &[]), []);
        assert_eq!(at(1, &["eu"]), [(key("eu"), true)]);
        assert_eq!(at(2, &["eu", "us"]), [(key("us"), true)]);
        for second in 3..40 {
            let full: &[&str] = if second % 2 == 0 { &["eu"] } else { &[] };
            assert_eq!(at(second, full), [], "{second}");
        }
        assert_eq!(at(61, &[]), []);
        assert_eq!(at(62, &[]), [(key("us"), false)]);
        assert_eq!(at(97, &[]), []);
        assert_eq!(at(98, &[]), [(key("eu"), false)]);
        assert_eq!(at(99, &["eu"]), [(key("eu"), true)]);
    }
}
