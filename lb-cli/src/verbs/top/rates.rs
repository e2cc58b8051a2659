//! What is so now, and how fast it changes, by two readings.

use std::{collections::HashMap, hash::Hash};

use spillway_proto::v1;

use super::reading::{News, Reading};

/// The last reading with the rates since the one before.
#[derive(Clone, Debug)]
pub(super) struct Now {
    pub(super) reading: Reading,
    /// Seconds that rates are of; `None`: there is one reading only, and no rate.
    pub(super) seconds: Option<f64>,
    /// Of services, by endpoint and protocol.
    pub(super) services: HashMap<(String, String), Speed>,
    /// Of backends, by address.
    pub(super) backends: HashMap<String, Speed>,
    /// Of packets under verdicts, by name.
    pub(super) verdicts: HashMap<String, f64>,
    /// Of regions, by pool and region.
    pub(super) regions: HashMap<(String, String), v1::RegionRates>,
    /// Why the daemon does not answer; `None`: it does.
    pub(super) silent: Option<String>,
}

/// Traffic a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Speed {
    pub(super) packets: f64,
    pub(super) bytes: f64,
    pub(super) connections: f64,
}

impl Now {
    /// What one reading says.
    pub(super) fn first(reading: Reading) -> Self {
        Self {
            reading,
            seconds: None,
            services: HashMap::new(),
            backends: HashMap::new(),
            verdicts: HashMap::new(),
            regions: HashMap::new(),
            silent: None,
        }
    }

    /// Takes the next reading, or that there is none.
    pub(super) fn take(&mut self, news: News) {
        let after = match news {
            Err(why) => {
                self.silent = Some(why);
                return;
            }
            Ok(reading) => *reading,
        };
        let before = &self.reading;
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let per = |before: u64, after: u64| Some(after.checked_sub(before)? as f64 / seconds);
        let speed = |before: &v1::Traffic, after: &v1::Traffic| {
            Some(Speed {
                packets: per(before.packets, after.packets)?,
                bytes: per(before.bytes, after.bytes)?,
                connections: per(before.connections, after.connections)?,
            })
        };
        let traffic = |before: &Option<v1::Traffic>, after: &Option<v1::Traffic>| {
            speed(before.as_ref()?, after.as_ref()?)
        };
        let next = Self {
            seconds: Some(seconds),
            services: both(
                &before.stats.services,
                &after.stats.services,
                |s| (s.endpoint.clone(), s.protocol.clone()),
                |before, after| traffic(&before.traffic, &after.traffic),
            ),
            backends: both(
                &before.stats.backends,
                &after.stats.backends,
                |b| b.backend.clone(),
                |before, after| traffic(&before.traffic, &after.traffic),
            ),
            verdicts: both(
                &before.stats.verdicts,
                &after.stats.verdicts,
                |v| v.verdict.clone(),
                |before, after| per(before.packets, after.packets),
            ),
            regions: both(
                &before.stats.groups,
                &after.stats.groups,
                |g| (g.pool.clone(), g.region.clone()),
                |before, after| {
                    let (before, after) = (before.counters.as_ref()?, after.counters.as_ref()?);
                    Some(v1::RegionRates {
                        offered: per(before.offered, after.offered)?,
                        admitted: per(before.admitted, after.admitted)?,
                        spilled_in: per(before.spilled_in, after.spilled_in)?,
                        spilled_out: per(before.spilled_out, after.spilled_out)?,
                        refused: per(before.refused, after.refused)?,
                        overrun: per(before.overrun, after.overrun)?,
                    })
                },
            ),
            silent: None,
            reading: after,
        };
        *self = next;
    }
}

/// What two lists come to, thing by thing; what is new, or counts anew, has no rate yet.
fn both<T, K: Hash + Eq, R>(
    before: &[T],
    after: &[T],
    key: impl Fn(&T) -> K,
    rate: impl Fn(&T, &T) -> Option<R>,
) -> HashMap<K, R> {
    let former: HashMap<K, &T> = before.iter().map(|thing| (key(thing), thing)).collect();
    let of = |thing: &T| {
        let key = key(thing);
        let rate = rate(former.get(&key)?, thing)?;
        Some((key, rate))
    };
    after.iter().filter_map(of).collect()
}
