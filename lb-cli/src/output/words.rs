//! Numbers and times in words.

use std::time::Duration;

use super::Grid;

/// A duration by its largest unit and the next: `3m 20s`, `5d 2h`; below a second `0s`.
pub(crate) fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// A time of RFC 3339 in UTC without its fraction of a second.
pub(crate) fn whole_seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.into(),
    }
}

/// A share in percent with two places; 0 of 0 is `-`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let hundredths = (u128::from(part) * 10_000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

/// `1 change`, `2 changes`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Lines of `name  value`, values aligned and wrapped.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let mut grid = Grid::bare();
    for (name, value) in fields {
        grid.row([(*name).into(), value.clone()]);
    }
    grid.lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_at_most_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (200, "3m 20s"),
            (3_600, "1h 0m"),
            (86_399, "23h 59m"),
            (439_200, "5d 2h"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn shares_are_rounded_to_two_places() {
        assert_eq!(percent(1, 3), "33.33%");
        assert_eq!(percent(2, 3), "66.67%");
        assert_eq!(percent(65_537, 65_537), "100.00%");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.00%");
    }
}
