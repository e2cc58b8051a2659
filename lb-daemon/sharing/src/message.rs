//! What balancers tell each other, four times a second and at once when one begins to refuse connections.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lb_model::{Name, capacity::Capacity};

use crate::{GroupKey, Parts, Transfer};

/// From one balancer to another. One that is lost does no harm: the next one says the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub from: Name,
    /// Which start of the sender it is.
    pub incarnation: u64,
    /// The latest start of the receiver that the sender heard of, and whose numbers are below; 0: none yet.
    pub receiver_incarnation: u64,
    /// Number among the messages of this incarnation to this receiver. A lower one that comes later is late.
    pub sequence: u64,
    /// The last epoch whose result the sender has applied. Transfers and their numbers are of this epoch.
    pub epoch: u64,
    /// Number of the last transfer that the sender ever sent to the receiver in this epoch.
    pub sent: u64,
    /// Number of the last transfer of the receiver that the sender has applied.
    pub applied: u64,
    /// Transfers to the receiver that are not known to be applied, in order: the last of all that were sent.
    pub transfers: Vec<Transfer>,
    /// What the sender says of each group: the same to all, so messages share it.
    pub groups: Arc<BTreeMap<GroupKey, GroupReport>>,
    /// Members that the sender has listened to for [`SILENCE`](crate::SILENCE) without an interruption, and has not heard
    /// from in that time. Mostly none, so that a message does not grow with the fleet.
    pub silent: BTreeSet<Name>,
    /// The sender owns nothing, because its store is an old copy.
    pub store_is_old: bool,
    /// The sender gives everything away, and takes nothing.
    pub is_leaving: bool,
    /// The sender knows that the receiver is leaving, and gives it nothing any more.
    pub receiver_is_leaving: bool,
}

/// What a balancer says of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupReport {
    /// Offered connections a second, with those that are refused.
    pub demand: f64,
    /// What it owns.
    pub owned: Parts,
    /// The capacity as it sees it, of the whole fleet.
    pub capacity: ReportedCapacity,
    /// Whether it sends connections to this group: whether the group's region is in its order of regions.
    pub may_send: bool,
}

/// A capacity of the whole fleet, as one balancer sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReportedCapacity {
    Closed,
    /// New connections a second, more than 0.
    PerSecond(f64),
    Unlimited,
}

impl ReportedCapacity {
    /// The order of capacities: closed first, unlimited last.
    pub fn compare(&self, other: &Self) -> Ordering {
        let rank = |capacity: &Self| match capacity {
            Self::Closed => 0.0,
            Self::PerSecond(rate) => *rate,
            Self::Unlimited => f64::INFINITY,
        };
        rank(self).total_cmp(&rank(other))
    }
}

impl From<Capacity> for ReportedCapacity {
    fn from(capacity: Capacity) -> Self {
        match capacity {
            Capacity::Unlimited => Self::Unlimited,
            Capacity::PerSecond(rate) if rate > 0.0 => Self::PerSecond(rate),
            Capacity::PerSecond(_) | Capacity::Closed => Self::Closed,
        }
    }
}

/// A message that makes no sense: not of a balancer of this version, or not of one at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("transfers to this balancer are numbered {first} to {last}, but {sent} were sent")]
    Numbers { first: u64, last: u64, sent: u64 },
    #[error(
        "the demand or the capacity of pool {pool} in region {region} is not a number of connections"
    )]
    Rate { pool: Name, region: Name },
    #[error("more than the whole of the capacity of pool {pool} in region {region}")]
    TooMuch { pool: Name, region: Name },
}

