//! Room in front of a packet: what is put there needs no more than it takes, and where that is not there, nobody
//! gets the packet.

use anyhow::{Context as _, Result, ensure};
use aya::util::KernelVersion;

use crate::packet_table::row::Row;
use lb_tests::packets::fixture::MapFixture;

use super::{balancer_rows, programs};

/// Kernels before this one let metadata fill 32 bytes of the headroom, and no more.
const METADATA: KernelVersion = KernelVersion::new(6, 8, 0);
/// What metadata's length is a multiple of.
const STEP: usize = 4;

/// Bytes that what comes of a row has in front of what is left of the frame: ICMP errors quote it behind new
/// headers of IP and ICMP.
fn takes(row: &Row<MapFixture>) -> usize {
    let came = &row.frame;
    match (&row.expected.frame, row.expected.verdict) {
        (Some(_), "answered_too_large" | "answered_time_exceeded") if quotes_ipv4(came) => 20 + 8,
        (Some(_), "answered_too_large" | "answered_time_exceeded") => 40 + 8,
        (Some(left), _) => left.len().saturating_sub(came.len()),
        (None, _) => 0,
    }
}

fn quotes_ipv4(frame: &[u8]) -> bool {
    let mut at = 12;
    while let Some([0x81, 0x00] | [0x88, 0xa8]) = frame.get(at..at + 2) {
        at += 4;
    }
    frame.get(at..at + 2) == Some(&[0x08, 0x00])
}

/// Rows that want room and have less, and how much they have.
pub(crate) fn cramped() -> impl Iterator<Item = (Row<MapFixture>, usize)> {
    balancer_rows().into_iter().filter_map(|row| {
        let room = takes(&row).checked_sub(STEP)?;
        let what = format!("{}, with {room} bytes of room", row.what);
        Some((Row::dropped(what, row.fixture, row.frame, "no_headroom"), room))
    })
}

/// All rows of frames that somebody gets, with just as much room as they take, and with less.
pub(crate) fn none_is_wasted() -> Result<()> {
    let mut subject = programs::balancer()?;
    if KernelVersion::current()? < METADATA {
        let (row, room) = cramped().next().context("no row wants room")?;
        let refused = subject.check_in(&row, room).err().context("not refused")?;
        let refused = format!("{refused:#}");
        ensure!(refused.contains("Invalid argument"), "{refused}");
        return Ok(());
    }
    // What is dropped may have been ready to leave.
    for row in balancer_rows().into_iter().filter(|row| row.expected.frame.is_some()) {
        let room = takes(&row);
        subject.check_in(&row, room).with_context(|| format!("{}, in {room}", row.what))?;
    }
    let mut dropped = 0;
    for (row, room) in cramped() {
        subject.check_in(&row, room).with_context(|| row.what.clone())?;
        dropped += 1;
    }
    ensure!(dropped > 100, "only {dropped} rows want room");
    Ok(())
}
