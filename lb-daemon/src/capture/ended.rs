//! How a capture ends.

use std::fmt;

use lb_common::abi::capture::Captured;

/// Why a capture ended as it was to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has as many packets as were wanted.
    Packets,
    /// Its time is over.
    Duration,
}

/// What a capture came to, for who hears it to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Why it ended.
    pub why: Why,
    /// What the packet path counted of it.
    pub counted: Captured,
    /// Packets that were told.
    pub written: u64,
}

/// How a capture ended, to note it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) how: How,
    /// What the packet path counted of it; `None`: it could not be asked.
    pub(super) counted: Option<Captured>,
    /// Packets that were told.
    pub(super) written: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// As it was to.
    Done(Why),
    /// Nobody hears it any more.
    Unheard,
    /// Who hears it does not read what there is to tell.
    Unread,
    /// The daemon stops, or the packet path cannot be asked.
    Broken(String),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(Why::Packets) => f.write_str("it has its packets"),
            Self::Done(Why::Duration) => f.write_str("its time is over"),
            Self::Unheard => f.write_str("its caller went away"),
            Self::Unread => f.write_str("its caller reads no more"),
            Self::Broken(cause) => write!(f, "broken off: {cause}"),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { how, counted, written } = self;
        let Some(Captured { matched, left_out, lost }) = *counted else {
            return write!(f, "{how}; how many matched is not known, {written} written");
        };
        write!(f, "{how}; {matched} matched, {written} written, {left_out} left out, {lost} lost")?;
        match matched.saturating_sub(written + left_out + lost) {
            0 => Ok(()),
            rest => write!(f, ", {rest} not written"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_what_happened() {
        let counted = Some(Captured { matched: 12, left_out: 2, lost: 1 });
        let noted = |how, counted, written| Ended { how, counted, written }.to_string();
        assert_eq!(
            noted(How::Done(Why::Duration), counted, 9),
            "its time is over; 12 matched, 9 written, 2 left out, 1 lost"
        );
        assert_eq!(
            noted(How::Done(Why::Packets), counted, 5),
            "it has its packets; 12 matched, 5 written, 2 left out, 1 lost, 4 not written"
        );
        assert_eq!(
            noted(How::Unheard, counted, 9),
            "its caller went away; 12 matched, 9 written, 2 left out, 1 lost"
        );
        assert_eq!(
            noted(How::Unread, None, 5),
            "its caller reads no more; how many matched is not known, 5 written"
        );
        assert_eq!(
            noted(How::Broken("the daemon is stopping".into()), counted, 0),
            "broken off: the daemon is stopping; 12 matched, 0 written, 2 left out, 1 lost, 9 not \
             written"
        );
    }
}
