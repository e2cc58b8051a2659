//! What was sent to each balancer and what arrived in each region, second by second.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddrV4;
use std::ops::Range;
use std::time::Duration;

use super::{Arrival, Schedule, Sent};
use crate::topology::REGIONS;

/// What became of a SYN. Times are after the first one was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The balancer that it was sent to.
    pub balancer: usize,
    /// When it was sent.
    pub sent: Duration,
    /// Which region it arrived in (its place in [`REGIONS`]), and when; `None`: it was lost.
    pub arrived: Option<(usize, Duration)>,
}

/// A second of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Sent in this second, by balancers.
    pub sent: Vec<usize>,
    /// Arrived in this second, by regions.
    pub arrived: [usize; REGIONS.len()],
    /// Those that arrived in this second, by balancers and regions.
    pub through: Vec<[usize; REGIONS.len()]>,
    /// Sent in this second and lost.
    pub lost: usize,
}

/// A run. Shown as a table, a line for each second.
#[derive(Clone, Debug)]
pub struct Rates {
    /// All SYNs, in the order in which they were sent.
    pub connections: Vec<Connection>,
    /// By how much a SYN was sent after its moment, at most: the machine had other work. Those that were late come at
    /// once.
    pub late: Duration,
    balancers: usize,
}

impl Rates {
    /// `regions` are those of the backends, by their places.
    pub(super) fn new(
        schedule: &Schedule,
        sent: &[Sent],
        arrivals: &HashMap<SocketAddrV4, Arrival>,
        regions: &[&str],
    ) -> Self {
        let zero = sent.first().map_or(0, |first| first.at);
        let after = |at: u64| Duration::from_nanos(at.saturating_sub(zero));
        let place = |region: &str| REGIONS.iter().position(|it| *it == region);
        let connection = |(syn, sent): (&super::SentBy, &Sent)| {
            let arrived = arrivals.get(&syn.from).and_then(|arrival| {
                Some((place(regions.get(arrival.backend)?)?, after(arrival.at)))
            });
            Connection { balancer: syn.balancer, sent: after(sent.at), arrived }
        };
        let connections = schedule.syns.iter().zip(sent).map(connection).collect();
        let first = schedule.syns.first().map_or(Duration::ZERO, |first| first.at);
        let late = schedule.syns.iter().zip(sent);
        let late = late.map(|(syn, sent)| after(sent.at).saturating_sub(syn.at - first)).max();
        let late = late.unwrap_or_default();
        Self { connections, late, balancers: schedule.balancers }
    }

    /// Second by second, counted from 0.
    pub fn seconds(&self) -> Vec<Second> {
        let moments = self.connections.iter().map(|it| it.arrived.map_or(it.sent, |(_, at)| at));
        let length = moments.max().map_or(0, |last| last.as_secs() as usize + 1);
        let empty = Second {
            sent: vec![0; self.balancers],
            through: vec![<[usize; REGIONS.len()]>::default(); self.balancers],
            ..Second::default()
        };
        let mut seconds = vec![empty; length];
        for Connection { balancer, sent, arrived } in &self.connections {
            let sent_in = &mut seconds[sent.as_secs() as usize];
            sent_in.sent[*balancer] += 1;
            sent_in.lost += usize::from(arrived.is_none());
            if let Some((region, at)) = arrived {
                let arrived_in = &mut seconds[at.as_secs() as usize];
                arrived_in.arrived[*region] += 1;
                arrived_in.through[*balancer][*region] += 1;
            }
        }
        seconds
    }

    /// Of what was sent in some time and arrived, the part that arrived elsewhere than in the nearest region.
    pub fn share_elsewhere(&self, time: Range<Duration>) -> f64 {
        let within = self.connections.iter().filter(|it| time.contains(&it.sent));
        let regions = within.filter_map(|it| it.arrived.map(|(region, _)| region));
        let (mut all, mut elsewhere) = (0_usize, 0_usize);
        for region in regions {
            all += 1;
            elsewhere += usize::from(region != 0);
        }
        elsewhere as f64 / all as f64
    }

    /// What arrived in a region in some time, a second.
    pub fn arrived_per_second(&self, region: usize, time: Range<Duration>) -> f64 {
        let times = self.arrival_times(region).into_iter();
        let count = times.filter(|at| time.contains(at)).count();
        count as f64 / (time.end - time.start).as_secs_f64()
    }

    /// SYNs that arrived nowhere.
    pub fn lost(&self) -> usize {
        self.connections.iter().filter(|it| it.arrived.is_none()).count()
    }

    /// When connections arrived in a region, in order.
    pub fn arrival_times(&self, region: usize) -> Vec<Duration> {
        let own = |it: &Connection| it.arrived.filter(|(it, _)| *it == region).map(|(_, at)| at);
        let mut times: Vec<_> = self.connections.iter().filter_map(own).collect();
        times.sort();
        times
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "second")?;
        (1..=self.balancers).try_for_each(|number| write!(f, "{:>8}", format!("lb-{number}")))?;
        REGIONS.iter().try_for_each(|region| write!(f, "{region:>8}"))?;
        write!(f, "{:>8}", "lost")?;
        for (number, second) in self.seconds().iter().enumerate() {
            write!(f, "\n{number:>6}")?;
            let counts = second.sent.iter().chain(&second.arrived).chain([&second.lost]);
            counts.into_iter().try_for_each(|count| write!(f, "{count:>8}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Balancer, milliseconds when it was sent, region and milliseconds when it arrived.
    type Row = (usize, u64, Option<(usize, u64)>);

    fn rates(all: &[Row]) -> Rates {
        let connection = |&(balancer, sent, arrived): &Row| {
            let arrived = arrived.map(|(region, after)| (region, at(after)));
            Connection { balancer, sent: at(sent), arrived }
        };
        let connections = all.iter().map(connection).collect();
        Rates { connections, late: Duration::ZERO, balancers: 2 }
    }

    #[test]
    fn each_connection_is_counted_where_it_was_sent_and_where_it_arrived() {
        let rates = rates(&[
            (0, 0, Some((0, 1))),
            (0, 999, Some((1, 1000))),
            (1, 1500, None),
            (1, 1600, Some((0, 1601))),
        ]);
        let table = "second    lb-1    lb-2      eu      us    lost\n\
                     \u{20}    0       2       0       1       0       0\n\
                     \u{20}    1       0       2       1       1       1";
        assert_eq!(rates.to_string(), table);
        let seconds = rates.seconds();
        assert_eq!(
            (&seconds[0].through[..], &seconds[1].through[..]),
            (&[[1, 0], [0, 0]][..], &[[0, 1], [1, 0]][..])
        );
        assert_eq!(rates.share_elsewhere(at(0)..at(1000)), 0.5);
        assert_eq!(rates.share_elsewhere(at(1000)..at(2000)), 0.0);
        assert_eq!(rates.arrived_per_second(0, at(1000)..at(1800)), 1.25);
        assert_eq!(rates.lost(), 1);
    }
}