impl Message {
    /// Checks what a peer sent.
    ///
    /// # Errors
    /// [`MessageError`]: nothing of the message may be used.
    pub fn check(&self) -> Result<(), MessageError> {
        let numbers = |transfer: Option<&Transfer>| transfer.map(|transfer| transfer.number);
        let first = numbers(self.transfers.first()).unwrap_or(self.sent.saturating_add(1));
        let last = numbers(self.transfers.last()).unwrap_or(self.sent);
        let in_order = self
            .transfers
            .windows(2)
            .all(|pair| Some(pair[1].number) == pair[0].number.checked_add(1));
        if first == 0 || last != self.sent || !in_order {
            return Err(MessageError::Numbers { first, last, sent: self.sent });
        }
        for (group, report) in &*self.groups {
            let rate = match report.capacity {
                ReportedCapacity::PerSecond(rate) => rate,
                ReportedCapacity::Closed | ReportedCapacity::Unlimited => 1.0,
            };
            let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
            if !is_rate(report.demand) || !is_rate(rate) || rate == 0.0 {
                let GroupKey { pool, region, .. } = group.clone();
                return Err(MessageError::Rate { pool, region });
            }
        }
        let owned = self.groups.iter().map(|(group, report)| (group, report.owned));
        let given = self.transfers.iter().map(|transfer| (&transfer.group, transfer.parts));
        match owned.chain(given).find(|(_, parts)| *parts > Parts::WHOLE) {
            Some((group, _)) => {
                let GroupKey { pool, region, .. } = group.clone();
                Err(MessageError::TooMuch { pool, region })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{group, name};

    fn transfer(number: u64, parts: u64) -> Transfer {
        Transfer { number, group: group(), parts: Parts(parts) }
    }

    /// The fifth and sixth transfer are on their way.
    fn message() -> Message {
        let report = GroupReport {
            demand: 5.0,
            owned: Parts::WHOLE,
            capacity: ReportedCapacity::PerSecond(10.0),
            may_send: true,
        };
        Message {
            from: name("b"),
            incarnation: 1,
            receiver_incarnation: 0,
            sequence: 1,
            epoch: 0,
            sent: 6,
            applied: 0,
            transfers: vec![transfer(5, 1), transfer(6, 2)],
            groups: Arc::new([(group(), report)].into()),
            silent: BTreeSet::new(),
            store_is_old: false,
            is_leaving: false,
            receiver_is_leaving: false,
        }
    }

    #[test]
    fn numbers_are_the_last_that_were_sent() {
        let check = |sent, numbers: &[u64]| {
            let transfers = numbers.iter().map(|number| transfer(*number, 1)).collect();
            Message { sent, transfers, ..message() }.check()
        };
        for (sent, numbers) in [(0, &[][..]), (u64::MAX, &[]), (1, &[1]), (6, &[5, 6])] {
            assert_eq!(check(sent, numbers), Ok(()), "{numbers:?} of {sent}");
        }
        for (sent, numbers) in
            [(0, &[0][..]), (6, &[5]), (6, &[6, 5]), (6, &[4, 6]), (6, &[6, 6]), (6, &[6, 7])]
        {
            let refused = check(sent, numbers);
            assert!(matches!(refused, Err(MessageError::Numbers { .. })), "{numbers:?} of {sent}");
        }
        let error = check(6, &[4, 5]).unwrap_err();
        let text = "transfers to this balancer are numbered 4 to 5, but 6 were sent";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn rates_are_numbers_and_parts_at_most_the_whole() {
        let with = |change: fn(&mut GroupReport)| {
            let mut message = message();
            Arc::make_mut(&mut message.groups).values_mut().for_each(change);
            message.check().map_err(|error| error.to_string())
        };
        assert_eq!(with(|report| report.demand = 0.0), Ok(()));
        let rate =
            "the demand or the capacity of pool web in region eu is not a number of connections";
        for refused in [
            with(|report| report.demand = f64::NAN),
            with(|report| report.demand = -1.0),
            with(|report| report.demand = f64::INFINITY),
            with(|report| report.capacity = ReportedCapacity::PerSecond(0.0)),
            with(|report| report.capacity = ReportedCapacity::PerSecond(f64::NAN)),
        ] {
            assert_eq!(refused, Err(rate.to_owned()));
        }
        let too_much = "more than the whole of the capacity of pool web in region eu";
        let refused = with(|report| report.owned = Parts(Parts::WHOLE.0 + 1));
        assert_eq!(refused, Err(too_much.to_owned()));
        let given = Message { transfers: vec![transfer(6, Parts::WHOLE.0 + 1)], ..message() };
        assert_eq!(given.check().unwrap_err().to_string(), too_much);
    }
}
