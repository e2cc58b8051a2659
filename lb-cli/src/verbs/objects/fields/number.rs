//! Whole numbers of the command line.
//!
//! In the API 0 often is "unset". Whoever writes 0 means none of something, and would have the default
//! in silence, so 0 is refused here as a file refuses it.

use std::ops::RangeInclusive;

/// A parser of numbers within a range.
pub(super) fn within(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| allowed(&range))
    }
}

/// The same for a field that has a default, which is said in no number.
pub(super) fn within_or_unset(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    let parse = within(range);
    move |text| {
        parse(text).map_err(|allowed| match text.parse() {
            Ok(0) => format!("{allowed}; the default is had by leaving it out or by --unset"),
            _ => allowed,
        })
    }
}

fn allowed(range: &RangeInclusive<u32>) -> String {
    format!("give a whole number from {} to {}", range.start(), range.end())
}
