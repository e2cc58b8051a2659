//! Packets by verdict, of either role.

use lb_daemon::stats::VerdictStats;

use crate::output::Grid;

/// The verdicts that any packet got; the others are only in the other form.
pub(super) fn table(verdicts: &[VerdictStats]) -> String {
    let seen = || verdicts.iter().filter(|v| v.packets > 0);
    if seen().next().is_none() {
        return "no packets yet\n".into();
    }
    let mut grid = Grid::new(["VERDICT", "ACTION", "PACKETS", "BYTES"]).right([2, 3]);
    for v in seen() {
        let (verdict, action) = (v.verdict.to_string(), v.action.to_string());
        grid.row([verdict, action, v.packets.to_string(), v.bytes.to_string()]);
    }
    grid.lines()
}
